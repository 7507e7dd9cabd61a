/* SPDX-License-Identifier: MIT */
/* See grammar_text.h.
 *
 * Text without a mark is an automaton, as in the search of Knuth, Morris and Pratt: NAME-i has seen the first
 * i characters of the mark. All calls between its rules are the last of their rule, so they cost no depth. */

#include "text/dialect/grammar_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/dialect/dialect.h"
#include "text/dialect/literal.h"

#define MOST_MARK 128 /* characters; what is longer is looked for by its beginning */

static void put(struct grammar_text *out, const void *data, size_t len)
{
    if (buffer_append(out->buffer, data, len) < 0)
        out->failed = true;
}

void grammar_put(struct grammar_text *out, const char *text)
{
    put(out, text, strlen(text));
}

void grammar_put_number(struct grammar_text *out, size_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%zu", number);
    grammar_put(out, text);
}

void grammar_put_arguments(struct grammar_text *out, size_t i, const char *tool)
{
    char name[41];
    size_t n = 0;
    for (; *tool && n < sizeof name - 1; tool++)
        name[n++] = *tool == '.' ? '-' : *tool;
    name[n] = 0;
    grammar_put(out, "arguments-");
    grammar_put_number(out, i);
    grammar_put(out, "-");
    grammar_put(out, name);
}

void grammar_put_json(struct grammar_text *out, const json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT);
    if (text)
        grammar_put(out, text);
    else
        out->failed = true;
    free(text);
}

/* Inside of quotes, or of a set. */
static void put_character(struct grammar_text *out, uint32_t code)
{
    char text[16];
    if (code < 0x80 && (code == ' ' || (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') ||
                        (code >= '0' && code <= '9')))
        snprintf(text, sizeof text, "%c", (char)code);
    else if (code < 0x80)
        snprintf(text, sizeof text, "\\x%02x", code);
    else if (code < 0x10000)
        snprintf(text, sizeof text, "\\u%04x", code);
    else
        snprintf(text, sizeof text, "\\U%08x", code);
    grammar_put(out, text);
}

/* The next character of UTF-8; what is none counts byte by byte. */
static uint32_t next_character(const char **at, const char *end)
{
    const uint8_t *p = (const uint8_t *)*at;
    const size_t n = p[0] < 0xc0 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    uint32_t code = n == 1 ? p[0] : p[0] & (0x7fu >> n);
    if ((size_t)(end - *at) < n) {
        ++*at;
        return p[0];
    }
    for (size_t i = 1; i < n; i++)
        code = code << 6 | (p[i] & 0x3f);
    *at += n;
    return code;
}

static void put_quoted(struct grammar_text *out, const char *text, size_t len)
{
    grammar_put(out, "\"");
    for (const char *at = text; at < text + len;)
        put_character(out, next_character(&at, text + len));
    grammar_put(out, "\"");
}

static void put_types(struct grammar_text *out, unsigned kinds)
{
    static const char *const names[] = {"string", "number", "boolean", "null", "object", "array"};
    bool any = false;
    grammar_put(out, "(");
    for (size_t i = 1; i < 6; i++) {
        if (!(kinds & 1u << i))
            continue;
        grammar_put(out, any ? " | \"" : "\"");
        grammar_put(out, names[i]);
        grammar_put(out, "\"");
        any = true;
    }
    grammar_put(out, any ? ")" : "\"\")");
}

static void put_place(struct grammar_text *out, char place, const struct grammar_names *names)
{
    const char *name = !names ? NULL : place == DIALECT_NAME ? names->tool : names->key;
    switch (place) {
    case DIALECT_ID:
        grammar_put(out, "[a-zA-Z0-9]{9}");
        return;
    case DIALECT_INDEX:
        grammar_put(out, "[0-9]{1,3}");
        return;
    case DIALECT_TYPE:
        put_types(out, names ? names->kinds : 0);
        return;
    default:
        put_quoted(out, name ? name : "", name ? strlen(name) : 0);
    }
}

void grammar_put_literal(struct grammar_text *out, const char *text, const struct grammar_names *names)
{
    if (!*text)
        grammar_put(out, "\"\"");
    while (*text) {
        size_t n = 0;
        while ((uint8_t)text[n] > DIALECT_TYPE)
            n++;
        if (n > 0)
            put_quoted(out, text, n);
        text += n;
        if (*text) {
            grammar_put(out, n > 0 ? " " : "");
            put_place(out, *text++, names);
            grammar_put(out, *text ? " " : "");
        }
    }
}

void grammar_put_others(struct grammar_text *out, const char * not, size_t n)
{
    grammar_put(out, "[^\\x00");
    for (size_t i = 0; i < n; i++)
        put_character(out, (uint8_t) not [i]);
    grammar_put(out, "]");
}

/* ---- text without a mark ---- */

/* How much of the mark has been seen once `code` follows its first `seen` characters. */
static size_t step(const uint32_t *mark, const size_t *fall, size_t seen, uint32_t code)
{
    while (seen > 0 && mark[seen] != code)
        seen = fall[seen];
    return mark[seen] == code ? seen + 1 : 0;
}

static void put_rule(struct grammar_text *out, const char *name, size_t i)
{
    grammar_put(out, name);
    grammar_put(out, "-");
    grammar_put_number(out, i);
}

static bool came_before(const uint32_t *mark, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (mark[j] == mark[i])
            return true;
    return false;
}

static void put_state(struct grammar_text *out, const char *name, const uint32_t *mark, const size_t *fall,
                      size_t n, size_t seen)
{
    put_rule(out, name, seen);
    grammar_put(out, " ::= \"\" | [^\\x00");
    for (size_t i = 0; i <= seen; i++)
        if (!came_before(mark, i))
            put_character(out, mark[i]);
    grammar_put(out, "] ");
    put_rule(out, name, 0);
    for (size_t i = 0; i <= seen; i++) {
        const size_t next = came_before(mark, i) ? n : step(mark, fall, seen, mark[i]);
        if (next == n) /* the whole mark: no text goes on here */
            continue;
        grammar_put(out, " | \"");
        put_character(out, mark[i]);
        grammar_put(out, "\" ");
        put_rule(out, name, next);
    }
    grammar_put(out, "\n");
}

void grammar_put_free_text(struct grammar_text *out, const char *name, struct bytes text)
{
    uint32_t mark[MOST_MARK];
    size_t fall[MOST_MARK + 1] = {0}, n = 0;
    const char *at = text.data, *end = at + text.len;
    while (at < end && n < MOST_MARK)
        mark[n++] = next_character(&at, end);
    for (size_t i = 1; i < n; i++) {
        size_t seen = fall[i];
        while (seen > 0 && mark[seen] != mark[i])
            seen = fall[seen];
        fall[i + 1] = mark[seen] == mark[i] ? seen + 1 : 0;
    }
    for (size_t seen = 0; seen < n; seen++)
        put_state(out, name, mark, fall, n, seen);
}
