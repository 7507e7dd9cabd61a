/* SPDX-License-Identifier: MIT */
/* A tokenizer.json is a pipeline of parts with parameters. Only pipelines that do exactly what one of
 * text/tokenizer's does are taken, and everything that a part may say is looked at. */

#include "model/huggingface/tokens_kind.h"

#include <errno.h>
#include <string.h>

#include "common/utf8.h"
#include "model/huggingface/json_values.h"

#define SPACE "\xe2\x96\x81" /* U+2581 */

#define LLAMA3_WORDS(digits)                                                                                 \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits                                     \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

#define CAPITALS "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define SMALLS   "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
#define CASED_WORDS(contraction, digits)                                                                     \
    "[^\\r\\n\\p{L}\\p{N}]?[" CAPITALS "]*[" SMALLS "]+" contraction "|[^\\r\\n\\p{L}\\p{N}]?[" CAPITALS     \
    "]+[" SMALLS "]*" contraction "|" digits                                                                 \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* Expressions as files have them, and the name of what splits by it. Names in GGUF also say whether words
 * that are tokens are taken whole; where there is one for either, the other stands behind it. */
static const struct expression {
    const char *text;
    const char *pre;
    bool whole; /* what that name says */
    const char *other;
} expressions[] = {{LLAMA3_WORDS("\\p{N}{1,3}"), "smaug-bpe", false, "llama-bpe"},
                   {LLAMA3_WORDS("\\p{N}"), "qwen2", false, NULL},
                   {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"
                    "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
                    "qwen35", false, NULL},
                   {CASED_WORDS("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "\\p{N}{1,3}"), "gpt-4o", false, NULL},
                   {CASED_WORDS("", "\\p{N}"), "tekken", true, NULL},
                   {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}"
                    "| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
                    "seed-coder", false, NULL}};

static int refuse(struct error *err, const char *key, const char *found)
{
    char shown[64];
    return error_set(
        err, -EINVAL, "%s: %s is not supported", key,
        utf8_printable(bytes_of_string(found[0] ? found : "what has no type"), sizeof shown, shown));
}

static bool is_flag(const json_t *object, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(object, key);
    return value ? json_is_true(value) : otherwise;
}

static bool is_text(const json_t *value, const char *text)
{
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

/* Nothing, or an empty text. */
static bool is_blank(const json_t *value)
{
    return !value || json_is_null(value) || is_text(value, "");
}

/* A part, or the parts of a sequence of them: those under `list`. */
static size_t count_parts(const json_t *part, const char *list)
{
    if (!part || json_is_null(part))
        return 0;
    return strcmp(json_type_name(part), "Sequence") == 0 ? json_array_size(json_object_get(part, list)) : 1;
}

static const json_t *part_at(const json_t *part, const char *list, size_t i)
{
    return strcmp(json_type_name(part), "Sequence") == 0 ? json_array_get(json_object_get(part, list), i)
                                                         : part;
}

static int check_model(const json_t *model, struct error *err)
{
    if (strcmp(json_type_name(model), "BPE") != 0)
        return refuse(err, "model", json_type_name(model));
    const char *const blank[] = {"continuing_subword_prefix", "end_of_word_suffix", "dropout"};
    for (size_t i = 0; i < sizeof blank / sizeof blank[0]; i++) {
        const json_t *value = json_object_get(model, blank[i]);
        if (!is_blank(value) && !(json_is_number(value) && json_number_value(value) == 0))
            return error_set(err, -EINVAL, "model: %s is not supported", blank[i]);
    }
    return 0;
}

/* ---- BPE of bytes ---- */

static bool is_byte_level(const json_t *part, bool splits)
{
    return strcmp(json_type_name(part), "ByteLevel") == 0 && !is_flag(part, "add_prefix_space", true) &&
           is_flag(part, "use_regex", true) == splits;
}

/* Every character is in some match, so that what matches can be kept apart or all else removed. */
static const struct expression *split_by(const json_t *part)
{
    const json_t *expression = json_object_get(json_object_get(part, "pattern"), "Regex"),
                 *behavior = json_object_get(part, "behavior");
    const bool inverted = is_flag(part, "invert", false);
    if (strcmp(json_type_name(part), "Split") != 0 || !is_text(behavior, inverted ? "Removed" : "Isolated"))
        return NULL;
    for (size_t i = 0; i < sizeof expressions / sizeof expressions[0]; i++)
        if (is_text(expression, expressions[i].text))
            return &expressions[i];
    return NULL;
}

static void name_expression(const struct expression *expression, struct tokens_kind *kind)
{
    const bool other = kind->whole_words != expression->whole;
    kind->pre = other && expression->other ? expression->other : expression->pre;
    kind->says_whole = other && !expression->other;
}

static int name_pretokenizer(const json_t *tokenizer, struct tokens_kind *kind, struct error *err)
{
    const json_t *pre = json_object_get(tokenizer, "pre_tokenizer");
    const size_t n = count_parts(pre, "pretokenizers");
    const json_t *first = part_at(pre, "pretokenizers", 0), *second = part_at(pre, "pretokenizers", 1);
    kind->whole_words = is_flag(json_object_get(tokenizer, "model"), "ignore_merges", false);
    kind->says_whole = kind->whole_words;
    if (n == 1 && is_byte_level(first, true))
        kind->pre = "gpt-2";
    if (n == 2 && is_byte_level(second, false) && split_by(first))
        name_expression(split_by(first), kind);
    if (n == 2 && is_byte_level(second, true) && strcmp(json_type_name(first), "Digits") == 0 &&
        is_flag(first, "individual_digits", false))
        kind->pre = "smollm";
    return kind->pre ? 0 : refuse(err, "pre_tokenizer", "this way of splitting texts");
}

static int check_bytes(const json_t *tokenizer, struct tokens_kind *kind, struct error *err)
{
    const json_t *normalizer = json_object_get(tokenizer, "normalizer");
    for (size_t i = 0; i < count_parts(normalizer, "normalizers"); i++) {
        const char *type = json_type_name(part_at(normalizer, "normalizers", i));
        if (strcmp(type, "NFC") != 0)
            return refuse(err, "normalizer", type);
        kind->nfc = true;
    }
    return name_pretokenizer(tokenizer, kind, err);
}

/* ---- SentencePiece's ---- */

/* Gemma's: no text has a space when its turn comes. */
static bool splits_at_spaces(const json_t *pre)
{
    return strcmp(json_type_name(pre), "Split") == 0 && !is_flag(pre, "invert", false) &&
           is_text(json_object_get(json_object_get(pre, "pattern"), "String"), " ");
}

/* Spaces are written as U+2581, and one is put in front, by the normalizer or by the pre-tokenizer. */
static int check_characters(const json_t *tokenizer, struct tokens_kind *kind, struct error *err)
{
    const json_t *normalizer = json_object_get(tokenizer, "normalizer");
    const json_t *pre = json_object_get(tokenizer, "pre_tokenizer");
    bool replaced = false;
    for (size_t i = 0; i < count_parts(normalizer, "normalizers"); i++) {
        const json_t *part = part_at(normalizer, "normalizers", i);
        const char *type = json_type_name(part);
        if (strcmp(type, "Prepend") == 0 && is_text(json_object_get(part, "prepend"), SPACE) && !replaced)
            kind->space_prefix = true;
        else if (strcmp(type, "Replace") == 0 && is_text(json_object_get(part, "content"), SPACE) &&
                 is_text(json_object_get(json_object_get(part, "pattern"), "String"), " "))
            replaced = true;
        else
            return refuse(err, "normalizer", type);
    }
    if (is_flag(json_object_get(tokenizer, "model"), "ignore_merges", false))
        return refuse(err, "model", "ignore_merges of characters");
    if (replaced && (count_parts(pre, "pretokenizers") == 0 || splits_at_spaces(pre)))
        return 0;
    const json_t *scheme = json_object_get(pre, "prepend_scheme");
    if (strcmp(json_type_name(pre), "Metaspace") != 0 || is_flag(pre, "split", true) ||
        !is_text(json_object_get(pre, "replacement"), SPACE) ||
        !(is_text(scheme, "always") || is_text(scheme, "never")))
        return refuse(err, "pre_tokenizer", "this way of splitting texts");
    kind->space_prefix |= is_text(scheme, "always");
    return 0;
}

/* ---- post-processor ---- */

/* "single": the tokens before the one sequence there is, and behind it; at most one each. */
static int read_frame(const json_t *processor, struct tokens_kind *kind, struct error *err)
{
    const json_t *single = json_object_get(processor, "single");
    bool text_seen = false;
    for (size_t i = 0; i < json_array_size(single); i++) {
        const json_t *piece = json_array_get(single, i);
        const char *token = json_string_value(json_object_get(json_object_get(piece, "SpecialToken"), "id"));
        const char **place = text_seen ? &kind->behind : &kind->before;
        if (json_object_get(piece, "Sequence") && !text_seen)
            text_seen = true;
        else if (token && !*place)
            *place = token;
        else
            return refuse(err, "post_processor", "this template around a text");
    }
    return text_seen ? 0 : refuse(err, "post_processor", "a template without a text");
}

static int check_post_processor(const json_t *tokenizer, struct tokens_kind *kind, struct error *err)
{
    const json_t *processor = json_object_get(tokenizer, "post_processor");
    int r = 0;
    for (size_t i = 0; i < count_parts(processor, "processors") && r == 0; i++) {
        const json_t *part = part_at(processor, "processors", i);
        const char *type = json_type_name(part);
        if (strcmp(type, "TemplateProcessing") == 0)
            r = read_frame(part, kind, err);
        else if (strcmp(type, "ByteLevel") != 0) /* which moves offsets alone */
            r = refuse(err, "post_processor", type);
    }
    return r;
}

int tokens_kind_of(const json_t *tokenizer, struct tokens_kind *ret_kind, struct error *err)
{
    const json_t *model = json_object_get(tokenizer, "model");
    struct tokens_kind kind = {0};
    int r = check_model(model, err);
    if (r == 0)
        r = is_flag(model, "byte_fallback", false) ? check_characters(tokenizer, &kind, err)
                                                   : check_bytes(tokenizer, &kind, err);
    if (r == 0)
        r = check_post_processor(tokenizer, &kind, err);
    if (r == 0)
        *ret_kind = kind;
    return r;
}
