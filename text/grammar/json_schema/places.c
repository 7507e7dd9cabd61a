/* SPDX-License-Identifier: MIT */
/* What a reference names. The document is gone through once: an $id makes what it stands in a resource with a
 * URI of its own, against which references in it are resolved (RFC 3986, section 5.2); anchors are names
 * within a resource. An $id where no schema is (in an enum, below an unknown keyword) is only a word. Nothing
 * is fetched: a reference that leads out of the document is refused. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "text/grammar/json_schema/internal.h"

#define MOST_URI 1024

/* ---- URIs ---- */

/* The bytes of "scheme:", or 0. */
static size_t scheme_of(const char *uri)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t n = strspn(uri, letters);
    if (n > 0)
        n += strspn(uri + n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    return n > 0 && uri[n] == ':' ? n + 1 : 0;
}

/* The bytes of "scheme://authority". */
static size_t origin_of(const char *uri)
{
    size_t n = scheme_of(uri);
    if (strncmp(uri + n, "//", 2) == 0)
        n += 2 + strcspn(uri + n + 2, "/?");
    return n;
}

/* Takes "." and ".." out of the path, which begins at `path`. */
static void remove_dots(char *path)
{
    char *to = path, *from = path;
    while (*from) {
        size_t n = strcspn(from, "/");
        bool one = n == 1 && from[0] == '.', two = n == 2 && from[0] == '.' && from[1] == '.';
        if (two && to > path) { /* to stands behind a slash */
            to--;
            while (to > path && to[-1] != '/')
                to--;
        }
        if (!one && !two) {
            memmove(to, from, n);
            to += n;
        }
        from += n;
        if (*from == '/' && !one && !two)
            *to++ = '/';
        from += *from == '/';
    }
    *to = 0;
}

/* A reference without its fragment, against a base. False: too long. */
static bool resolve_uri(const char *base, const char *ref, size_t len, char ret_uri[MOST_URI])
{
    size_t keep = strlen(base); /* of the base */
    if (len > 0 && scheme_of(ref) > 0 && scheme_of(ref) <= len)
        keep = 0;
    else if (len >= 2 && strncmp(ref, "//", 2) == 0)
        keep = scheme_of(base);
    else if (len > 0 && ref[0] == '/')
        keep = origin_of(base);
    else if (len > 0 && ref[0] == '?')
        keep = strcspn(base, "?");
    else if (len > 0)
        for (keep = strcspn(base, "?"); keep > origin_of(base) && base[keep - 1] != '/';)
            keep--;
    bool slash = len > 0 && ref[0] != '/' && ref[0] != '?' && keep > 0 && keep == origin_of(base) &&
                 keep > scheme_of(base);
    int n = snprintf(ret_uri, MOST_URI, "%.*s%s%.*s", (int)keep, base, slash ? "/" : "", (int)len, ref);
    if (n < 0 || n >= MOST_URI)
        return false;
    size_t origin = origin_of(ret_uri);
    if (ret_uri[origin] == '/' || origin == 0)
        remove_dots(ret_uri + origin + (ret_uri[origin] == '/'));
    return true;
}

/* ---- what the document has ---- */

static const char *copy_text(struct schema_reader *reader, const char *text)
{
    char *copy = schema_take(reader, strlen(text) + 1, 1);
    return copy ? strcpy(copy, text) : NULL;
}

static bool add_anchor(struct schema_reader *reader, uint32_t resource, const char *name, bool dynamic,
                       const json_t *schema)
{
    struct schema_places *places = &reader->places;
    if (!schema_grow(reader, (void **)&places->anchors, &places->anchors_cap, places->n_anchors,
                     sizeof *places->anchors))
        return false;
    places->anchors[places->n_anchors++] = (struct schema_anchor){resource, dynamic, name, schema};
    return true;
}

/* The resource of a schema with this $id. UINT32_MAX: refused. */
static uint32_t add_resource(struct schema_reader *reader, uint32_t parent, const char *id,
                             const json_t *schema)
{
    struct schema_places *places = &reader->places;
    char uri[MOST_URI];
    const char *base = parent == UINT32_MAX ? "" : places->resources[parent].uri;
    if (!resolve_uri(base, id, strcspn(id, "#"), uri)) {
        schema_refuse(reader, "$id \"%.40s\": a URI of more than %d bytes is not supported", id,
                      MOST_URI - 1);
        return UINT32_MAX;
    }
    const char *copy = copy_text(reader, uri);
    if (!copy || !schema_grow(reader, (void **)&places->resources, &places->resources_cap,
                              places->n_resources, sizeof *places->resources))
        return UINT32_MAX;
    places->resources[places->n_resources] = (struct schema_resource){copy, schema};
    return places->n_resources++;
}

static bool note_place(struct schema_reader *reader, const json_t *value, uint32_t resource)
{
    struct schema_places *places = &reader->places;
    bool is_new;
    uint32_t number = state_keys_find(&places->keys, &value, sizeof value, &is_new);
    if (number == UINT32_MAX)
        return schema_no_memory(reader);
    if (!schema_grow(reader, (void **)&places->resource_of, &places->resource_of_cap, number,
                     sizeof *places->resource_of))
        return false;
    places->resource_of[number] = resource;
    return true;
}

/* What an object of a schema is: a schema, a map or list of such, or none. */
enum position { AT_SCHEMA, AT_MAP, AT_LIST, AT_VALUE };

static enum position position_below(enum position at, const char *key)
{
    if (at == AT_MAP || at == AT_LIST)
        return AT_SCHEMA;
    if (at == AT_VALUE)
        return AT_VALUE;
    switch (schema_keyword_schemas(key)) {
    case KEYWORD_SCHEMA:
        return AT_SCHEMA;
    case KEYWORD_LIST:
        return AT_LIST;
    case KEYWORD_MAP:
        return AT_MAP;
    case KEYWORD_NO_SCHEMA:
        break;
    }
    return AT_VALUE;
}

/* Reads what names a schema; the resource it is in. UINT32_MAX: refused. */
static uint32_t read_names(struct schema_reader *reader, const json_t *schema, uint32_t resource)
{
    const char *id = json_string_value(json_object_get(schema, "$id"));
    const char *anchor = json_string_value(json_object_get(schema, "$anchor"));
    const char *dynamic = json_string_value(json_object_get(schema, "$dynamicAnchor"));
    if (id && id[0] == '#' && id[1]) /* as anchors were written in the drafts before */
        anchor = id + 1;
    else if (id)
        resource = add_resource(reader, resource, id, schema);
    if (resource == UINT32_MAX || (anchor && !add_anchor(reader, resource, anchor, false, schema)) ||
        (dynamic && !add_anchor(reader, resource, dynamic, true, schema)))
        return UINT32_MAX;
    reader->has_unevaluated |= json_object_get(schema, "unevaluatedItems") != NULL ||
                               json_object_get(schema, "unevaluatedProperties") != NULL;
    return resource;
}

static bool find_below(struct schema_reader *reader, const json_t *value, uint32_t resource, enum position at)
{
    const char *key;
    json_t *below;
    if (!json_is_object(value)) {
        for (size_t i = 0; i < json_array_size(value); i++)
            if (!find_below(reader, json_array_get(value, i), resource, at == AT_LIST ? AT_SCHEMA : AT_VALUE))
                return false;
        return true;
    }
    if (at == AT_SCHEMA)
        resource = read_names(reader, value, resource);
    if (resource == UINT32_MAX || !note_place(reader, value, resource))
        return false;
    json_object_foreach((json_t *)value, key, below)
    {
        if (!find_below(reader, below, resource, position_below(at, key)))
            return false;
    }
    return true;
}

bool schema_places_find(struct schema_reader *reader)
{
    uint32_t whole = add_resource(reader, UINT32_MAX, "", reader->root);
    return whole != UINT32_MAX && find_below(reader, reader->root, whole, AT_SCHEMA);
}

void schema_places_deinit(struct schema_places *places)
{
    state_keys_deinit(&places->keys);
    free(places->resource_of);
    free(places->resources);
    free(places->anchors);
    *places = (struct schema_places){0};
}

/* ---- references ---- */

/* The number of an object of the document, or UINT32_MAX. */
static uint32_t resource_of(const struct schema_reader *reader, const json_t *value)
{
    const struct schema_places *places = &reader->places;
    uint32_t number = state_keys_known(&places->keys, &value, sizeof value);
    return number == UINT32_MAX ? number : places->resource_of[number];
}

bool schema_is_placed(const struct schema_reader *reader, const json_t *schema)
{
    return resource_of(reader, schema) != UINT32_MAX;
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* A fragment with %XX made bytes. False: too long. */
static bool decode(const char *fragment, char ret_text[MOST_URI])
{
    size_t n = 0;
    for (; *fragment; fragment++) {
        if (n + 1 == MOST_URI)
            return false;
        bool coded = fragment[0] == '%' && hex_value(fragment[1]) >= 0 && hex_value(fragment[2]) >= 0;
        ret_text[n++] = coded ? (char)(hex_value(fragment[1]) << 4 | hex_value(fragment[2])) : *fragment;
        fragment += coded ? 2 : 0;
    }
    ret_text[n] = 0;
    return true;
}

/* The next part of a JSON pointer, with ~0 and ~1 made ~ and /. */
static const char *pointer_part(const char *pointer, char ret_part[MOST_URI])
{
    size_t n = 0;
    for (; *pointer && *pointer != '/'; pointer++) {
        char c = *pointer;
        if (c == '~' && (pointer[1] == '0' || pointer[1] == '1'))
            c = *++pointer == '0' ? '~' : '/';
        ret_part[n++] = c;
    }
    ret_part[n] = 0;
    return pointer;
}

static const json_t *follow_pointer(const json_t *at, const char *pointer)
{
    char part[MOST_URI];
    while (*pointer == '/' && at) {
        pointer = pointer_part(pointer + 1, part);
        if (json_is_array(at)) {
            uint32_t index;
            at = number_read_u32(part, 0, UINT32_MAX, &index, NULL) < 0 ? NULL : json_array_get(at, index);
        } else {
            at = json_object_get(at, part);
        }
    }
    return at;
}

static const struct schema_anchor *find_anchor(const struct schema_places *places, uint32_t resource,
                                               const char *name)
{
    for (uint32_t i = 0; i < places->n_anchors; i++)
        if (places->anchors[i].resource == resource && strcmp(places->anchors[i].name, name) == 0)
            return &places->anchors[i];
    return NULL;
}

/* Whether a dynamic reference could lead to another anchor of that name. */
static bool is_ambiguous(const struct schema_places *places, const struct schema_anchor *anchor)
{
    for (uint32_t i = 0; i < places->n_anchors; i++)
        if (&places->anchors[i] != anchor && places->anchors[i].dynamic &&
            strcmp(places->anchors[i].name, anchor->name) == 0)
            return true;
    return false;
}

const json_t *schema_resolve(struct schema_reader *reader, const json_t *from, const char *ref, bool dynamic)
{
    const struct schema_places *places = &reader->places;
    const char *keyword = dynamic ? "$dynamicRef" : "$ref";
    const uint32_t own = resource_of(reader, from);
    const size_t len = strcspn(ref, "#");
    char uri[MOST_URI], fragment[MOST_URI];
    if (!resolve_uri(places->resources[own == UINT32_MAX ? 0 : own].uri, ref, len, uri) ||
        !decode(ref[len] ? ref + len + 1 : "", fragment))
        return schema_refuse(reader, "%s: a URI of more than %d bytes is not supported", keyword,
                             MOST_URI - 1);
    uint32_t to = UINT32_MAX;
    for (uint32_t i = 0; i < places->n_resources && to == UINT32_MAX; i++)
        if (strcmp(places->resources[i].uri, uri) == 0)
            to = i;
    if (len == 0 && own != UINT32_MAX)
        to = own;
    if (!schema_spend(reader, places->n_resources + places->n_anchors + 1))
        return NULL;
    if (to == UINT32_MAX)
        return schema_refuse(reader,
                             "%s \"%.80s\" points outside this schema; external schemas are not fetched",
                             keyword, ref);
    if (!fragment[0] || fragment[0] == '/') {
        const json_t *at = follow_pointer(places->resources[to].root, fragment);
        return at ? at : schema_refuse(reader, "%s \"%.80s\" not found in the schema", keyword, ref);
    }
    const struct schema_anchor *anchor = find_anchor(places, to, fragment);
    if (!anchor)
        return schema_refuse(reader, "%s \"%.80s\" not found in the schema", keyword, ref);
    if (dynamic && anchor->dynamic && is_ambiguous(places, anchor))
        return schema_refuse(
            reader, "$dynamicRef \"%.80s\" depends on the dynamic scope, which is not supported", ref);
    return anchor->schema;
}
