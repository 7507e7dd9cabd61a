/* SPDX-License-Identifier: MIT */
/* Strings. What one keyword says alone goes into the rules as it is; several things, or what a string must
 * not be, become an automaton of all of them first. */

#include "text/grammar/json_schema/strings.h"

#include <string.h>

#include "text/grammar/json_schema/emit.h"
#include "text/grammar/json_strings.h"
#include "text/grammar/regex.h"

/* ---- patterns and formats ---- */

/* As characters, or spelled for JSON. NULL: refused. */
static const struct expression *of_regex(struct schema_reader *reader, const char *keyword, struct bytes text,
                                         bool search, bool spelled)
{
    const struct regex_style style = {spelled ? json_string_spelling : NULL, &reader->json, search};
    const struct expression *expression = NULL;
    struct error reason = {0};
    int r = regex_expression(text, &style, reader->rules, &expression, &reason);
    if (r < 0)
        return schema_no_memory(reader);
    if (r > 0)
        return schema_refuse(reader, "%s: %.180s", keyword, reason.text);
    return expression;
}

static const struct expression *of_format(struct schema_reader *reader, const json_t *format, bool spelled)
{
    const char *name = json_string_value(format), *pattern = schema_format_pattern(name);
    if (!pattern)
        return schema_refuse(reader, "the format \"%.40s\" is not supported", name);
    return of_regex(reader, "format", bytes_of_string(pattern), false, spelled);
}

const struct automaton *schema_pattern(struct schema_reader *reader, const char *pattern)
{
    bool is_new;
    uint32_t number = state_keys_find(&reader->pattern_keys, pattern, strlen(pattern), &is_new);
    if (number == UINT32_MAX)
        return schema_no_memory(reader);
    if (!schema_grow(reader, (void **)&reader->patterns, &reader->patterns_cap, number,
                     sizeof *reader->patterns))
        return NULL;
    if (!reader->patterns[number]) {
        const struct expression *expression =
            of_regex(reader, "pattern", bytes_of_string(pattern), true, false);
        reader->patterns[number] = expression ? automaton_of(&reader->automata, expression) : NULL;
    }
    return reader->patterns[number] ? reader->patterns[number]
                                    : schema_refuse_automaton(reader, "the pattern");
}

/* ---- all that is said ---- */

static uint32_t count_of(const struct atom *atom)
{
    return (uint32_t)json_number_value(atom->value);
}

static const struct automaton *of_values(struct schema_reader *reader, const json_t *values)
{
    struct expression_list list = {0};
    for (size_t i = 0; i < json_array_size(values); i++) {
        const json_t *value = json_array_get(values, i);
        if (json_is_string(value))
            expression_push(reader->rules, &list,
                            expression_literal(reader->rules, (struct bytes){json_string_value(value),
                                                                             json_string_length(value)}));
    }
    return automaton_of(&reader->automata, expression_choice(reader->rules, &list));
}

static const struct automaton *of_atom(struct schema_reader *reader, const struct atom *atom)
{
    switch (atom->kind) {
    case ATOM_MIN_LENGTH:
        return automaton_of_length(&reader->automata, count_of(atom), GRAMMAR_UNBOUNDED);
    case ATOM_MAX_LENGTH:
        return automaton_of_length(&reader->automata, 0, count_of(atom));
    case ATOM_PATTERN:
        if (strlen(json_string_value(atom->value)) != json_string_length(atom->value))
            return schema_refuse(reader, "a pattern with a NUL character is not supported");
        return schema_pattern(reader, json_string_value(atom->value));
    case ATOM_FORMAT:
        return automaton_of(&reader->automata, of_format(reader, atom->value, false));
    case ATOM_AMONG:
        return of_values(reader, atom->value);
    default:
        return NULL;
    }
}

const struct automaton *shape_strings(struct schema_reader *reader, const struct shape *shape)
{
    static const struct code_range nul[] = {{0, 0}}; /* is in none that is made */
    struct rules *rules = reader->rules;
    const struct automaton *all =
        automaton_of(&reader->automata,
                     expression_repeat(rules, expression_chars(rules, nul, 1, true), 0, GRAMMAR_UNBOUNDED));
    for (const struct atom *a = shape->strings; all && a; a = (const void *)a->link.next)
        all = automaton_of_pair(&reader->automata, a->negated ? AUTOMATON_WITHOUT : AUTOMATON_BOTH, all,
                                of_atom(reader, a));
    return all ? all : schema_refuse_automaton(reader, "the constraints of the string");
}

/* ---- as an expression ---- */

/* Of bounds on the length only: 1 with them; 0: something else is said too. */
static bool only_counted(const struct shape *shape, uint32_t *ret_least, uint32_t *ret_most)
{
    *ret_least = 0;
    *ret_most = GRAMMAR_UNBOUNDED;
    for (const struct atom *a = shape->strings; a; a = (const void *)a->link.next) {
        uint32_t count = a->kind == ATOM_MIN_LENGTH || a->kind == ATOM_MAX_LENGTH ? count_of(a) : 0;
        if (a->kind == ATOM_MIN_LENGTH && !a->negated)
            *ret_least = count > *ret_least ? count : *ret_least;
        else if (a->kind == ATOM_MAX_LENGTH && !a->negated)
            *ret_most = count < *ret_most ? count : *ret_most;
        else
            return false;
    }
    return true;
}

static const struct expression *no_string(struct schema_reader *reader)
{
    schema_note_nothing(reader, "no string meets all constraints");
    return &schema_nothing;
}

const struct expression *emit_string(struct schema_reader *reader, const struct shape *shape)
{
    const struct atom *atom = shape->strings;
    struct rules *rules = reader->rules;
    const struct expression *text = NULL;
    uint32_t least, most;
    if (!atom)
        return json_string_any(&reader->json);
    bool alone = !atom->link.next && !atom->negated;
    if (only_counted(shape, &least, &most)) {
        if (least > most)
            return no_string(reader);
        text = expression_repeat(rules, json_string_character(&reader->json), least, most);
    } else if (alone && atom->kind == ATOM_PATTERN) {
        text = of_regex(reader, "pattern",
                        (struct bytes){json_string_value(atom->value), json_string_length(atom->value)}, true,
                        true);
    } else if (alone && atom->kind == ATOM_FORMAT) {
        text = of_format(reader, atom->value, true);
    } else {
        const struct automaton *all = shape_strings(reader, shape);
        if (all && automaton_is_empty(all))
            return no_string(reader);
        text = all ? automaton_expression(&reader->automata, all, json_string_spelling, &reader->json) : NULL;
    }
    return json_string_quoted(&reader->json, text);
}
