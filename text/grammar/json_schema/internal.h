/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_JSON_SCHEMA_INTERNAL_H
#define TEXT_GRAMMAR_JSON_SCHEMA_INTERNAL_H

/* Private to the parts of json_schema.c. A function that fails sets reader->code: GRAMMAR_E_INVALID with the
 * reason, or -ENOMEM; the first reason is kept. */

#include <jansson.h>

#include "text/grammar/automaton/automaton.h"
#include "text/grammar/automaton/state_keys.h"
#include "text/grammar/json_text.h"

#define SCHEMA_MOST_DEPTH 64   /* of nested schemas */
#define SCHEMA_MOST_NAMES 2048 /* of properties of an object, of required ones, of prefixItems */

struct schema_resource { /* the schema of an $id */
    const char *uri;     /* absolute as far as the document says so, without a fragment */
    const json_t *root;
};

struct schema_anchor {
    uint32_t resource;
    bool dynamic;
    const char *name;
    const json_t *schema;
};

/* Where the parts of the document are (places.c). */
struct schema_places {
    struct state_keys keys; /* pointers to objects of the document */
    uint32_t *resource_of;  /* [keys.n] */
    uint32_t resource_of_cap;
    struct schema_resource *resources;
    struct schema_anchor *anchors;
    uint32_t n_resources, resources_cap, n_anchors, anchors_cap;
};

struct schema_memo;  /* shapes.c */
struct schema_entry; /* emit.c */

struct schema_reader {
    struct rules *rules;
    struct json_text json;
    struct automata automata;
    json_t *root;
    struct error *err;
    int code;
    bool closed;          /* only described members and items are allowed */
    bool has_unevaluated; /* unevaluatedItems or unevaluatedProperties occurs somewhere */
    uint32_t depth;
    const json_t *at;  /* the schema that is being read, for errors */
    char nothing[160]; /* why some part of the schema allows no value; "": none was found */
    uint64_t spent;    /* schema_spend */
    size_t copied;     /* number of values created */
    json_t *made;      /* an array that keeps them */
    struct schema_places places;
    struct state_keys shape_keys, entry_keys, pattern_keys;
    struct schema_memo *memos;          /* [shape_keys.n] */
    struct schema_entry *entries;       /* [entry_keys.n] */
    const struct automaton **patterns;  /* [pattern_keys.n] */
    const struct automaton *numbers[3]; /* numbers.c; NULL: not made */
    uint32_t memos_cap, entries_cap, patterns_cap;
};

/* Rejects the schema at reader->at with this reason. Returns NULL. */
const void *schema_refuse(struct schema_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Reports that memory ran out. Returns NULL. */
const void *schema_no_memory(struct schema_reader *reader);

/* Notes why no value is possible here, for the error if that holds for the whole schema. */
void schema_note_nothing(struct schema_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Rejects the schema because an automaton could not be built: out of memory, or too large. */
const void *schema_refuse_automaton(struct schema_reader *reader, const char *what);

/* Charges work such as comparisons; false: the schema is rejected. */
bool schema_spend(struct schema_reader *reader, uint64_t steps);

/* Zeroed memory of the rules. NULL: rejected. */
void *schema_take(struct schema_reader *reader, size_t n, size_t size);

/* Room for one more item in a heap list of n. False: rejected. */
bool schema_grow(struct schema_reader *reader, void **items, uint32_t *cap, uint32_t n, size_t size);

/* Takes over a new value, and keeps it as long as the reader lives. NULL: rejected. */
const json_t *schema_keep(struct schema_reader *reader, json_t *value);

/* The value of a keyword that is a whole number ≥ 0, or `missing`. False: rejected. */
bool schema_count(struct schema_reader *reader, const json_t *schema, const char *keyword, uint32_t most,
                  uint32_t missing, uint32_t *ret_count);

/* ---- places.c ---- */

/* Finds the targets of $id, $anchor and $ref. False: rejected. */
bool schema_places_find(struct schema_reader *reader);
void schema_places_deinit(struct schema_places *places);

/* The schema that a reference in `from` names. NULL: rejected. */
const json_t *schema_resolve(struct schema_reader *reader, const json_t *from, const char *ref, bool dynamic);

/* Whether it is an object of the document. */
bool schema_is_placed(const struct schema_reader *reader, const json_t *schema);

/* ---- keywords.c ---- */

/* Checks each key of the schema. False: one is rejected. */
bool schema_keywords_check(struct schema_reader *reader, const json_t *schema);

/* The kind of a keyword's value: schemas, or none. */
enum keyword_schemas { KEYWORD_NO_SCHEMA, KEYWORD_SCHEMA, KEYWORD_LIST, KEYWORD_MAP };
enum keyword_schemas schema_keyword_schemas(const char *keyword);

#endif
