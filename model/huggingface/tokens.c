/* SPDX-License-Identifier: MIT */
/* Vocabulary, merges, special tokens and chat template.
 *
 * A token's id is its place in GGUF's list; places that no token has are filled with unused ones. Texts stay
 * in the JSON that they were read from until they are written. A SentencePiece vocabulary has scores in GGUF
 * and an order of merges here: each token's score is the rank of the first merge that makes it, the earliest
 * highest. */

#include "model/huggingface/tokens.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "model/huggingface/json_values.h"
#include "model/huggingface/tokens_kind.h"
#include "text/tokenizer/tokenizer.h"
#include "gguf/gguf_writer.h"

#define MOST_TOKENIZER ((size_t)256 << 20)
#define MOST_CONFIG    ((size_t)16 << 20)
#define MOST_TEMPLATE  ((size_t)1 << 20)

/* Ids without a token; far above any published vocabulary's. */
#define MOST_GAPS 65536

#define MOST_ENDS 3 /* that GGUF has keys for */

struct list {
    struct bytes *texts; /* [n] by id; no data: a gap */
    int32_t *types;      /* [n] enum token_type */
    float *scores;       /* [n] */
    uint32_t n;
    char (*gaps)[16]; /* their names */
};

static void list_deinit(struct list *list)
{
    free(list->texts);
    free(list->types);
    free(list->scores);
    free(list->gaps);
}

/* ---- vocabulary ---- */

static int read_id(const json_t *value, uint64_t most, const char *what, uint32_t *ret_id, struct error *err)
{
    char shown[64];
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > most)
        return error_set(err, -EINVAL, "the id of token %s is not a number from 0 to %" PRIu64,
                         utf8_printable(bytes_of_string(what), sizeof shown, shown), most);
    *ret_id = (uint32_t)json_integer_value(value);
    return 0;
}

static struct bytes text_of(const json_t *text)
{
    return (struct bytes){json_string_value(text), json_string_length(text)};
}

static int take_id(struct list *list, uint32_t id, struct bytes text, enum token_type type, struct error *err)
{
    char shown[64];
    if (list->texts[id].data && !bytes_equal(list->texts[id], text))
        return error_set(err, -EINVAL, "id %u has two tokens, one of them %s", id,
                         utf8_printable(text, sizeof shown, shown));
    list->texts[id] = text;
    list->types[id] = type;
    if (id >= list->n)
        list->n = id + 1;
    return 0;
}

static bool is_byte_token(const char *text)
{
    return strlen(text) == 6 && strncmp(text, "<0x", 3) == 0 && text[5] == '>';
}

static int take_words(struct list *list, json_t *words, uint64_t most, bool bytes_too, struct error *err)
{
    const char *text;
    json_t *value;
    json_object_foreach(words, text, value)
    {
        uint32_t id = 0;
        int r = read_id(value, most, text, &id, err);
        if (r == 0)
            r = take_id(list, id, bytes_of_string(text),
                        bytes_too && is_byte_token(text) ? TOKEN_BYTE : TOKEN_NORMAL, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Are they spelled in texts, though their authors call them special? */
static bool is_spelled(const char *text)
{
    static const char *const spelled[] = {"<|channel>",   "<channel|>",       "<|tool_call>",
                                          "<tool_call|>", "<|tool_response>", "<tool_response|>",
                                          "<|\"|>"};
    for (size_t i = 0; i < sizeof spelled / sizeof spelled[0]; i++)
        if (strcmp(spelled[i], text) == 0)
            return true;
    return false;
}

static int take_added(struct list *list, const json_t *added, bool gemma4, uint64_t most, struct error *err)
{
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *token = json_array_get(added, i), *content = json_object_get(token, "content");
        char shown[64];
        uint32_t id = 0;
        if (!json_is_string(content) || json_string_length(content) == 0)
            return error_set(err, -EINVAL, "added_tokens: entry %zu has no content", i);
        int r = read_id(json_object_get(token, "id"), most, json_string_value(content), &id, err);
        if (r < 0)
            return error_prefix(err, r, "added_tokens");
        const char *const refused[] = {"lstrip", "rstrip", "single_word"};
        for (size_t f = 0; f < sizeof refused / sizeof refused[0]; f++)
            if (json_is_true(json_object_get(token, refused[f])))
                return error_set(err, -EINVAL, "added_tokens: %s of %s is not supported", refused[f],
                                 utf8_printable(text_of(content), sizeof shown, shown));
        bool special = json_is_true(json_object_get(token, "special")) &&
                       !(gemma4 && is_spelled(json_string_value(content)));
        r = take_id(list, id, text_of(content), special ? TOKEN_CONTROL : TOKEN_USER_DEFINED, err);
        if (r < 0)
            return error_prefix(err, r, "added_tokens");
    }
    return 0;
}

/* There may be more than MOST_GAPS, where words are added tokens too. */
static int fill_gaps(struct list *list)
{
    uint32_t n = 0;
    for (uint32_t id = 0; id < list->n; id++)
        n += !list->texts[id].data;
    list->gaps = calloc(n + 1, sizeof *list->gaps);
    if (!list->gaps)
        return -ENOMEM;
    n = 0;
    for (uint32_t id = 0; id < list->n; id++)
        if (!list->texts[id].data) {
            snprintf(list->gaps[n], sizeof list->gaps[n], "[PAD%u]", id);
            list->texts[id] = bytes_of_string(list->gaps[n++]);
            list->types[id] = TOKEN_UNUSED;
        }
    return 0;
}

static int take_vocabulary(struct list *list, const json_t *tokenizer, const struct tokens_kind *kind,
                           struct error *err)
{
    const json_t *model = json_object_get(tokenizer, "model"),
                 *added = json_object_get(tokenizer, "added_tokens");
    json_t *words = json_object_get(model, "vocab");
    const uint64_t n = json_object_size(words) + json_array_size(added);
    if (!json_is_object(words) || json_object_size(words) == 0)
        return error_set(err, -EINVAL, "model: vocab is missing or empty");
    list->texts = calloc(n + MOST_GAPS, sizeof *list->texts);
    list->types = calloc(n + MOST_GAPS, sizeof *list->types);
    if (!list->texts || !list->types)
        return -ENOMEM;
    int r = take_words(list, words, n + MOST_GAPS - 1, !kind->pre, err);
    if (r < 0)
        return error_prefix(err, r, "model: vocab");
    r = take_added(list, added, kind->gemma4, n + MOST_GAPS - 1, err);
    return r < 0 ? r : fill_gaps(list);
}

static const json_t *word(const json_t *tokenizer, const char *text)
{
    return json_object_get(json_object_get(json_object_get(tokenizer, "model"), "vocab"), text);
}

/* The id of a special token: an added one's, or a word's; or TOKENIZER_NONE. */
static int64_t id_of(const json_t *tokenizer, const char *text)
{
    const json_t *added = json_object_get(tokenizer, "added_tokens");
    for (size_t i = 0; text && i < json_array_size(added); i++) {
        const json_t *token = json_array_get(added, i);
        const char *content = json_string_value(json_object_get(token, "content"));
        if (content && strcmp(content, text) == 0)
            return json_integer_value(json_object_get(token, "id"));
    }
    const json_t *found = text ? word(tokenizer, text) : NULL;
    return found ? json_integer_value(found) : TOKENIZER_NONE;
}

/* ---- merges ---- */

/* "left right", or ["left", "right"]; neither has a space. */
static int split_merge(const json_t *merge, size_t i, const char **ret_left, size_t *ret_left_len,
                       const char **ret_right, struct error *err)
{
    const char *left = json_string_value(merge), *right = NULL;
    size_t len = 0;
    if (left) {
        const char *space = strchr(left, ' ');
        len = space ? (size_t)(space - left) : 0;
        right = space ? space + 1 : NULL;
    } else if (json_array_size(merge) == 2) {
        left = json_string_value(json_array_get(merge, 0));
        right = json_string_value(json_array_get(merge, 1));
        len = left ? strlen(left) : 0;
    }
    if (!left || !right || len == 0 || right[0] == '\0' || memchr(left, ' ', len) || strchr(right, ' '))
        return error_set(err, -EINVAL, "model: merges: entry %zu is not a pair of tokens", i);
    *ret_left = left;
    *ret_left_len = len;
    *ret_right = right;
    return 0;
}

/* Appends each merge as GGUF has it to `texts`, zero-terminated, and notes ranks as scores. */
static int read_merges(const json_t *tokenizer, struct list *list, struct buffer *texts, struct error *err)
{
    const json_t *merges = json_object_get(json_object_get(tokenizer, "model"), "merges");
    int r = json_is_array(merges) ? 0 : error_set(err, -EINVAL, "model: merges is missing");
    for (size_t i = 0; r == 0 && i < json_array_size(merges); i++) {
        const char *left = "", *right = "";
        size_t left_len = 0, start = texts->len;
        r = split_merge(json_array_get(merges, i), i, &left, &left_len, &right, err);
        if (r == 0)
            r = buffer_append(texts, left, left_len);
        if (r == 0 && list->scores)
            r = buffer_append(texts, right, strlen(right) + 1);
        if (r == 0 && list->scores) { /* the whole, looked up and dropped */
            const json_t *whole = word(tokenizer, (const char *)texts->data + start);
            if (!whole)
                return error_set(err, -EINVAL,
                                 "model: merges: entry %zu does not make a token of the vocabulary", i);
            float *score = &list->scores[json_integer_value(whole)];
            *score = *score < -1e8f ? -(float)i : *score;
            texts->len = start;
        } else if (r == 0) {
            r = buffer_append(texts, " ", 1);
            if (r == 0)
                r = buffer_append(texts, right, strlen(right) + 1);
        }
    }
    return r;
}

static int write_merges(const struct buffer *texts, struct gguf_writer *writer)
{
    size_t n = 0;
    for (size_t i = 0; i < texts->len; i++)
        n += texts->data[i] == 0;
    struct bytes *items = calloc(n + 1, sizeof *items);
    if (!items)
        return -ENOMEM;
    const char *at = (const char *)texts->data;
    for (size_t i = 0; i < n; at += items[i].len + 1, i++)
        items[i] = bytes_of_string(at);
    int r = gguf_writer_strings(writer, "tokenizer.ggml.merges", items, n);
    free(items);
    return r;
}

static int write_list(const json_t *tokenizer, const struct tokens_kind *kind, struct list *list,
                      struct gguf_writer *writer, struct error *err)
{
    struct buffer merges = {0};
    int r = 0;
    if (!kind->pre && !kind->gemma4) { /* what no merge makes is the last resort */
        list->scores = calloc(list->n, sizeof *list->scores);
        for (uint32_t id = 0; list->scores && id < list->n; id++)
            list->scores[id] = -1e9f;
        r = list->scores ? 0 : -ENOMEM;
    }
    if (r == 0)
        r = read_merges(tokenizer, list, &merges, err);
    if (r == 0)
        r = gguf_writer_strings(writer, "tokenizer.ggml.tokens", list->texts, list->n);
    if (r == 0)
        r = gguf_writer_i32s(writer, "tokenizer.ggml.token_type", list->types, list->n);
    if (r == 0 && list->scores)
        r = gguf_writer_f32s(writer, "tokenizer.ggml.scores", list->scores, list->n);
    if (r == 0 && !list->scores)
        r = write_merges(&merges, writer);
    buffer_deinit(&merges);
    return r;
}

/* ---- special tokens and template ---- */

/* A token in tokenizer_config.json: a text, or an object with one. */
static const char *token_text(const json_t *config, const char *key)
{
    const json_t *token = json_object_get(config, key);
    return json_string_value(json_is_object(token) ? json_object_get(token, "content") : token);
}

/* Ids that end an answer: the tokenizer's, then generation_config.json's. */
static int collect_ends(const json_t *generation, int64_t eos, uint32_t n, int64_t ends[MOST_ENDS],
                        uint32_t *ret_n, struct error *err)
{
    const json_t *said = json_object_get(generation, "eos_token_id");
    const size_t n_said = json_is_array(said) ? json_array_size(said) : said && !json_is_null(said);
    uint32_t found = 0;
    if (eos >= 0)
        ends[found++] = eos;
    for (size_t i = 0; i < n_said; i++) {
        const json_t *value = json_is_array(said) ? json_array_get(said, i) : said;
        if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) >= n)
            return error_set(err, -EINVAL,
                             "generation_config.json: eos_token_id is not an id of the %u tokens", n);
        bool known = false;
        for (uint32_t e = 0; e < found; e++)
            known |= ends[e] == json_integer_value(value);
        if (!known && found == MOST_ENDS)
            return error_set(err, -EINVAL, "generation_config.json: eos_token_id: at most %d are allowed",
                             MOST_ENDS);
        if (!known)
            ends[found++] = json_integer_value(value);
    }
    *ret_n = found;
    return 0;
}

struct sides {
    const json_t *tokenizer, *config, *generation;
    const struct tokens_kind *kind;
    struct list *list;
};

static int write_specials(const struct sides *sides, struct gguf_writer *writer, struct error *err)
{
    static const char *const end_keys[MOST_ENDS] = {
        "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
    const struct tokens_kind *kind = sides->kind;
    bool add_bos = kind->before != NULL, add_eos = kind->behind != NULL;
    const char *bos_text = token_text(sides->config, "bos_token");
    const int64_t bos = id_of(sides->tokenizer, add_bos && !bos_text ? kind->before : bos_text);
    int64_t ends[MOST_ENDS];
    uint32_t n_ends = 0;
    const char *eos_text = token_text(sides->config, "eos_token");
    const int64_t eos = id_of(sides->tokenizer, add_eos && !eos_text ? kind->behind : eos_text);
    if (add_bos && bos != id_of(sides->tokenizer, kind->before))
        return error_set(err, -EINVAL,
                         "tokenizer.json: post_processor begins with a token other than bos_token");
    if (add_eos && eos != id_of(sides->tokenizer, kind->behind))
        return error_set(err, -EINVAL,
                         "tokenizer.json: post_processor ends with a token other than eos_token");
    int r = json_read_flag(sides->config, "add_bos_token", &add_bos, err);
    if (r >= 0)
        r = json_read_flag(sides->config, "add_eos_token", &add_eos, err);
    if (r < 0)
        return error_prefix(err, r, "tokenizer_config.json");
    r = collect_ends(sides->generation, eos, sides->list->n, ends, &n_ends, err);
    if (r == 0 && bos >= 0)
        r = gguf_writer_u32(writer, "tokenizer.ggml.bos_token_id", (uint32_t)bos);
    for (uint32_t i = 0; i < n_ends && r == 0; i++)
        r = gguf_writer_u32(writer, end_keys[i], (uint32_t)ends[i]);
    if (r == 0)
        r = gguf_writer_bool(writer, "tokenizer.ggml.add_bos_token", add_bos && bos >= 0);
    if (r == 0)
        r = gguf_writer_bool(writer, "tokenizer.ggml.add_eos_token", add_eos && eos >= 0);
    return r;
}

static int write_kind(const struct sides *sides, struct gguf_writer *writer)
{
    const struct tokens_kind *kind = sides->kind;
    const json_t *model = json_object_get(sides->tokenizer, "model");
    int64_t unknown = id_of(sides->tokenizer, json_string_value(json_object_get(model, "unk_token")));
    int r = gguf_writer_string(writer, "tokenizer.ggml.model",
                               kind->pre      ? "gpt2"
                               : kind->gemma4 ? "gemma4"
                                              : "llama");
    if (r == 0 && kind->pre)
        r = gguf_writer_string(writer, "tokenizer.ggml.pre", kind->pre);
    if (r == 0 && kind->says_whole)
        r = gguf_writer_bool(writer, "tokenizer.whole_words", kind->whole_words);
    if (r == 0 && kind->nfc)
        r = gguf_writer_string(writer, "tokenizer.normalizer", "NFC");
    if (r == 0 && !kind->pre)
        r = gguf_writer_bool(writer, "tokenizer.ggml.add_space_prefix", kind->space_prefix);
    if (r == 0 && !kind->pre && unknown >= 0) {
        sides->list->types[unknown] = TOKEN_UNKNOWN;
        r = gguf_writer_u32(writer, "tokenizer.ggml.unknown_token_id", (uint32_t)unknown);
    }
    return r;
}

/* A file of its own; else one of tokenizer_config.json, of several the one called default. */
static int write_template(struct bytes chat, const json_t *config, struct gguf_writer *writer,
                          struct error *err)
{
    const json_t *said = json_object_get(config, "chat_template");
    struct gguf_pair pair = {.key = BYTES_LITERAL("tokenizer.chat_template"), .value.type = GGUF_STRING};
    for (size_t i = 0; i < json_array_size(said); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(said, i), "name"));
        if (name && strcmp(name, "default") == 0)
            pair.value.string = text_of(json_object_get(json_array_get(said, i), "template"));
    }
    if (json_is_string(said))
        pair.value.string = text_of(said);
    else if (said && !json_is_null(said) && !pair.value.string.data && chat.len == 0)
        return error_set(
            err, -EINVAL,
            "tokenizer_config.json: chat_template is neither a string nor a list with one named default");
    if (chat.len > 0)
        pair.value.string = chat;
    if (pair.value.string.len > MOST_TEMPLATE)
        return error_set(err, -EINVAL, "the chat template has %zu bytes; at most %zu are read",
                         pair.value.string.len, MOST_TEMPLATE);
    return pair.value.string.len > 0 ? gguf_writer_pair(writer, &pair) : 0;
}

/* ---- the whole ---- */

static int write_all(struct sides *sides, const struct tokens_files *files, struct gguf_writer *writer,
                     struct error *err)
{
    struct tokens_kind kind;
    struct list list = {0};
    int r = tokens_kind_of(sides->tokenizer, &kind, err);
    kind.gemma4 = r == 0 && files->gemma4 && !kind.pre && !kind.space_prefix;
    if (r == 0)
        r = take_vocabulary(&list, sides->tokenizer, &kind, err);
    sides->kind = &kind;
    sides->list = &list;
    if (r == 0)
        r = write_kind(sides, writer);
    if (r == 0)
        r = write_list(sides->tokenizer, &kind, &list, writer, err);
    if (r < 0)
        error_prefix(err, r, "tokenizer.json");
    else
        r = write_specials(sides, writer, err);
    list_deinit(&list);
    return r < 0 ? r : write_template(files->chat, sides->config, writer, err);
}

static int parse(struct bytes text, size_t most, const char *name, json_t **ret_json, struct error *err)
{
    int r = text.len > 0 ? json_object_parse(text, most, ret_json, err) : 0;
    return r < 0 ? error_prefix(err, r, "%s", name) : 0;
}

/* How the authors want it sampled, under the keys that GGUF files have for it (model/sampling_hints.h). */
static int write_sampling(const json_t *generation, struct gguf_writer *writer)
{
    static const struct {
        const char *name, *key;
        bool count;
    } known[] = {{"temperature", "general.sampling.temp", false},
                 {"top_k", "general.sampling.top_k", true},
                 {"top_p", "general.sampling.top_p", false},
                 {"min_p", "general.sampling.min_p", false},
                 {"typical_p", "general.sampling.typical_p", false},
                 {"repetition_penalty", "general.sampling.penalty_repeat", false}};
    int r = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known && r == 0; i++) {
        const json_t *value = json_object_get(generation, known[i].name);
        double number = json_number_value(value);
        if (!json_is_number(value) || (known[i].count && (number < 0 || number > INT32_MAX)))
            continue;
        r = known[i].count ? gguf_writer_u32(writer, known[i].key, (uint32_t)number)
                           : gguf_writer_f32(writer, known[i].key, (float)number);
    }
    return r;
}

int tokens_write(const struct tokens_files *files, struct gguf_writer *writer, struct error *err)
{
    json_t *tokenizer = NULL, *config = NULL, *generation = NULL;
    int r = files->tokenizer.len > 0 ? 0 : error_set(err, -EINVAL, "tokenizer.json is empty");
    if (r == 0)
        r = parse(files->tokenizer, MOST_TOKENIZER, "tokenizer.json", &tokenizer, err);
    if (r == 0)
        r = parse(files->config, MOST_CONFIG, "tokenizer_config.json", &config, err);
    if (r == 0)
        r = parse(files->generation, MOST_CONFIG, "generation_config.json", &generation, err);
    if (r == 0) {
        struct sides sides = {.tokenizer = tokenizer, .config = config, .generation = generation};
        r = write_all(&sides, files, writer, err);
        if (r == 0)
            r = write_sampling(generation, writer);
    }
    json_decref(tokenizer);
    json_decref(config);
    json_decref(generation);
    return r;
}
