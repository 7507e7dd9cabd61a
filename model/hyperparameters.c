/* SPDX-License-Identifier: MIT */
/* Hyperparameters, by a table of keys.
 *
 * Keys are ARCHITECTURE.NAME. Each has a range outside of which nothing could work, and what has no default
 * must be there: a guess would give a model that talks nonsense instead of an error. The numbers are checked
 * against each other once, here and in 64 bits; whoever computes with them later need not. What changes the
 * computation in a way that no description can say is refused by name. */

#include "model/hyperparameters.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"
#include "gguf/gguf_values.h"
#include "gguf/gguf_writer.h"
#include "model/hyperparameters_layers.h"
#include "model/hyperparameters_ranking.h"

#define LIMIT HYPERPARAMETERS_LIMIT

enum kind {
    COUNT,        /* 1 … LIMIT */
    COUNT_OR_OFF, /* 0 counts as left out */
    LISTED,       /* a COUNT, or a list of one for each layer, which is read apart */
    REAL,         /* finite, above 0 */
    REAL_OR_OFF,
    EPSILON_RMS, /* a REAL of models with that kind of norm */
    EPSILON_LAYER,
    GROWTH, /* a REAL_OR_OFF of architectures whose queries may grow; of others it must be 0 */
    DELTA,  /* a COUNT of architectures with delta nets */
    APART,  /* a COUNT of architectures whose layers with a window differ from the others */
    APART_OR_OFF,
    FOR_OTHERS /* a count, written for other programs and not read */
};

enum need {
    OPTIONAL,
    REQUIRED,
    UNLESS_EXPERTS /* required where layers are dense */
};

static const struct key {
    const char *name;
    size_t offset;
    enum kind kind;
    enum need need;
} keys[] = {
#define KEY(name, field, kind, need)                                                                         \
    {                                                                                                        \
        name, offsetof(struct model_params, field), kind, need                                               \
    }
    KEY("vocab_size", n_vocab, FOR_OTHERS, OPTIONAL),
    KEY("context_length", n_context, COUNT, REQUIRED),
    KEY("embedding_length", n_embd, COUNT, REQUIRED),
    KEY("block_count", n_layers, COUNT, REQUIRED),
    KEY("nextn_predict_layers", n_draft_layers, COUNT_OR_OFF, OPTIONAL),
    KEY("feed_forward_length", n_ff, LISTED, UNLESS_EXPERTS),
    KEY("attention.head_count", n_heads, COUNT, REQUIRED),
    KEY("attention.head_count_kv", n_kv_heads, LISTED, OPTIONAL),
    KEY("attention.key_length", head_dim, COUNT, OPTIONAL),
    KEY("attention.value_length", head_dim, FOR_OTHERS, OPTIONAL), /* read apart: it must be the same */
    KEY("attention.key_length_swa", window_head_dim, APART, OPTIONAL),
    KEY("attention.value_length_swa", window_head_dim, FOR_OTHERS, OPTIONAL),
    KEY("attention.sliding_window", window, COUNT_OR_OFF, OPTIONAL),
    KEY("attention.scale", attention_scale, REAL_OR_OFF, OPTIONAL),
    KEY("attn_logit_softcapping", attention_cap, REAL_OR_OFF, OPTIONAL),
    KEY("final_logit_softcapping", logit_cap, REAL_OR_OFF, OPTIONAL),
    KEY("attention.layer_norm_rms_epsilon", norm_epsilon, EPSILON_RMS, REQUIRED),
    KEY("attention.layer_norm_epsilon", norm_epsilon, EPSILON_LAYER, REQUIRED),
    KEY("rope.dimension_count", rope_dims, COUNT, OPTIONAL),
    KEY("attention.shared_kv_layers", n_borrowing_layers, APART_OR_OFF, OPTIONAL),
    KEY("embedding_length_per_layer_input", n_layer_embd, APART_OR_OFF, OPTIONAL),
    KEY("rope.dimension_count_swa", window_rope_dims, APART, OPTIONAL),
    KEY("rope.freq_base", rope_base, REAL, OPTIONAL),
    KEY("rope.freq_base_swa", rope_window_base, REAL, OPTIONAL),
    KEY("rope.scaling.original_context_length", rope_trained_context, COUNT_OR_OFF, OPTIONAL),
    KEY("rope.scaling.attn_factor", rope_attention_factor, REAL, OPTIONAL),
    KEY("rope.scaling.yarn_beta_fast", rope_fast_turns, REAL, OPTIONAL),
    KEY("rope.scaling.yarn_beta_slow", rope_slow_turns, REAL, OPTIONAL),
    KEY("embedding_scale", embedding_scale, REAL_OR_OFF, OPTIONAL),
    KEY("residual_scale", residual_scale, REAL_OR_OFF, OPTIONAL),
    KEY("logit_scale", logit_scale, REAL_OR_OFF, OPTIONAL),
    KEY("pooling_type", pooling, COUNT_OR_OFF, OPTIONAL), /* an enum of as many bytes */
    KEY("expert_count", n_experts, COUNT_OR_OFF, OPTIONAL),
    KEY("expert_used_count", n_experts_used, COUNT_OR_OFF, OPTIONAL),
    KEY("expert_shared_count", n_shared_experts, COUNT_OR_OFF, OPTIONAL),
    KEY("expert_feed_forward_length", n_expert_ff, COUNT, OPTIONAL),
    KEY("expert_shared_feed_forward_length", n_shared_ff, COUNT_OR_OFF, OPTIONAL),
    KEY("full_attention_interval", attention_interval, DELTA, OPTIONAL),
    KEY("ssm.conv_kernel", n_taps, DELTA, REQUIRED),
    KEY("ssm.state_size", state_size, DELTA, REQUIRED),
    KEY("ssm.group_count", n_state_groups, DELTA, REQUIRED),
    KEY("ssm.time_step_rank", n_state_heads, DELTA, REQUIRED),
    KEY("ssm.inner_size", state_inner, DELTA, REQUIRED),
    KEY("attention.temperature_scale", query_growth, GROWTH, OPTIONAL),
    KEY("rope.scaling.yarn_log_multiplier", rope_log_multiplier, GROWTH, OPTIONAL),
#undef KEY
};
#define N_KEYS (sizeof keys / sizeof keys[0])

/* Keys of computations that no description can say, unless they are 0 or false. */
static const char *const unknown[] = {"attention.max_alibi_bias", "attention.clamp_kqv",
                                      "attention.q_lora_rank", "attention.kv_lora_rank",
                                      "expert_group_count"};

struct source {
    const struct gguf *gguf;
    const char *architecture;
    struct error *err;
};

static const char *full_key(const char *architecture, const char *name, char ret_key[96])
{
    snprintf(ret_key, 96, "%s.%s", architecture, name);
    return ret_key;
}

static void *field_of(struct model_params *params, const struct key *key)
{
    return (char *)params + key->offset;
}

static bool is_real(enum kind kind)
{
    return kind == REAL || kind == REAL_OR_OFF || kind == EPSILON_RMS || kind == EPSILON_LAYER ||
           kind == GROWTH;
}

/* Does this architecture have the key at all? */
static bool applies(const struct key *key, const struct architecture *architecture)
{
    const bool apart = key->kind == APART || key->kind == APART_OR_OFF;
    if ((key->kind == DELTA && !architecture->delta_nets) || (apart && !architecture->layers_differ))
        return false;
    switch (architecture->layer.norm.kind) {
    case NORM_RMS:
        return key->kind != EPSILON_LAYER;
    case NORM_LAYER:
        return key->kind != EPSILON_RMS;
    }
    return true;
}

static bool is_needed(const struct key *key, const struct architecture *architecture)
{
    return key->need == REQUIRED || (key->need == UNLESS_EXPERTS && !architecture->always_experts);
}

/* GGUF_E_MISSING leaves the value as it is. */
static int read_count(const struct source *source, const char *name, bool may_be_off, uint32_t *value)
{
    char key[96];
    uint32_t found;
    int r = gguf_u32(source->gguf, full_key(source->architecture, name, key), &found, source->err);
    if (r != 0)
        return r;
    if ((found == 0 && !may_be_off) || found > LIMIT)
        return error_out_of_range(source->err, -EINVAL, key, found, 1, LIMIT);
    *value = found;
    return 0;
}

static int read_real(const struct source *source, const char *name, bool may_be_off, float *value)
{
    char key[96];
    float found;
    int r = gguf_f32(source->gguf, full_key(source->architecture, name, key), &found, source->err);
    if (r != 0)
        return r;
    if (!(found > 0 || (may_be_off && found == 0)) || !isfinite(found))
        return error_set(source->err, -EINVAL, "hyperparameter %s is %g; a number above 0 is required", key,
                         (double)found);
    *value = found;
    return 0;
}

static bool is_list(const struct source *source, const struct key *key,
                    const struct architecture *architecture)
{
    char name[96];
    const struct gguf_value *value = gguf_find(source->gguf, full_key(source->architecture, key->name, name));
    return key->kind == LISTED && architecture->layers_differ && value && value->type == GGUF_ARRAY;
}

static int read_keys(const struct source *source, const struct architecture *architecture,
                     struct model_params *params)
{
    for (size_t i = 0; i < N_KEYS; i++) {
        const struct key *key = &keys[i];
        if (key->kind == FOR_OTHERS || !applies(key, architecture) || is_list(source, key, architecture))
            continue;
        bool may_be_off = key->kind == COUNT_OR_OFF || key->kind == REAL_OR_OFF ||
                          key->kind == APART_OR_OFF || key->kind == GROWTH;
        int r = is_real(key->kind) ? read_real(source, key->name, may_be_off, field_of(params, key))
                                   : read_count(source, key->name, may_be_off, field_of(params, key));
        if (r == GGUF_E_MISSING && is_needed(key, architecture))
            return error_set(source->err, -EINVAL, "hyperparameter %s.%s is missing", source->architecture,
                             key->name);
        if (r < 0)
            return r;
        if (r == 0 && key->kind == GROWTH && !architecture->query_growth &&
            *(float *)field_of(params, key) != 0)
            return error_set(source->err, -EINVAL, "hyperparameter %s.%s is not supported",
                             source->architecture, key->name);
    }
    return 0;
}

static int refuse_unknown(const struct source *source)
{
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        char key[96];
        float value = 0;
        int r = gguf_f32(source->gguf, full_key(source->architecture, unknown[i], key), &value, source->err);
        if (r < 0)
            return r;
        if (value != 0)
            return error_set(source->err, -EINVAL, "hyperparameter %s is not supported", key);
    }
    return 0;
}

/* Experts are weighted by the softmax of the scores of those chosen, and by nothing else: a softmax over all
 * that is scaled to 1 for those chosen (1) and a softmax over those chosen (3) are the same. */
static int refuse_other_gates(const struct source *source)
{
    char key[96];
    uint32_t gating = 1; /* softmax */
    float scale = 1;
    bool normed = true;
    int r = gguf_u32(source->gguf, full_key(source->architecture, "expert_gating_func", key), &gating,
                     source->err);
    if (r >= 0 && gating > 1 && gating != 3) /* 0: as the architecture does */
        return error_set(source->err, -EINVAL,
                         "hyperparameter %s is %" PRIu32 "; only 1 and 3 (softmax) are supported", key,
                         gating);
    if (r >= 0)
        r = gguf_f32(source->gguf, full_key(source->architecture, "expert_weights_scale", key), &scale,
                     source->err);
    if (r >= 0 && scale != 1 && scale != 0)
        return error_set(source->err, -EINVAL, "hyperparameter %s is %g; only 1 is supported", key,
                         (double)scale);
    if (r >= 0)
        r = gguf_bool(source->gguf, full_key(source->architecture, "expert_weights_norm", key), &normed,
                      source->err);
    if (r >= 0 && !normed)
        return error_set(source->err, -EINVAL, "hyperparameter %s is false, which is not supported", key);
    return r < 0 ? r : 0;
}

/* The scaling's factor has a present and an older key. A factor without a type means linear. */
static int read_rope_scaling(const struct source *source, struct model_params *params)
{
#define NAME(name, id, words) [ROTARY_##name] = #id,
    static const char *const names[] = {ROTARY_SCALINGS(NAME)};
#undef NAME
    char key[96], text[32];
    struct bytes type = BYTES_LITERAL("linear");
    int r = gguf_string(source->gguf, full_key(source->architecture, "rope.scaling.type", key), &type,
                        source->err);
    if (r < 0)
        return r;
    utf8_printable(type, sizeof text, text);
    int scaling = 0;
    while (scaling < KINDS_OF(ROTARY_SCALINGS) && strcmp(text, names[scaling]) != 0)
        scaling++;
    if (scaling == KINDS_OF(ROTARY_SCALINGS))
        return error_set(source->err, -EINVAL,
                         "rope scaling \"%s\" is not supported (none, linear, yarn and longrope are)", text);
    if (scaling == ROTARY_UNSCALED)
        return 0;
    r = read_real(source, "rope.scaling.factor", false, &params->rope_factor);
    if (r == GGUF_E_MISSING)
        r = read_real(source, "rope.scale_linear", false, &params->rope_factor);
    if (r < 0)
        return r;
    if (scaling == ROTARY_LONG && r == 0 && params->rope_factor != 1)
        return error_set(source->err, -EINVAL, "hyperparameter %s is %g, which long-rope factors exclude",
                         full_key(source->architecture, "rope.scaling.factor", key),
                         (double)params->rope_factor);
    if (scaling == ROTARY_LONG || r == 0)
        params->rope_scaling = (enum rotary_scaling)scaling;
    return 0;
}

_Static_assert(sizeof(enum pooling_kind) == sizeof(uint32_t), "the table writes it as a count");

const char *pooling_name(enum pooling_kind pooling)
{
    static const char *const names[] = {"mean", "mean", "cls", "last", "rank"};
    return names[pooling];
}

/* Only models that were not read from GGUF files say so: rows of queries and keys stand as in training, and
 * YaRN's ramp is not made of whole pairs. */
static int read_rope_flags(const struct source *source, struct model_params *params)
{
    char key[96];
    bool whole_pairs = true;
    int r = gguf_bool(source->gguf, full_key(source->architecture, HYPERPARAMETERS_ROPE_TRUNCATE, key),
                      &whole_pairs, source->err);
    params->rope_exact_ramp = !whole_pairs;
    if (r < 0)
        return r;
    r = gguf_bool(source->gguf, full_key(source->architecture, HYPERPARAMETERS_ROPE_HALVES, key),
                  &params->rope_halves, source->err);
    return r < 0 ? r : 0;
}

/* Layers that guess tokens ahead stand behind the others and are counted with them. */
static int split_off_drafts(const struct source *source, struct model_params *params)
{
    if (params->n_draft_layers >= params->n_layers)
        return error_set(source->err, -EINVAL,
                         "hyperparameter %s.nextn_predict_layers is %" PRIu32 " of %" PRIu32 " layers",
                         source->architecture, params->n_draft_layers, params->n_layers);
    params->n_layers -= params->n_draft_layers;
    return 0;
}

/* Of three kinds of positions, pairs take turns; in text all three are the same number, so pairs turn as
 * ever. But one that belongs to none of them does not turn. */
static int check_sections(const struct source *source, const struct model_params *params)
{
    char key[96];
    uint32_t sections[4] = {0}, total = 0;
    full_key(source->architecture, "rope.dimension_sections", key);
    const struct gguf_value *list = gguf_find(source->gguf, key);
    if (!list || params->rope_dims == 0)
        return 0;
    if (list->type != GGUF_ARRAY || list->array.type == GGUF_STRING || list->array.n > 4)
        return error_set(source->err, -EINVAL, "hyperparameter %s: expected at most four numbers", key);
    for (uint32_t i = 0; i < list->array.n; i++) {
        const int64_t n = gguf_array_int(list, i);
        if (n < 0 || n > LIMIT)
            return error_out_of_range(source->err, -EINVAL, key, n, 0, LIMIT);
        total += sections[i] = (uint32_t)n;
    }
    for (uint32_t pair = 0; total > 0 && pair < params->rope_dims / 2; pair++)
        if (pair % total >= 3 * sections[pair % total % 3])
            return error_set(source->err, -EINVAL,
                             "hyperparameter %s leaves out pair %" PRIu32 " of %" PRIu32
                             ", which is not supported",
                             key, pair, params->rope_dims / 2);
    return 0;
}

/* Some files switch rotation off by a key that others carry without a meaning. */
static int read_rope_switch(const struct source *source, const struct architecture *architecture,
                            struct model_params *params)
{
    char key[96];
    bool turns = true;
    int r = 0;
    if (architecture->rope_switch)
        r = gguf_bool(source->gguf, full_key(source->architecture, "rope.scaling.finetuned", key), &turns,
                      source->err);
    params->rope_off = !turns;
    return r < 0 ? r : 0;
}

/* Values as long as keys, or none. */
static int check_value_length(const struct source *source, const char *name, uint32_t head_dim)
{
    uint32_t length = head_dim;
    int r = read_count(source, name, false, &length);
    if (r < 0)
        return r;
    if (length != head_dim)
        return error_set(source->err, -EINVAL,
                         "hyperparameter %s.%s: keys of length %" PRIu32 " with values of length %" PRIu32
                         " are not supported",
                         source->architecture, name, head_dim, length);
    return 0;
}

/* ---- the whole ---- */

static int read_architecture(const struct gguf *gguf, const struct architecture **ret_architecture,
                             struct error *err)
{
    struct bytes name;
    char text[32], known[512] = "";
    int r = gguf_string(gguf, "general.architecture", &name, err);
    if (r == GGUF_E_MISSING)
        return error_set(err, -EINVAL, "general.architecture is missing");
    if (r < 0)
        return r;
    *ret_architecture = architecture_by_name(name);
    if (*ret_architecture)
        return 0;
    for (size_t i = 0, n = 0; architectures[i] && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n ? " " : "", architectures[i]->name);
    return error_set(err, -EINVAL, "architecture \"%s\" is not supported (these are: %s)",
                     utf8_printable(name, sizeof text, text), known);
}

static void read_name(const struct gguf *gguf, const char *path, char ret_name[128])
{
    struct bytes name;
    if (gguf_string(gguf, "general.name", &name, NULL) == 0 && name.len > 0) {
        utf8_printable(name, 128, ret_name);
        return;
    }
    const char *slash = strrchr(path, '/');
    utf8_printable(bytes_of_string(slash ? slash + 1 : path), 128, ret_name);
}

int hyperparameters_read(const struct gguf *gguf, const char *path,
                         const struct architecture **ret_architecture, struct model_params *ret_params,
                         struct error *err)
{
    struct model_params params = {0};
    const struct architecture *architecture;
    int r = read_architecture(gguf, &architecture, err);
    if (r < 0)
        return r;
    struct source source = {gguf, architecture->name, err};
    snprintf(params.architecture, sizeof params.architecture, "%s", architecture->name);
    read_name(gguf, path, params.name);
    r = refuse_unknown(&source);
    if (r == 0)
        r = read_keys(&source, architecture, &params);
    if (r == 0)
        r = split_off_drafts(&source, &params);
    if (r == 0)
        r = hyperparameters_read_ranking(gguf, architecture, &params, err);
    if (r == 0)
        r = read_rope_scaling(&source, &params);
    if (r == 0)
        r = read_rope_flags(&source, &params);
    if (r == 0)
        r = read_rope_switch(&source, architecture, &params);
    if (r == 0)
        r = hyperparameters_read_layers(gguf, architecture, &params, err);
    if (r == 0)
        r = refuse_other_gates(&source);
    if (r == 0)
        r = hyperparameters_complete(architecture, &params, err);
    if (r == 0)
        r = check_value_length(&source, "attention.value_length", params.head_dim);
    if (r == 0 && architecture->layers_differ)
        r = check_value_length(&source, "attention.value_length_swa", params.window_head_dim);
    if (r == 0)
        r = check_sections(&source, &params);
    if (r < 0)
        return r;
    *ret_architecture = architecture;
    *ret_params = params;
    return 0;
}

static bool is_listed(const struct model_params *params, const struct key *key)
{
    return key->kind == LISTED &&
           (key->offset == offsetof(struct model_params, n_ff) ? params->ff_listed : params->kv_heads_listed);
}

int hyperparameters_write(const struct model_params *params, const struct architecture *architecture,
                          struct gguf_writer *writer)
{
    struct model_params copy = *params;
    int r = gguf_writer_string(writer, "general.architecture", architecture->name);
    if (r == 0)
        r = gguf_writer_string(writer, "general.name", params->name);
    for (size_t i = 0; i < N_KEYS && r == 0; i++) {
        char key[96];
        uint32_t *count = field_of(&copy, &keys[i]);
        float *real = field_of(&copy, &keys[i]);
        full_key(architecture->name, keys[i].name, key);
        if (!applies(&keys[i], architecture))
            continue;
        if (is_real(keys[i].kind))
            r = *real != 0 ? gguf_writer_f32(writer, key, *real) : 0;
        else
            r = *count != 0 && !is_listed(params, &keys[i]) ? gguf_writer_u32(writer, key, *count) : 0;
    }
    return r < 0 ? r : hyperparameters_write_layers(params, architecture, writer);
}

static const char *own_key(const struct gguf *gguf, const char *name, char ret_key[96])
{
    struct bytes architecture = {0};
    char text[64];
    if (gguf_string(gguf, "general.architecture", &architecture, NULL) != 0)
        return "";
    return full_key(utf8_printable(architecture, sizeof text, text), name, ret_key);
}

uint32_t hyperparameters_layers(const struct gguf *gguf)
{
    char key[96];
    uint32_t n = 0;
    gguf_u32(gguf, own_key(gguf, "block_count", key), &n, NULL);
    return n;
}

uint32_t hyperparameters_halves(const struct gguf *gguf)
{
    char key[96];
    bool halves = false;
    uint32_t dim = 0;
    gguf_bool(gguf, own_key(gguf, HYPERPARAMETERS_ROPE_HALVES, key), &halves, NULL);
    gguf_u32(gguf, own_key(gguf, "attention.key_length", key), &dim, NULL);
    return halves ? dim : 0;
}
