/* SPDX-License-Identifier: MIT */
/* The second half of quern inspect. The caches are counted as a worker on the CPU allots them: in blocks, a
 * head's values rounded up to eight numbers, and of layers with a window what that holds, and one step. */

#include "client/command/inspect_serving.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/backend/kv_groups.h"
#include "text/dialect/derive/derive.h"
#include "text/template/chat_template.h"
#include "text/tokenizer/tokenizer.h"
#include "gguf/gguf_values.h"

#define STEP_ROWS 512 /* of a worker on the CPU */

static json_t *token_json(const struct tokenizer *tokenizer, int32_t id)
{
    if (id == TOKENIZER_NONE)
        return json_null();
    const struct bytes name = tokenizer_name(tokenizer, id);
    json_t *text = json_stringn(name.data, name.len);
    return json_pack("{s:i, s:o}", "id", id, "text", text ? text : json_string("?"));
}

static struct bytes name_of(const struct tokenizer *tokenizer, int32_t id)
{
    return id == TOKENIZER_NONE ? (struct bytes){"", 0} : tokenizer_name(tokenizer, id);
}

/* "none", "1234 bytes", or the reason why it does not compile. */
static json_t *template_json(const struct model *model, const struct tokenizer *tokenizer)
{
    struct chat_template *compiled;
    struct error err = {0};
    if (model->chat_template.len == 0)
        return json_string("none");
    int r = chat_template_new(model->chat_template, name_of(tokenizer, tokenizer_bos(tokenizer)),
                              name_of(tokenizer, tokenizer_eos(tokenizer)), &compiled, &err);
    if (r == -ENOMEM)
        return NULL;
    if (r < 0)
        return json_sprintf("cannot be used: %s", err.text);
    chat_template_free(compiled);
    return json_sprintf("%zu bytes", model->chat_template.len);
}

/* How the model calls tools and thinks, as its template shows it. NULL without memory. */
static json_t *dialect_json(const struct model *model, const struct tokenizer *tokenizer)
{
    const struct ids_view ends = tokenizer_end_ids(tokenizer);
    struct bytes *stops = calloc(ends.n + 1, sizeof *stops);
    struct chat_template *compiled = NULL;
    struct model_dialect dialect;
    struct error err = {0};
    dialect_init(&dialect);
    int r = stops ? 0 : -ENOMEM;
    for (size_t i = 0; i < ends.n && r == 0; i++)
        stops[i] = tokenizer_name(tokenizer, ends.items[i]);
    if (r == 0)
        r = chat_template_new(model->chat_template, name_of(tokenizer, tokenizer_bos(tokenizer)),
                              name_of(tokenizer, tokenizer_eos(tokenizer)), &compiled, &err);
    if (r == 0) {
        chat_template_permit_changes(compiled);
        r = dialect_derive(compiled, model->chat_template, (struct dialect_stops){stops, ends.n}, &dialect);
    }
    json_t *json = r == 0 ? dialect_write(&dialect) : r == -ENOMEM ? NULL : json_object();
    dialect_deinit(&dialect);
    chat_template_free(compiled);
    free(stops);
    return json;
}

static json_t *kind_json(const struct gguf *gguf, const char *key)
{
    struct bytes kind = {0};
    if (gguf_string(gguf, key, &kind, NULL) != 0)
        return json_null();
    json_t *text = json_stringn(kind.data, kind.len);
    return text ? text : json_string("?");
}

json_t *inspect_text(const struct model *model)
{
    struct tokenizer *tokenizer;
    struct error err = {0};
    int r = tokenizer_new(model->gguf, &tokenizer, &err);
    if (r == -ENOMEM)
        return NULL;
    if (r < 0)
        return json_pack("{s:o}", "tokenizer", json_sprintf("cannot be used: %s", err.text));
    const struct ids_view ends = tokenizer_end_ids(tokenizer);
    json_t *end = json_array();
    for (size_t i = 0; i < ends.n; i++)
        json_array_append_new(end, token_json(tokenizer, ends.items[i]));
    json_t *text = json_pack(
        "{s:o, s:o, s:i, s:o, s:b, s:o, s:o}", "tokenizer", kind_json(model->gguf, "tokenizer.ggml.model"),
        "pre_tokenizer", kind_json(model->gguf, "tokenizer.ggml.pre"), "tokens",
        (int)tokenizer_size(tokenizer), "begin", token_json(tokenizer, tokenizer_bos(tokenizer)),
        "adds_begin", tokenizer_adds_bos(tokenizer), "ends", end, "chat_template",
        template_json(model, tokenizer));
    tokenizer_free(tokenizer);
    return text;
}

json_t *inspect_dialect(const struct model *model)
{
    struct tokenizer *tokenizer;
    struct error err = {0};
    int r = model->chat_template.len > 0 ? tokenizer_new(model->gguf, &tokenizer, &err) : -EINVAL;
    if (r < 0)
        return r == -ENOMEM ? NULL : json_object();
    json_t *json = dialect_json(model, tokenizer);
    tokenizer_free(tokenizer);
    return json;
}

/* Bytes that a token has of a layer's cache. */
static uint64_t layer_bytes(const struct layer_traits *layer)
{
    const uint64_t dim = layer->heads.dim, numbers = dim + (dim + 7) / 8 * 8;
    return layer_has_kv(layer) ? layer->heads.n_kv * numbers * sizeof(uint16_t) : 0;
}

/* What the states of recurrent layers take, `bytes` each. Adds it to `json`; returns the sum. */
static uint64_t add_states(json_t *json, uint64_t bytes, uint32_t n, bool drafts)
{
    const uint64_t states = n * bytes, spares = drafts ? backend_spares_for(n) * bytes : 0;
    const uint64_t snapshots = backend_snapshots_for(bytes, n, UINT64_MAX) * bytes;
    json_object_update_new(json, json_pack("{s:I, s:I, s:I}", "bytes_of_a_state", (json_int_t)bytes, "states",
                                           (json_int_t)states, "snapshots", (json_int_t)snapshots));
    if (drafts)
        json_object_set_new(json, "draft_snapshots", json_integer((json_int_t)spares));
    return states + snapshots + spares;
}

json_t *inspect_memory(const struct model *model, uint32_t n, uint32_t context, bool drafts)
{
    const uint32_t n_layers = model->params.n_layers;
    struct backend_group groups[BACKEND_MOST_GROUPS];
    uint64_t weights = 0, caches = 0, token = 0, state = 0, states = 0, in_group[BACKEND_MOST_GROUPS] = {0};
    context = context ? context : model->params.n_context;
    for (size_t i = 0; i < gguf_n_tensors(model->gguf); i++)
        weights += gguf_tensor_at(model->gguf, i)->size;
    const uint32_t n_groups = kv_groups_of(model, context, groups);
    for (uint32_t l = 0; l < n_layers; l++) {
        const uint64_t bytes = layer_bytes(&model->layers[l].traits);
        if (bytes > 0)
            in_group[kv_group_of(groups, n_groups, model, l, context)] += bytes;
        token += bytes;
        state += layer_state_numbers(&model->layers[l].traits) * sizeof(float);
    }
    for (uint32_t g = 0; g < n_groups; g++)
        caches += kv_group_wants(&groups[g], n, context, STEP_ROWS) * BACKEND_BLOCK_TOKENS * in_group[g];
    json_t *json =
        json_pack("{s:I, s:I, s:I, s:I}", "sequences", (json_int_t)n, "context", (json_int_t)context,
                  "bytes_of_a_token", (json_int_t)token, "keys_and_values", (json_int_t)caches);
    if (state > 0)
        states = add_states(json, state, n, drafts);
    json_object_update_new(json, json_pack("{s:I, s:I}", "weights", (json_int_t)weights, "together",
                                           (json_int_t)(caches + states + weights)));
    return json;
}
