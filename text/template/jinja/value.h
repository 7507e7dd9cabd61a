/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_JINJA_VALUE_H
#define TEXT_TEMPLATE_JINJA_VALUE_H

/* Values of a running template, and the run that owns them.
 *
 * All values are in the run's arena and live as long as the run. Strings mark each byte from a user: `marks`
 * is 1 there; without marks every byte is the template's. Private to this folder and library/. Functions
 * return 0, a negative code, or JINJA_E_REFUSED. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "text/template/jinja/jinja.h"
#include "text/template/jinja/syntax.h"

enum jinja_type {
    JINJA_UNDEFINED,
    JINJA_NONE,
    JINJA_BOOLEAN,
    JINJA_INT,
    JINJA_FLOAT,
    JINJA_STR,
    JINJA_LIST,
    JINJA_GENERATOR, /* a lazy list: it can be iterated once, and has no length */
    JINJA_DICT,
    JINJA_LOOP,    /* the variable `loop` */
    JINJA_MACRO,   /* a macro of the template */
    JINJA_FUNCTION /* a built-in one */
};

struct jinja_string {
    const char *data;
    size_t len;
    const uint8_t *marks; /* [len], or NULL */
    bool html; /* made by `safe` or `escape`: strings added to it with + are escaped first, as in Jinja */
};

struct jinja_run;
struct jinja_arguments;
struct jinja_list;
struct jinja_dict;
struct jinja_loop;
struct jinja_macro;
struct jinja_value;

typedef int jinja_function(struct jinja_run *run, const struct jinja_arguments *arguments,
                           struct jinja_value *ret_value);

struct jinja_value {
    enum jinja_type type;
    union {
        bool boolean;
        int64_t integer;
        double real;
        const struct jinja_string *string;
        struct jinja_list *list; /* of a generator: the remaining items */
        struct jinja_dict *dict;
        const struct jinja_loop *loop;
        const struct jinja_macro *macro;
        const struct jinja_node *node; /* the source of an undefined value; NULL: unknown */
        jinja_function *function;
    };
};

struct jinja_list {
    struct jinja_value *items;
    size_t n, cap;
    bool is_tuple; /* printed in parentheses, and equal only to tuples */
};

struct jinja_member {
    struct jinja_value key; /* strings, mostly */
    struct jinja_value value;
};

struct jinja_dict { /* in the order of insertion */
    struct jinja_member *items;
    size_t n, cap;
    bool is_namespace; /* its members may be set */
};

struct jinja_loop {
    const struct jinja_list *list;
    size_t index; /* from 0 */
};

struct jinja_arguments {
    struct jinja_value *items;
    size_t n;
    struct jinja_member *named;
    size_t n_named;
};

/* The positional argument `i`, or the one with this name; false if neither is given. */
bool jinja_argument(const struct jinja_arguments *arguments, size_t i, const char *name,
                    struct jinja_value *ret_value);

struct jinja_builder { /* a growing string; a zeroed one is empty */
    char *data;
    uint8_t *marks; /* NULL as long as nothing is marked */
    size_t len, cap;
    bool html; /* the string will be html */
};

struct jinja_scope {
    struct jinja_scope *outer;
    struct jinja_dict names;
};

struct jinja_macro { /* a macro, or the body of a call block */
    const struct jinja_node *node;
    struct jinja_scope *scope; /* where it was defined: its body uses those names */
};

enum jinja_jump { JINJA_GO_ON, JINJA_BREAK, JINJA_CONTINUE };

struct jinja_run {
    struct arena arena;
    struct error *err;
    uint64_t steps;
    unsigned depth; /* of evaluation; bounds the use of the C stack */
    uint32_t line;  /* current */
    struct tm date;
    struct jinja_scope globals, *scope;
    struct jinja_builder *out;
    bool changes;         /* lists can be changed */
    enum jinja_jump jump; /* a break or continue that has not reached its loop yet */
};

enum {
    JINJA_MAX_STEPS = 5000000, /* at most a second; long conversations take a tenth of it */
    JINJA_MAX_DEPTH = 500,
    JINJA_MAX_NESTING = 100 /* of lists and dictionaries that are traversed */
};

/* Sets the run's error to "line N: …"; returns code. */
int jinja_fail(struct jinja_run *run, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Zeroed memory; NULL if memory or the run's limit is exhausted: then return jinja_no_memory(run), which sets
 * the error. */
void *jinja_alloc(struct jinja_run *run, size_t size);
int jinja_no_memory(struct jinja_run *run);

/* Charges for work: 0, or -EMSGSIZE if the limit is reached. */
int jinja_spend(struct jinja_run *run, size_t steps);

/* ---- making values ---- */

static inline struct jinja_value jinja_of_bool(bool value)
{
    return (struct jinja_value){.type = JINJA_BOOLEAN, .boolean = value};
}

static inline struct jinja_value jinja_of_int(int64_t value)
{
    return (struct jinja_value){.type = JINJA_INT, .integer = value};
}

static inline struct jinja_value jinja_of_real(double value)
{
    return (struct jinja_value){.type = JINJA_FLOAT, .real = value};
}

/* A string that borrows data and marks. */
int jinja_of_bytes(struct jinja_run *run, const char *data, size_t len, const uint8_t *marks,
                   struct jinja_value *ret_value);
/* A part of another string. */
int jinja_of_part(struct jinja_run *run, const struct jinja_string *whole, size_t start, size_t len,
                  struct jinja_value *ret_value);
int jinja_of_builder(struct jinja_run *run, const struct jinja_builder *builder,
                     struct jinja_value *ret_value);
int jinja_of_json(struct jinja_run *run, const json_t *json, bool from_user, unsigned depth,
                  struct jinja_value *ret_value);

int jinja_new_list(struct jinja_run *run, size_t cap, struct jinja_value *ret_value);
int jinja_list_add(struct jinja_run *run, struct jinja_list *list, struct jinja_value value);
int jinja_new_dict(struct jinja_run *run, struct jinja_value *ret_value);
/* Adds a key that the dictionary does not have. */
int jinja_dict_add(struct jinja_run *run, struct jinja_dict *dict, struct jinja_value key,
                   struct jinja_value value);

int jinja_append(struct jinja_run *run, struct jinja_builder *builder, const char *data, size_t len,
                 const uint8_t *marks);
int jinja_append_string(struct jinja_run *run, struct jinja_builder *builder,
                        const struct jinja_string *string);

/* ---- asking values ---- */

/* A boolean counts as 0 or 1. */
static inline bool jinja_is_whole(struct jinja_value value)
{
    return value.type == JINJA_INT || value.type == JINJA_BOOLEAN;
}

static inline bool jinja_is_number(struct jinja_value value)
{
    return jinja_is_whole(value) || value.type == JINJA_FLOAT;
}

static inline int64_t jinja_whole_of(struct jinja_value value)
{
    return value.type == JINJA_BOOLEAN ? value.boolean : value.integer;
}

static inline double jinja_real_of(struct jinja_value value)
{
    return value.type == JINJA_FLOAT ? value.real : (double)jinja_whole_of(value);
}

const char *jinja_type_name(struct jinja_value value);
bool jinja_is_true(struct jinja_value value);
bool jinja_string_is(struct jinja_value value, const char *text);

struct jinja_named { /* tables of these end with a NULL name */
    const char *name;
    jinja_function *function;
};
jinja_function *jinja_find_named(const struct jinja_named *table, struct bytes name);

#endif
