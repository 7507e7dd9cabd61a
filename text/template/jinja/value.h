/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_JINJA_VALUE_H
#define TEXT_TEMPLATE_JINJA_VALUE_H

/* Values of a running template, and the run that owns them.
 *
 * All values lie in the run's arena and live as long as the run. Strings remember, byte by byte, what a user
 * wrote: `marks` has a 1 there, and no marks at all means that every byte is the template's own. Private to
 * this folder. Functions return 0, a negative code, or JINJA_E_REFUSED. */

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
    JINJA_GENERATOR, /* a list that is not made yet: it can be walked through once, and has no length */
    JINJA_DICT,
    JINJA_LOOP,    /* the variable `loop` */
    JINJA_MACRO,   /* a macro of the template */
    JINJA_FUNCTION /* one of ours */
};

struct jinja_string {
    const char *data;
    size_t len;
    const uint8_t *marks; /* [len], or NULL */
    bool html; /* `safe` or `escape` made it: what is added to it with + is escaped first, as Jinja does */
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
        struct jinja_list *list; /* of a generator: what is left */
        struct jinja_dict *dict;
        const struct jinja_loop *loop;
        const struct jinja_macro *macro;
        const struct jinja_node *node; /* where an undefined value comes from; NULL: unknown */
        jinja_function *function;
    };
};

struct jinja_list {
    struct jinja_value *items;
    size_t n, cap;
    bool is_tuple; /* printed in round brackets, and equal to tuples only */
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

/* The positional argument `i`, or the one of this name; false when neither is given. */
bool jinja_argument(const struct jinja_arguments *arguments, size_t i, const char *name,
                    struct jinja_value *ret_value);

struct jinja_builder { /* a string that grows; a zeroed one is empty */
    char *data;
    uint8_t *marks; /* NULL while nothing is marked */
    size_t len, cap;
    bool html; /* so will the string be */
};

struct jinja_scope {
    struct jinja_scope *outer;
    struct jinja_dict names;
};

struct jinja_macro { /* of a macro, or the body of a call block */
    const struct jinja_node *node;
    struct jinja_scope *scope; /* where it was defined: its body sees those names */
};

enum jinja_jump { JINJA_GO_ON, JINJA_BREAK, JINJA_CONTINUE };

struct jinja_run {
    struct arena arena;
    struct error *err;
    uint64_t steps;
    unsigned depth; /* of evaluation, against the C stack's end */
    uint32_t line;  /* where evaluation is */
    struct tm date;
    struct jinja_scope globals, *scope;
    struct jinja_builder *out;
    bool changes;         /* lists can be changed */
    enum jinja_jump jump; /* a break or continue on its way to its loop */
};

enum {
    JINJA_MAX_STEPS = 5000000, /* a second at most; long conversations take a tenth of it */
    JINJA_MAX_DEPTH = 500,
    JINJA_MAX_NESTING = 100 /* of lists and dictionaries, when they are walked */
};

/* "line N: …" into the run's error; returns code. */
int jinja_fail(struct jinja_run *run, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Memory, zeroed; NULL after having set the run's error: return jinja_no_memory(run) then. */
void *jinja_alloc(struct jinja_run *run, size_t size);
int jinja_no_memory(struct jinja_run *run);

/* Charges for work: 0, or -EMSGSIZE when the bound is reached. */
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
int jinja_dict_set(struct jinja_run *run, struct jinja_dict *dict, struct jinja_value key,
                   struct jinja_value value);

int jinja_append(struct jinja_run *run, struct jinja_builder *builder, const char *data, size_t len,
                 const uint8_t *marks);
int jinja_append_string(struct jinja_run *run, struct jinja_builder *builder,
                        const struct jinja_string *string);
/* What {{ value }} prints. */
int jinja_append_value(struct jinja_run *run, struct jinja_builder *builder, struct jinja_value value);
struct jinja_json_style {
    int indent; /* < 0: on one line */
    bool ascii, sorted;
    struct jinja_string item_separator, key_separator;
};
int jinja_append_json(struct jinja_run *run, struct jinja_builder *builder, struct jinja_value value,
                      const struct jinja_json_style *style, unsigned depth);
/* The value as text: a string itself, anything else as {{ }} prints it. */
int jinja_text_of(struct jinja_run *run, struct jinja_value value, const struct jinja_string **ret_string);
/* The value as it stands inside a printed list: strings in quotes. */
int jinja_repr_of(struct jinja_run *run, struct jinja_value value, struct jinja_value *ret_value);

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
int jinja_equal(struct jinja_run *run, struct jinja_value a, struct jinja_value b, unsigned depth,
                bool *ret_equal);
/* −1, 0, 1; fails for values that have no order. */
int jinja_compare(struct jinja_run *run, struct jinja_value a, struct jinja_value b, int *ret_order);
int jinja_contains(struct jinja_run *run, struct jinja_value whole, struct jinja_value part,
                   bool *ret_contains);
/* Items of a list, keys of a dictionary, characters of a string, nothing of an undefined value, and what is
 * left of a generator, which is nothing from then on. */
int jinja_items_of(struct jinja_run *run, struct jinja_value value, const struct jinja_list **ret_list);
/* Characters of a string; items of a list or dictionary. */
int jinja_length(struct jinja_run *run, struct jinja_value value, int64_t *ret_length);
/* The member, or undefined. */
int jinja_member_of(struct jinja_run *run, struct jinja_value object, struct jinja_value key,
                    struct jinja_value *ret_value);
/* A member by the name in the template; an undefined object fails. */
int jinja_attribute(struct jinja_run *run, struct jinja_value object, struct bytes name,
                    const struct jinja_node *node, struct jinja_value *ret_value);
int jinja_slice(struct jinja_run *run, struct jinja_value value, const struct jinja_value *from,
                const struct jinja_value *to, int64_t step, struct jinja_value *ret_value);
/* a op b for arithmetic. */
int jinja_calculate(struct jinja_run *run, enum jinja_operator op, struct jinja_value a, struct jinja_value b,
                    struct jinja_value *ret_value);

/* ---- evaluation ---- */

int jinja_run_body(struct jinja_run *run, const struct jinja_node *chain);
int jinja_evaluate(struct jinja_run *run, const struct jinja_node *node, struct jinja_value *ret_value);
int jinja_call(struct jinja_run *run, struct jinja_value callee, const struct jinja_arguments *arguments,
               struct jinja_value *ret_value);
/* Evaluates a CALL node with `caller` as one more named argument. */
int jinja_call_with(struct jinja_run *run, const struct jinja_node *node, struct jinja_value caller,
                    struct jinja_value *ret_value);
int jinja_call_macro(struct jinja_run *run, const struct jinja_macro *macro,
                     const struct jinja_arguments *arguments, struct jinja_value *ret_value);
/* Applies the filters of a filter block or set block to a text. */
int jinja_filter_text(struct jinja_run *run, const struct jinja_node *filters, struct jinja_value text,
                      struct jinja_value *ret_value);

struct jinja_named { /* tables of these end with a NULL name */
    const char *name;
    jinja_function *function;
};
jinja_function *jinja_find_named(const struct jinja_named *table, struct bytes name);

/* ---- what templates find there: NULL when there is nothing of that name ---- */

/* A filter's arguments begin with the value before the bar; a test's with the value tested, and its result is
 * a boolean; a method's with the object. */
jinja_function *jinja_find_filter(struct bytes name);
jinja_function *jinja_find_list_filter(struct bytes name); /* asked last by jinja_find_filter */
jinja_function *jinja_find_test(struct bytes name);
jinja_function *jinja_find_method(struct jinja_value object, struct bytes name);
jinja_function *jinja_find_string_method(struct bytes name);
jinja_function *jinja_find_global(struct bytes name);

#endif
