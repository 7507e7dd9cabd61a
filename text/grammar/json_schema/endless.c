/* SPDX-License-Identifier: MIT */
/* Whether what was made of a schema that refers to itself can come to an end: {"a": {"a": {"a": … has no
 * value. A part can end if the parts that it needs can; those that are met again while they are looked at
 * cannot, as far as is known, and all is looked at again until nothing more is found out. */

#include <stdlib.h>

#include "text/grammar/json_schema/emit.h"

enum finding { UNKNOWN, LOOKED_AT, ENDS };

struct search {
    struct schema_reader *reader;
    struct state_keys keys; /* pointers to expressions */
    uint8_t *findings;      /* [keys.n] */
    uint32_t cap;
    bool found; /* something, in this round */
};

static bool ends(struct search *search, const struct expression *expression);

static bool all_end(struct search *search, const struct expression *expression)
{
    for (uint32_t i = 0; i < expression->n; i++)
        if (!ends(search, expression->parts[i]))
            return false;
    return true;
}

static bool any_ends(struct search *search, const struct expression *expression)
{
    for (uint32_t i = 0; i < expression->n; i++)
        if (ends(search, expression->parts[i]))
            return true;
    return false;
}

static bool members_end(struct search *search, const struct expression_members *members)
{
    uint32_t n = 0;
    bool other = false;
    for (uint32_t i = 0; i < members->n_named; i++) {
        bool one = ends(search, members->named[i].head) && ends(search, members->named[i].tail);
        if (!one && members->named[i].required)
            return false;
        n += one;
    }
    for (uint32_t i = 0; i < members->n_others && n < members->least && !other; i++)
        other = ends(search, members->others[i].head) && ends(search, members->others[i].tail);
    return other || n >= members->least;
}

static bool looks_ended(struct search *search, const struct expression *expression)
{
    switch (expression->kind) {
    case EXPRESSION_CHARS:
        return expression->n > 0;
    case EXPRESSION_SEQUENCE:
        return all_end(search, expression);
    case EXPRESSION_CHOICE:
        return any_ends(search, expression);
    case EXPRESSION_REPEAT:
        return expression->least == 0 || ends(search, expression->parts[0]);
    case EXPRESSION_RULE:
        return ends(search, search->reader->rules->items[expression->rule].body);
    case EXPRESSION_MEMBERS:
        return members_end(search, expression->members);
    case EXPRESSION_EMPTY:
    case EXPRESSION_LITERAL:
    case EXPRESSION_GRAPH: /* of characters, and not empty */
        break;
    }
    return true;
}

static bool ends(struct search *search, const struct expression *expression)
{
    bool is_new;
    uint32_t number = state_keys_find(&search->keys, &expression, sizeof expression, &is_new);
    if (number == UINT32_MAX)
        schema_no_memory(search->reader);
    if (number == UINT32_MAX || !schema_spend(search->reader, 1) ||
        !schema_grow(search->reader, (void **)&search->findings, &search->cap, number,
                     sizeof *search->findings))
        return true; /* and is refused */
    if (search->findings[number] != UNKNOWN)
        return search->findings[number] == ENDS;
    search->findings[number] = LOOKED_AT;
    bool ended = looks_ended(search, expression);
    if (ended)
        search->findings[number] = ENDS;
    search->found |= ended;
    return ended;
}

bool emit_is_endless(struct schema_reader *reader, const struct expression *expression)
{
    struct search search = {.reader = reader};
    bool ended = false;
    do {
        search.found = false;
        for (uint32_t i = 0; i < search.keys.n; i++)
            search.findings[i] = search.findings[i] == ENDS ? ENDS : UNKNOWN;
        ended = ends(&search, expression);
    } while (!ended && search.found && reader->code == 0);
    state_keys_deinit(&search.keys);
    free(search.findings);
    return !ended && reader->code == 0;
}
