/* SPDX-License-Identifier: MIT */
/* A table of names: stems before ".weight" and ".bias", of the model and of a layer. */

#include "model/huggingface/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

#define LAYERS "model.layers."

enum extent { NONE, VOCAB, EMBD, FF, QUERIES, KEYS, HEAD };

enum need { ALWAYS, UNTIED, QWEN3 };

static const struct row {
    const char *theirs, *ours;
    enum extent rows, columns;
    bool of_layer;
    bool may_have_bias;
    enum need need;
} rows[] = {
    {"model.embed_tokens", "token_embd", VOCAB, EMBD, false, false, ALWAYS},
    {"model.norm", "output_norm", NONE, EMBD, false, false, ALWAYS},
    {"lm_head", "output", VOCAB, EMBD, false, false, UNTIED},
    {"input_layernorm", "attn_norm", NONE, EMBD, true, false, ALWAYS},
    {"self_attn.q_proj", "attn_q", QUERIES, EMBD, true, true, ALWAYS},
    {"self_attn.k_proj", "attn_k", KEYS, EMBD, true, true, ALWAYS},
    {"self_attn.v_proj", "attn_v", KEYS, EMBD, true, true, ALWAYS},
    {"self_attn.q_norm", "attn_q_norm", NONE, HEAD, true, false, QWEN3},
    {"self_attn.k_norm", "attn_k_norm", NONE, HEAD, true, false, QWEN3},
    {"self_attn.o_proj", "attn_output", EMBD, QUERIES, true, true, ALWAYS},
    {"post_attention_layernorm", "ffn_norm", NONE, EMBD, true, false, ALWAYS},
    {"mlp.gate_proj", "ffn_gate", FF, EMBD, true, true, ALWAYS},
    {"mlp.up_proj", "ffn_up", FF, EMBD, true, true, ALWAYS},
    {"mlp.down_proj", "ffn_down", EMBD, FF, true, true, ALWAYS},
};
#define N_ROWS (sizeof rows / sizeof rows[0])

static uint32_t extent_of(const struct config *config, enum extent extent)
{
    const uint32_t extents[] = {[NONE] = 0,
                                [VOCAB] = config->n_vocab,
                                [EMBD] = config->n_embd,
                                [FF] = config->n_ff,
                                [QUERIES] = config->n_heads * config->head_dim,
                                [KEYS] = config->n_kv_heads * config->head_dim,
                                [HEAD] = config->head_dim};
    return extents[extent];
}

static const char *key_of(enum extent extent)
{
    static const char *const keys[] = {[NONE] = "",
                                       [VOCAB] = "vocab_size",
                                       [EMBD] = "hidden_size",
                                       [FF] = "intermediate_size",
                                       [QUERIES] = "num_attention_heads · head_dim",
                                       [KEYS] = "num_key_value_heads · head_dim",
                                       [HEAD] = "head_dim"};
    return keys[extent];
}

/* Tables that older files carry, and heads beside an embedding that is one. */
static bool is_needless(const struct config *config, const char *name)
{
    const char *end = strrchr(name, '.');
    return (end && strcmp(end, ".inv_freq") == 0) || (config->tied && strcmp(name, "lm_head.weight") == 0);
}

/* Splits "model.layers.12.STEM". The number is below n_layers, without leading zeros. */
static bool split_layer(const char *name, uint32_t n_layers, uint32_t *ret_layer, const char **ret_stem)
{
    const size_t len = strlen(LAYERS);
    char *end;
    if (strncmp(name, LAYERS, len) != 0 || name[len] < '0' || name[len] > '9' ||
        (name[len] == '0' && name[len + 1] != '.'))
        return false;
    unsigned long layer = strtoul(name + len, &end, 10);
    if (*end != '.' || layer >= n_layers)
        return false;
    *ret_layer = (uint32_t)layer;
    *ret_stem = end + 1;
    return true;
}

static const struct row *find_row(const char *stem, bool of_layer, bool *ret_bias)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        const size_t len = strlen(rows[i].theirs);
        if (rows[i].of_layer != of_layer || strncmp(rows[i].theirs, stem, len) != 0)
            continue;
        *ret_bias = strcmp(stem + len, ".bias") == 0;
        if ((*ret_bias && rows[i].may_have_bias) || strcmp(stem + len, ".weight") == 0)
            return &rows[i];
    }
    return NULL;
}

int names_place(const struct config *config, const char *name, struct place *ret_place, struct error *err)
{
    uint32_t layer = 0;
    const char *stem = name;
    bool bias = false;
    struct place place = {.rows_key = "", .columns_key = ""};
    if (!is_needless(config, name)) {
        const bool of_layer = split_layer(name, config->n_layers, &layer, &stem);
        const struct row *row = find_row(stem, of_layer, &bias);
        char shown[96];
        if (!row)
            return error_set(err, -EINVAL, "unexpected tensor %s in a %s model of %u layers",
                             utf8_printable(bytes_of_string(name), sizeof shown, shown), config->architecture,
                             config->n_layers);
        if (of_layer)
            snprintf(place.name, sizeof place.name, "blk.%u.%s.%s", layer, row->ours,
                     bias ? "bias" : "weight");
        else
            snprintf(place.name, sizeof place.name, "%s.weight", row->ours);
        place.rows = bias ? 0 : extent_of(config, row->rows);
        place.rows_key = bias ? "" : key_of(row->rows);
        place.columns = extent_of(config, bias ? row->rows : row->columns);
        place.columns_key = key_of(bias ? row->rows : row->columns);
    }
    *ret_place = place;
    return 0;
}

static bool is_needed(const struct config *config, const struct row *row)
{
    return row->need == ALWAYS || (row->need == UNTIED && !config->tied) ||
           (row->need == QWEN3 && strcmp(config->architecture, "qwen3") == 0);
}

bool names_needed(const struct config *config, uint64_t i, char ret_name[NAMES_SIZE])
{
    uint64_t at = 0;
    for (size_t r = 0; r < N_ROWS; r++) {
        if (!is_needed(config, &rows[r]))
            continue;
        const uint64_t n = rows[r].of_layer ? config->n_layers : 1;
        if (i < at + n && rows[r].of_layer)
            snprintf(ret_name, NAMES_SIZE, LAYERS "%u.%s.weight", (uint32_t)(i - at), rows[r].theirs);
        else if (i < at + n)
            snprintf(ret_name, NAMES_SIZE, "%s.weight", rows[r].theirs);
        if (i < at + n)
            return true;
        at += n;
    }
    return false;
}
