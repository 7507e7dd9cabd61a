/* SPDX-License-Identifier: MIT */
/* The order in which models were trained:
 *
 *     BOS  [REPOSITORY name]  [FILE name text] …  [FILE name]  PREFIX before  SUFFIX behind  MIDDLE
 *
 * What stands in brackets is there with other files only; a model without those tokens gets their texts with
 * a line before each. */

#include "worker/prepare/infill.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#define NO_SEPARATOR "\n\n--- snippet ---\n\n"
#define MOST_FILES   1024

/* The parts of a prompt under way. */
struct filling {
    const struct tokenizer *tokenizer;
    struct ids files, core;
    size_t ends[MOST_FILES]; /* [n] where each file ends in `files` */
    size_t n;
    struct refusal *refusal;
};

static bool add_token(struct filling *filling, struct ids *ids, enum fim_token token)
{
    int32_t id = tokenizer_fim(filling->tokenizer, token);
    return id == TOKENIZER_NONE || ids_push(ids, id) == 0 ||
           refuse(filling->refusal, PROTO_INTERNAL, "out of memory for the text");
}

static bool add_text(struct filling *filling, struct ids *ids, struct bytes text)
{
    int r = tokenizer_encode(filling->tokenizer, text, 0, ids);
    if (r == -EILSEQ)
        return refuse(filling->refusal, PROTO_BAD_REQUEST, "the text is not UTF-8");
    return r == 0 || refuse(filling->refusal, PROTO_INTERNAL, "out of memory for the text");
}

static bool add_line(struct filling *filling, struct ids *ids, const char *text)
{
    return add_text(filling, ids, bytes_of_string(text)) && add_text(filling, ids, BYTES_LITERAL("\n"));
}

static bool add_file(struct filling *filling, const json_t *file, size_t i)
{
    const char *name = json_string_value(json_object_get(file, "filename"));
    const json_t *text = json_object_get(file, "text");
    if (!name || !json_is_string(text))
        return refuse(filling->refusal, PROTO_BAD_REQUEST, "files: entry %zu lacks filename or text", i);
    bool separate = tokenizer_fim(filling->tokenizer, FIM_FILE) != TOKENIZER_NONE;
    bool good =
        separate ? add_token(filling, &filling->files, FIM_FILE) && add_line(filling, &filling->files, name)
                 : add_text(filling, &filling->files, BYTES_LITERAL(NO_SEPARATOR));
    good = good && add_text(filling, &filling->files,
                            (struct bytes){json_string_value(text), json_string_length(text)});
    filling->ends[filling->n++] = filling->files.len;
    return good;
}

static bool add_files(struct filling *filling, struct bytes files)
{
    json_error_t error;
    json_t *array = files.len > 0 ? json_loadb(files.data, files.len, JSON_REJECT_DUPLICATES, &error) : NULL,
           *file;
    size_t i;
    bool good = files.len == 0 || (json_is_array(array) && json_array_size(array) <= MOST_FILES) ||
                refuse(filling->refusal, PROTO_BAD_REQUEST, "files: expected an array of at most %d objects",
                       MOST_FILES);
    json_array_foreach(array, i, file)
    {
        good = good && add_file(filling, file, i);
    }
    json_decref(array);
    return good;
}

/* PREFIX before SUFFIX behind MIDDLE. */
static bool add_core(struct filling *filling, const struct prompt *prompt)
{
    struct ids *core = &filling->core;
    return add_token(filling, core, FIM_PREFIX) && add_text(filling, core, prompt->text) &&
           add_token(filling, core, FIM_SUFFIX) && add_text(filling, core, prompt->suffix) &&
           add_token(filling, core, FIM_MIDDLE);
}

/* Puts it together, without the first files that do not fit. */
static bool finish(struct filling *filling, uint32_t most_tokens, struct ids *ret_ids)
{
    const struct tokenizer *tokenizer = filling->tokenizer;
    const size_t most = most_tokens - most_tokens / 4, fixed = filling->core.len + 32;
    size_t left_out = 0, n = 0;
    while (n < filling->n && most_tokens > 0 && filling->files.len - left_out + fixed > most)
        left_out = filling->ends[n++];
    bool good = true;
    if (tokenizer_adds_bos(tokenizer))
        good = ids_push(ret_ids, tokenizer_bos(tokenizer)) == 0;
    if (good && n < filling->n && tokenizer_fim(tokenizer, FIM_REPOSITORY) != TOKENIZER_NONE)
        good = add_token(filling, ret_ids, FIM_REPOSITORY) && add_line(filling, ret_ids, "repository");
    good = good && ids_append(ret_ids, filling->files.data + left_out, filling->files.len - left_out) == 0;
    if (good && n < filling->n && tokenizer_fim(tokenizer, FIM_FILE) != TOKENIZER_NONE)
        good = add_token(filling, ret_ids, FIM_FILE) && add_line(filling, ret_ids, "file");
    good = good && ids_append(ret_ids, filling->core.data, filling->core.len) == 0;
    return good || refuse(filling->refusal, PROTO_INTERNAL, "out of memory for the text");
}

bool infill_encode(const struct prompt_encoder *encoder, const struct prompt *prompt, struct ids *ret_ids,
                   struct refusal *ret_refusal)
{
    static const char *const keys[] = {"fim_pre", "fim_suf", "fim_mid"};
    for (int i = FIM_PREFIX; i <= FIM_MIDDLE; i++)
        if (tokenizer_fim(encoder->tokenizer, (enum fim_token)i) == TOKENIZER_NONE)
            return refuse(ret_refusal, PROTO_UNSUPPORTED,
                          "suffix: the model does not support infilling: its tokenizer has no %s token",
                          keys[i]);
    if (prompt->text.len > encoder->most_bytes || prompt->suffix.len > encoder->most_bytes)
        return refuse(ret_refusal, PROTO_TOO_LONG, "the text around the gap does not fit the context");
    struct filling *filling = calloc(1, sizeof *filling);
    if (!filling)
        return refuse(ret_refusal, PROTO_INTERNAL, "out of memory for the text");
    filling->tokenizer = encoder->tokenizer;
    filling->refusal = ret_refusal;
    bool good = add_files(filling, prompt->files) && add_core(filling, prompt) &&
                finish(filling, encoder->most_tokens, ret_ids);
    ids_deinit(&filling->files);
    ids_deinit(&filling->core);
    free(filling);
    return good;
}
