/* SPDX-License-Identifier: MIT */
/* A schema is read from the top: the document's places first (places.c), then what it says of a value as
 * shapes (combine.c, assertions.c, negate.c), and shapes as expressions (emit.c, objects.c, arrays.c,
 * strings.c, numbers.c), which ask for the shapes of members and items in turn. */

#include "text/grammar/json_schema/json_schema.h"

#include <errno.h>
#include <stdlib.h>

#include "text/grammar/json_schema/emit.h"

#define MOST_AUTOMATA_WORK (1u << 24) /* some 0.3 s */

static struct schema_reader *reader_new(struct rules *rules, struct error *err)
{
    struct schema_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    reader->rules = rules;
    reader->err = err;
    reader->automata = (struct automata){.rules = rules, .most_work = MOST_AUTOMATA_WORK};
    return reader;
}

static void reader_free(struct schema_reader *reader)
{
    json_decref(reader->root);
    json_decref(reader->made);
    schema_places_deinit(&reader->places);
    state_keys_deinit(&reader->shape_keys);
    state_keys_deinit(&reader->entry_keys);
    state_keys_deinit(&reader->pattern_keys);
    free(reader->memos);
    free(reader->entries);
    free(reader->patterns);
    free(reader);
}

static const struct expression *read_root(struct schema_reader *reader)
{
    struct demand demand = {0};
    reader->at = reader->root;
    if (!json_is_object(reader->root) && !json_is_boolean(reader->root))
        return schema_refuse(reader, "a schema must be an object, true or false");
    if (!schema_places_find(reader) || !demand_add(reader, &demand, (struct claim){reader->root, false}))
        return NULL;
    const struct expression *body = emit_demand(reader, &demand);
    if (body != &schema_nothing)
        return body;
    return schema_refuse(reader, "the schema allows nothing%s%s", reader->nothing[0] ? ": " : "",
                         reader->nothing);
}

/* Reads the text, by these flags of jansson's beside its own. NULL with the code. */
static const struct expression *read_text(struct schema_reader *reader, struct bytes text, size_t flags,
                                          size_t *ret_taken)
{
    json_error_t reason;
    reader->root = json_loadb(text.data, text.len, flags | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &reason);
    reader->made = json_array();
    if (!reader->made || (!reader->root && json_error_code(&reason) == json_error_out_of_memory))
        reader->code = -ENOMEM;
    else if (!reader->root)
        reader->code =
            error_set(reader->err, GRAMMAR_E_INVALID, "schema: line %d: %s", reason.line, reason.text);
    const struct expression *body = reader->code == 0 ? read_root(reader) : NULL;
    if (reader->automata.starved)
        reader->code = -ENOMEM;
    if (!body && reader->code == 0)
        reader->code = error_set(reader->err, GRAMMAR_E_INVALID, "schema: too large");
    if (reader->root)
        *ret_taken = (size_t)reason.position;
    return body;
}

static int finish(struct rules *rules, const struct expression *body, struct error *err)
{
    rules->root = rules_add(rules, "root");
    if (!body || rules->root == UINT32_MAX)
        return error_set(err, GRAMMAR_E_INVALID, "schema: too large");
    rules->items[rules->root].body = body;
    return 0;
}

int json_schema_read(struct bytes text, struct rules *rules, struct error *err)
{
    size_t taken;
    struct schema_reader *reader = reader_new(rules, err);
    if (!reader)
        return -ENOMEM;
    json_text_init(&reader->json, rules);
    const struct expression *body = read_text(reader, text, JSON_DECODE_ANY, &taken);
    int r = reader->code;
    reader_free(reader);
    return r == 0 ? finish(rules, body, err) : r;
}

void json_schemas_init(struct json_schemas *schemas, struct rules *rules)
{
    *schemas = (struct json_schemas){0};
    json_text_init(&schemas->json, rules);
}

int json_schema_embed(struct json_schemas *schemas, struct bytes text, size_t *ret_taken,
                      const struct expression **ret_expression, struct error *err)
{
    struct schema_reader *reader = reader_new(schemas->json.rules, err);
    if (!reader)
        return -ENOMEM;
    reader->json = schemas->json;
    reader->spent = schemas->spent;
    reader->copied = schemas->copied;
    reader->closed = true;
    *ret_expression = read_text(reader, text, JSON_DISABLE_EOF_CHECK, ret_taken);
    *schemas = (struct json_schemas){reader->json, reader->spent, reader->copied};
    int r = reader->code;
    reader_free(reader);
    return r;
}

int json_schema_any_object(struct rules *rules, struct error *err)
{
    struct json_text json;
    json_text_init(&json, rules);
    return finish(rules, json_text_object(&json), err);
}
