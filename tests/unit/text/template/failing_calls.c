/* SPDX-License-Identifier: MIT */
/* The linker puts these in the place of the functions of their names. */

#include "tests/unit/text/template/failing_calls.h"

#include <errno.h>

#include "text/template/jinja/string_ops.h"
#include "text/template/jinja/evaluate.h"
#include "text/template/jinja/operators.h"
#include "text/template/jinja/print.h"

struct failing_calls failing_calls;

static bool fails(int code)
{
    if (++failing_calls.n != failing_calls.fail)
        return false;
    failing_calls.code = code;
    return true;
}

void *__real_arena_take(struct arena *arena, size_t n, size_t size);
void *__wrap_arena_take(struct arena *arena, size_t n, size_t size);

void *__wrap_arena_take(struct arena *arena, size_t n, size_t size)
{
    if (!fails(-ENOMEM))
        return __real_arena_take(arena, n, size);
    arena->starved = true;
    return NULL;
}

#define FAILING(name, parameters, arguments)                                                                 \
    int __real_##name parameters;                                                                            \
    int __wrap_##name parameters;                                                                            \
    int __wrap_##name parameters                                                                             \
    {                                                                                                        \
        failing_calls.work = run->steps;                                                                     \
        return fails(-EIO) ? jinja_fail(run, -EIO, "a call fails") : __real_##name arguments;                \
    }

FAILING(jinja_spend, (struct jinja_run * run, size_t steps), (run, steps))
FAILING(jinja_new_list, (struct jinja_run * run, size_t cap, struct jinja_value *list), (run, cap, list))
FAILING(jinja_list_add, (struct jinja_run * run, struct jinja_list *list, struct jinja_value value),
        (run, list, value))
FAILING(jinja_new_dict, (struct jinja_run * run, struct jinja_value *dict), (run, dict))
FAILING(jinja_dict_set,
        (struct jinja_run * run, struct jinja_dict *dict, struct jinja_value key, struct jinja_value value),
        (run, dict, key, value))
FAILING(jinja_append,
        (struct jinja_run * run, struct jinja_builder *builder, const char *data, size_t len,
         const uint8_t *marks),
        (run, builder, data, len, marks))
FAILING(jinja_append_string,
        (struct jinja_run * run, struct jinja_builder *builder, const struct jinja_string *string),
        (run, builder, string))
FAILING(jinja_append_value, (struct jinja_run * run, struct jinja_builder *builder, struct jinja_value value),
        (run, builder, value))
FAILING(jinja_of_bytes,
        (struct jinja_run * run, const char *data, size_t len, const uint8_t *marks,
         struct jinja_value *string),
        (run, data, len, marks, string))
FAILING(jinja_of_part,
        (struct jinja_run * run, const struct jinja_string *whole, size_t start, size_t len,
         struct jinja_value *part),
        (run, whole, start, len, part))
FAILING(jinja_of_builder,
        (struct jinja_run * run, const struct jinja_builder *builder, struct jinja_value *string),
        (run, builder, string))
FAILING(jinja_equal,
        (struct jinja_run * run, struct jinja_value a, struct jinja_value b, unsigned depth, bool *equal),
        (run, a, b, depth, equal))
FAILING(jinja_compare, (struct jinja_run * run, struct jinja_value a, struct jinja_value b, int *order),
        (run, a, b, order))
FAILING(jinja_items_of, (struct jinja_run * run, struct jinja_value value, const struct jinja_list **items),
        (run, value, items))
FAILING(jinja_length, (struct jinja_run * run, struct jinja_value value, int64_t *length),
        (run, value, length))
FAILING(jinja_member_of,
        (struct jinja_run * run, struct jinja_value object, struct jinja_value key,
         struct jinja_value *member),
        (run, object, key, member))
FAILING(jinja_text_of, (struct jinja_run * run, struct jinja_value value, const struct jinja_string **text),
        (run, value, text))
FAILING(jinja_evaluate, (struct jinja_run * run, const struct jinja_node *node, struct jinja_value *value),
        (run, node, value))
