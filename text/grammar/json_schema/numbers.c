/* SPDX-License-Identifier: MIT */
/* Numbers: what is said of one, all at once. Texts with an exponent are made only where nothing is said. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/grammar/json_schema/decimals.h"
#include "text/grammar/json_schema/shapes.h"
#include "text/grammar/regex.h"

enum number_kind { ANY_NUMBER, ANY_INTEGER, WHOLE /* it may be written with a point */ };

/* Made once for a schema: most that is said of numbers begins with one of these. */
static const struct automaton *of_kind(struct schema_reader *reader, enum number_kind kind)
{
    static const char *const texts[] = {
        [ANY_NUMBER] = "(0|-?[1-9][0-9]{0,14})(\\.[0-9]{1,15})?|-0\\.[0-9]{0,14}[1-9]",
        [ANY_INTEGER] = "0|-?[1-9][0-9]{0,17}",
        [WHOLE] = "-?[0-9]+(\\.0+)?",
    };
    static const struct regex_style whole = {0};
    const struct expression *expression = NULL;
    struct error err = {0};
    if (!reader->numbers[kind] &&
        regex_expression(bytes_of_string(texts[kind]), &whole, reader->rules, &expression, &err) == 0)
        reader->numbers[kind] = automaton_of(&reader->automata, expression);
    return reader->numbers[kind];
}

bool shape_is_integer(const struct shape *shape)
{
    for (const struct atom *a = shape->numbers; a; a = (const void *)a->link.next)
        if (a->kind == ATOM_INTEGER && !a->negated)
            return true;
    return false;
}

static bool read_decimal(struct schema_reader *reader, const json_t *value, struct decimal *ret_decimal)
{
    char *text = decimal_text(value);
    bool read = text && decimal_read(text, ret_decimal);
    if (!text)
        schema_no_memory(reader);
    if (!read)
        schema_refuse(reader, "the number %.40s has too many digits", text ? text : "?");
    free(text);
    return read;
}

/* The numbers among a list. */
static const struct automaton *of_values(struct schema_reader *reader, const json_t *values)
{
    const struct automaton *sum = NULL;
    for (size_t i = 0; i < json_array_size(values); i++) {
        struct decimal decimal;
        const json_t *value = json_array_get(values, i);
        if (!json_is_number(value))
            continue;
        if (!read_decimal(reader, value, &decimal))
            return NULL;
        const struct automaton *one = decimal_compared(&reader->automata, &decimal, DECIMAL_EQUAL);
        sum = sum ? automaton_of_pair(&reader->automata, AUTOMATON_EITHER, sum, one) : one;
        if (!sum)
            return NULL;
    }
    return sum ? sum : automaton_of(&reader->automata, expression_chars(reader->rules, NULL, 0, false));
}

static const struct automaton *of_atom(struct schema_reader *reader, const struct atom *atom)
{
    static const unsigned orders[] = {[ATOM_MINIMUM] = DECIMAL_MORE | DECIMAL_EQUAL,
                                      [ATOM_MAXIMUM] = DECIMAL_LESS | DECIMAL_EQUAL,
                                      [ATOM_EXCLUSIVE_MINIMUM] = DECIMAL_MORE,
                                      [ATOM_EXCLUSIVE_MAXIMUM] = DECIMAL_LESS};
    struct decimal decimal;
    if (atom->kind == ATOM_INTEGER)
        return of_kind(reader, WHOLE);
    if (atom->kind == ATOM_AMONG)
        return of_values(reader, atom->value);
    if (!read_decimal(reader, atom->value, &decimal))
        return NULL;
    return atom->kind == ATOM_MULTIPLE ? decimal_multiples(&reader->automata, &decimal)
                                       : decimal_compared(&reader->automata, &decimal, orders[atom->kind]);
}

const struct automaton *shape_numbers(struct schema_reader *reader, const struct shape *shape)
{
    const struct automaton *all = of_kind(reader, shape_is_integer(shape) ? ANY_INTEGER : ANY_NUMBER);
    for (const struct atom *a = shape->numbers; all && a; a = (const void *)a->link.next) {
        const struct automaton *one = of_atom(reader, a);
        all = automaton_of_pair(&reader->automata, a->negated ? AUTOMATON_WITHOUT : AUTOMATON_BOTH, all, one);
    }
    return all ? all : schema_refuse_automaton(reader, "the constraints of the number");
}

/* ---- a value ---- */

static bool is_multiple(const json_t *value, const json_t *of)
{
    if (json_is_integer(value) && json_is_integer(of))
        return json_integer_value(value) % json_integer_value(of) == 0;
    double times = json_number_value(value) / json_number_value(of);
    return isfinite(times) && fabs(times - round(times)) <= 1e-9 * fmax(1, fabs(times));
}

static int compare(const json_t *a, const json_t *b)
{
    if (json_is_integer(a) && json_is_integer(b))
        return json_integer_value(a) < json_integer_value(b)   ? -1
               : json_integer_value(a) > json_integer_value(b) ? 1
                                                               : 0;
    double x = json_number_value(a), y = json_number_value(b);
    return x < y ? -1 : x > y;
}

static bool is_among(const json_t *values, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(values); i++)
        if (json_values_equal(json_array_get(values, i), value))
            return true;
    return false;
}

bool number_has_atom(const struct atom *atom, const json_t *value)
{
    double number = json_number_value(value);
    switch (atom->kind) {
    case ATOM_INTEGER:
        return number == floor(number);
    case ATOM_MINIMUM:
        return compare(value, atom->value) >= 0;
    case ATOM_MAXIMUM:
        return compare(value, atom->value) <= 0;
    case ATOM_EXCLUSIVE_MINIMUM:
        return compare(value, atom->value) > 0;
    case ATOM_EXCLUSIVE_MAXIMUM:
        return compare(value, atom->value) < 0;
    case ATOM_MULTIPLE:
        return is_multiple(value, atom->value);
    case ATOM_AMONG:
        return is_among(atom->value, value);
    case ATOM_MIN_LENGTH:
    case ATOM_MAX_LENGTH:
    case ATOM_PATTERN:
    case ATOM_FORMAT:
        break;
    }
    return false;
}
