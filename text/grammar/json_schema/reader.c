/* SPDX-License-Identifier: MIT */
/* What every part of the reader needs: rejecting a schema with its place, bounding the work, reading a count,
 * keeping what was made. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/grammar/json_schema/internal.h"

#define MOST_SPENT  (1u << 24) /* some 0.2 s */
#define MOST_COPIED (1u << 17)

/* ---- places in errors ---- */

struct path {
    char text[200];
    size_t len;
};

static void add_part(struct path *path, const char *part)
{
    if (path->len + 1 < sizeof path->text)
        path->text[path->len++] = '/';
    for (; *part && path->len + 3 < sizeof path->text; part++) {
        if (*part == '~' || *part == '/') {
            path->text[path->len++] = '~';
            path->text[path->len++] = *part == '~' ? '0' : '1';
        } else {
            path->text[path->len++] = *part;
        }
    }
    path->text[path->len] = 0;
}

/* Goes through the document, which its parser holds to a depth, until it comes to the schema. Booleans and
 * null are the same value wherever they stand: they are never looked for. */
static bool find_path(const json_t *value, const json_t *schema, struct path *path)
{
    const size_t len = path->len;
    const char *key;
    json_t *below;
    if (value == schema)
        return true;
    json_object_foreach((json_t *)value, key, below)
    {
        add_part(path, key);
        if (find_path(below, schema, path))
            return true;
        path->len = len;
        path->text[len] = 0;
    }
    for (size_t i = 0; json_is_array(value) && i < json_array_size(value); i++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", i);
        below = json_array_get(value, i);
        add_part(path, number);
        if (find_path(below, schema, path))
            return true;
        path->len = len;
        path->text[len] = 0;
    }
    return false;
}

const void *schema_refuse(struct schema_reader *reader, const char *format, ...)
{
    char reason[256];
    struct path path = {0};
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    if (reader->code != 0)
        return NULL;
    if (reader->at && !find_path(reader->root, reader->at, &path))
        path = (struct path){0};
    reader->code = error_set(reader->err, GRAMMAR_E_INVALID, "schema: at #%s: %s", path.text, reason);
    return NULL;
}

const void *schema_no_memory(struct schema_reader *reader)
{
    if (reader->code == 0)
        reader->code = -ENOMEM;
    return NULL;
}

void schema_note_nothing(struct schema_reader *reader, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!reader->nothing[0])
        vsnprintf(reader->nothing, sizeof reader->nothing, format, args);
    va_end(args);
}

const void *schema_refuse_automaton(struct schema_reader *reader, const char *what)
{
    if (reader->automata.too_large)
        return schema_refuse(reader, "%s: too complex together", what);
    return reader->automata.starved ? schema_no_memory(reader)
                                    : schema_refuse(reader, "the schema is too large");
}

/* ---- bounds ---- */

bool schema_spend(struct schema_reader *reader, uint64_t steps)
{
    reader->spent += steps;
    if (reader->spent > MOST_SPENT)
        schema_refuse(reader, "the schema is too large");
    return reader->spent <= MOST_SPENT;
}

void *schema_take(struct schema_reader *reader, size_t n, size_t size)
{
    void *memory = arena_take(&reader->rules->arena, n ? n : 1, size);
    if (!memory)
        schema_refuse(reader, "the schema is too large"); /* or there is no memory: grammar.c looks */
    return memory;
}

bool schema_grow(struct schema_reader *reader, void **items, uint32_t *cap, uint32_t n, size_t size)
{
    if (n < *cap)
        return true;
    uint32_t wanted = *cap ? *cap * 2 : 32;
    void *grown = realloc(*items, (size_t)wanted * size);
    if (!grown) {
        schema_no_memory(reader);
        return false;
    }
    memset((char *)grown + (size_t)*cap * size, 0, (size_t)(wanted - *cap) * size);
    *items = grown;
    *cap = wanted;
    return true;
}

const json_t *schema_keep(struct schema_reader *reader, json_t *value)
{
    reader->copied += 1 + json_object_size(value) + json_array_size(value);
    if (!value || json_array_append_new(reader->made, value) != 0)
        return schema_no_memory(reader);
    if (reader->copied > MOST_COPIED)
        return schema_refuse(reader, "the schema is too large");
    return value;
}

bool schema_count(struct schema_reader *reader, const json_t *schema, const char *keyword, uint32_t most,
                  uint32_t missing, uint32_t *ret_count)
{
    const json_t *value = json_object_get(schema, keyword);
    if (!value) {
        *ret_count = missing;
        return true;
    }
    double number = json_number_value(value);
    if (!json_is_number(value) || number < 0 || number > most || number != (double)(uint32_t)number) {
        schema_refuse(reader, "%s is not an integer from 0 to %u", keyword, most);
        return false;
    }
    *ret_count = (uint32_t)number;
    return true;
}
