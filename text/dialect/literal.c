/* SPDX-License-Identifier: MIT */
/* See literal.h. A recursive descent; its depth is bounded. */

#include "text/dialect/literal.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

#include "text/dialect/blank.h"

#define MOST_DEPTH 64

struct reader {
    const char *at, *end;
    const char *open, *close; /* quotes besides; "" */
    struct buffer *json;
    uint32_t depth;
    bool failed; /* no memory */
};

static int read_value(struct reader *reader);

static void put(struct reader *reader, const void *data, size_t len)
{
    if (buffer_append(reader->json, data, len) < 0)
        reader->failed = true;
}

int literal_append_text(struct bytes text, struct buffer *json)
{
    struct buffer valid = {0};
    int r = utf8_append_replaced(&valid, text);
    json_t *string = r == 0 ? json_stringn(valid.len > 0 ? (const char *)valid.data : "", valid.len) : NULL;
    char *dumped = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    r = dumped ? buffer_append(json, dumped, strlen(dumped)) : -ENOMEM;
    free(dumped);
    json_decref(string);
    buffer_deinit(&valid);
    return r;
}

static void skip_blanks(struct reader *reader)
{
    while (reader->at < reader->end && is_blank((uint8_t)*reader->at))
        reader->at++;
}

/* Takes a word that is next. */
static bool take(struct reader *reader, const char *word)
{
    const size_t len = strlen(word);
    if (len == 0 || (size_t)(reader->end - reader->at) < len || memcmp(reader->at, word, len) != 0)
        return false;
    reader->at += len;
    return true;
}

/* What of JSON has no parts: copied as it is, if it is right. */
static int copy_scalar(struct reader *reader, const char *from, int kind)
{
    json_t *value = json_loadb(from, (size_t)(reader->at - from), JSON_DECODE_ANY, NULL);
    const bool good = value != NULL;
    json_decref(value);
    if (good)
        put(reader, from, (size_t)(reader->at - from));
    return good ? kind : 0;
}

/* From behind the quote: its end, or NULL. */
static const char *find_quote(const struct reader *reader, char quote)
{
    for (const char *at = reader->at; at < reader->end; at++) {
        if (*at == '\\')
            at++;
        else if (*at == quote)
            return at;
    }
    return NULL;
}

/* A text in single quotes, whose escapes are Python's. */
static int read_python_text(struct reader *reader, const char *end)
{
    struct buffer text = {0};
    for (const char *at = reader->at; at < end; at++) {
        char byte = *at;
        if (byte == '\\' && at + 1 < end) {
            const char next = *++at;
            byte = next == 'n' ? '\n' : next == 't' ? '\t' : next == 'r' ? '\r' : next;
        }
        if (buffer_append(&text, &byte, 1) < 0)
            reader->failed = true;
    }
    if (literal_append_text((struct bytes){text.data, text.len}, reader->json) < 0)
        reader->failed = true;
    buffer_deinit(&text);
    reader->at = end + 1;
    return KIND_TEXT;
}

static int read_text(struct reader *reader)
{
    const char *begin = reader->at++;
    const char *end = find_quote(reader, *begin);
    if (!end)
        return 0;
    if (*begin == '\'')
        return read_python_text(reader, end);
    reader->at = end + 1;
    return copy_scalar(reader, begin, KIND_TEXT);
}

static int read_marked_text(struct reader *reader)
{
    const size_t left = (size_t)(reader->end - reader->at), len = strlen(reader->close);
    const char *end = memmem(reader->at, left, reader->close, len);
    if (!end)
        return 0;
    if (literal_append_text((struct bytes){reader->at, (size_t)(end - reader->at)}, reader->json) < 0)
        reader->failed = true;
    reader->at = end + len;
    return KIND_TEXT;
}

static int read_array(struct reader *reader, char close)
{
    put(reader, "[", 1);
    for (bool first = true;; first = false) {
        skip_blanks(reader);
        if (reader->at < reader->end && *reader->at == close) {
            reader->at++;
            put(reader, "]", 1);
            return KIND_ARRAY;
        }
        if (!first)
            put(reader, ", ", 2);
        if (read_value(reader) <= 0)
            return 0;
        skip_blanks(reader);
        if (!take(reader, ",") && (reader->at == reader->end || *reader->at != close))
            return 0;
    }
}

static bool is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == '$';
}

static int read_key(struct reader *reader)
{
    const char *begin = reader->at;
    if (begin < reader->end && (*begin == '"' || *begin == '\''))
        return read_text(reader);
    if (take(reader, reader->open))
        return read_marked_text(reader);
    while (reader->at < reader->end && is_bare(*reader->at))
        reader->at++;
    if (reader->at == begin)
        return 0;
    if (literal_append_text((struct bytes){begin, (size_t)(reader->at - begin)}, reader->json) < 0)
        reader->failed = true;
    return KIND_TEXT;
}

static int read_object(struct reader *reader)
{
    put(reader, "{", 1);
    for (bool first = true;; first = false) {
        skip_blanks(reader);
        if (take(reader, "}")) {
            put(reader, "}", 1);
            return KIND_OBJECT;
        }
        if (!first)
            put(reader, ", ", 2);
        if (read_key(reader) == 0)
            return 0;
        skip_blanks(reader);
        if (!take(reader, ":"))
            return 0;
        put(reader, ": ", 2);
        if (read_value(reader) <= 0)
            return 0;
        skip_blanks(reader);
        if (!take(reader, ",") && (reader->at == reader->end || *reader->at != '}'))
            return 0;
    }
}

static int read_word(struct reader *reader)
{
    static const struct {
        const char *word, *json;
        int kind;
    } words[] = {{"true", "true", KIND_FLAG},   {"True", "true", KIND_FLAG}, {"false", "false", KIND_FLAG},
                 {"False", "false", KIND_FLAG}, {"null", "null", KIND_NULL}, {"None", "null", KIND_NULL}};
    const char *begin = reader->at;
    while (reader->at < reader->end && (is_bare(*reader->at) || *reader->at == '+'))
        reader->at++;
    const struct bytes word = {begin, (size_t)(reader->at - begin)};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (bytes_equal(word, bytes_of_string(words[i].word))) {
            put(reader, words[i].json, strlen(words[i].json));
            return words[i].kind;
        }
    if (word.len == 0 || !(*begin == '-' || (*begin >= '0' && *begin <= '9')))
        return 0;
    return copy_scalar(reader, begin, KIND_NUMBER);
}

static int read_value(struct reader *reader)
{
    int kind = 0;
    skip_blanks(reader);
    if (reader->at == reader->end || reader->failed || ++reader->depth > MOST_DEPTH)
        return 0;
    if (take(reader, "{"))
        kind = read_object(reader);
    else if (take(reader, "["))
        kind = read_array(reader, ']');
    else if (take(reader, "("))
        kind = read_array(reader, ')');
    else if (take(reader, reader->open))
        kind = read_marked_text(reader);
    else if (*reader->at == '"' || *reader->at == '\'')
        kind = read_text(reader);
    else
        kind = read_word(reader);
    reader->depth--;
    return kind;
}

int literal_read(struct bytes text, const char *quote_open, const char *quote_close, struct buffer *json)
{
    const char *begin = text.len > 0 ? text.data : "";
    struct reader reader = {
        .at = begin, .end = begin + text.len, .open = quote_open, .close = quote_close, .json = json};
    const size_t before = json->len;
    int kind = read_value(&reader);
    skip_blanks(&reader);
    if (kind > 0 && reader.at == reader.end && !reader.failed)
        return kind;
    json->len = before;
    return reader.failed ? -ENOMEM : 0;
}
