/* SPDX-License-Identifier: MIT */
/* See decimals.h. A state of an automaton is a number whose bits are what has been read so far; numbers are
 * read from the left, so how many digits come before the point decides first, and only then their values. */

#include "text/grammar/json_schema/decimals.h"

#include <stdlib.h>
#include <string.h>

#define MOST_MODULUS 20000u

/* ---- a number of the schema ---- */

char *decimal_text(const json_t *number)
{
    char *text = NULL;
    bool same = false;
    for (size_t digits = 15; digits <= 17 && !same; digits++) {
        free(text);
        text = json_dumps(number, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        json_t *back = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
        same = !text || json_equal(back, number);
        json_decref(back);
    }
    return text;
}

bool decimal_read(const char *text, struct decimal *ret_decimal)
{
    uint8_t digits[2 * DECIMAL_MOST_DIGITS];
    long n = 0, point = -1;
    struct decimal decimal = {.negative = *text == '-'};
    for (text += decimal.negative; (*text >= '0' && *text <= '9') || *text == '.'; text++) {
        if (*text == '.')
            point = n;
        else if (n < 40)
            digits[n++] = (uint8_t)(*text - '0');
        else
            return false;
    }
    point = point < 0 ? n : point;
    if (*text == 'e' || *text == 'E')
        point += strtol(text + 1, NULL, 10);
    if (point > DECIMAL_MOST_DIGITS || n - point > DECIMAL_MOST_DIGITS)
        return false;
    for (long i = point < 0 ? point : 0; i < (n > point ? n : point); i++) {
        uint8_t digit = i >= 0 && i < n ? digits[i] : 0;
        if (i >= point)
            decimal.part[decimal.n_part++] = digit;
        else if (decimal.n_whole > 0 || digit != 0)
            decimal.whole[decimal.n_whole++] = digit;
    }
    while (decimal.n_part > 0 && decimal.part[decimal.n_part - 1] == 0)
        decimal.n_part--;
    if (decimal.n_whole == 0)
        decimal.n_whole = 1; /* 0 */
    *ret_decimal = decimal;
    return true;
}

/* ---- the automata ---- */

enum phase { AT_START, BEHIND_SIGN, IN_WHOLE, BEHIND_POINT, IN_PART, IN_NOTHING };

/* - . / and the digits, and what is behind them. */
static const uint32_t classes[] = {0, '-', '.', '/', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', ':'};
#define N_CLASSES (sizeof classes / sizeof *classes)

/* The phase behind a character; IN_NOTHING: it is no number. */
static enum phase phase_behind(enum phase phase, uint32_t point)
{
    bool digit = point >= '0' && point <= '9';
    switch (phase) {
    case AT_START:
        return point == '-' ? BEHIND_SIGN : digit ? IN_WHOLE : IN_NOTHING;
    case BEHIND_SIGN:
        return digit ? IN_WHOLE : IN_NOTHING;
    case IN_WHOLE:
        return digit ? IN_WHOLE : point == '.' ? BEHIND_POINT : IN_NOTHING;
    case BEHIND_POINT:
    case IN_PART:
        return digit ? IN_PART : IN_NOTHING;
    case IN_NOTHING:
        break;
    }
    return IN_NOTHING;
}

union comparing {
    struct {
        uint64_t phase : 3, negative : 1, nonzero : 1, order : 3, n : 16, unused : 40;
    };
    uint64_t bits;
};

struct comparison {
    const struct decimal *to;
    unsigned orders;
};

static unsigned order_of(uint8_t a, uint8_t b)
{
    return a < b ? DECIMAL_LESS : a > b ? DECIMAL_MORE : DECIMAL_EQUAL;
}

/* Of amounts: the sign is looked at in the end. */
static uint64_t compare_step(const void *arg, uint64_t bits, uint32_t point)
{
    const struct decimal *to = ((const struct comparison *)arg)->to;
    union comparing at = {.bits = bits};
    const enum phase phase = phase_behind((enum phase)at.phase, point);
    const uint8_t digit = (uint8_t)(point - '0');
    if (phase == IN_NOTHING)
        return (union comparing){.phase = IN_NOTHING}.bits;
    if (at.phase == AT_START)
        at.order = DECIMAL_EQUAL;
    at.negative |= phase == BEHIND_SIGN;
    if (phase == IN_WHOLE) {
        if (at.n >= to->n_whole)
            at.order = DECIMAL_MORE;
        else if (at.order == DECIMAL_EQUAL)
            at.order = order_of(digit, to->whole[at.n]);
        at.n = at.n < to->n_whole ? at.n + 1u : at.n;
    } else if (phase == BEHIND_POINT) {
        if (at.n < to->n_whole)
            at.order = DECIMAL_LESS;
        at.n = 0;
    } else if (phase == IN_PART && at.order == DECIMAL_EQUAL) {
        at.order = order_of(digit, at.n < to->n_part ? to->part[at.n] : 0);
        at.n = at.order != DECIMAL_EQUAL ? 0 : at.n < to->n_part ? at.n + 1u : at.n;
    }
    at.nonzero |= (phase == IN_WHOLE || phase == IN_PART) && digit != 0;
    at.phase = phase;
    return at.bits;
}

static unsigned reversed(unsigned order)
{
    return order == DECIMAL_LESS ? DECIMAL_MORE : order == DECIMAL_MORE ? DECIMAL_LESS : order;
}

static bool compare_accepts(const void *arg, uint64_t bits)
{
    const struct comparison *comparison = arg;
    const struct decimal *to = comparison->to;
    const union comparing at = {.bits = bits};
    unsigned order = at.order;
    if (at.phase != IN_WHOLE && at.phase != IN_PART)
        return false;
    if (at.phase == IN_WHOLE && at.n < to->n_whole)
        order = DECIMAL_LESS;
    /* What is missing are zeroes, and the last digit of a part is none. */
    if (order == DECIMAL_EQUAL && (at.phase == IN_WHOLE ? 0 : at.n) < to->n_part)
        order = DECIMAL_LESS;
    bool zero = to->n_part == 0 && to->n_whole == 1 && to->whole[0] == 0;
    int own = !at.nonzero ? 0 : at.negative ? -1 : 1, other = zero ? 0 : to->negative ? -1 : 1;
    if (own != other)
        order = own < other ? DECIMAL_LESS : DECIMAL_MORE;
    else if (own <= 0)
        order = own == 0 ? DECIMAL_EQUAL : reversed(order);
    return (order & comparison->orders) != 0;
}

const struct automaton *decimal_compared(struct automata *automata, const struct decimal *to, unsigned orders)
{
    const struct comparison comparison = {to, orders};
    return automaton_least(
        automata, automaton_told(automata, &(struct automaton_teller){&comparison, 0, compare_step,
                                                                      compare_accepts, classes, N_CLASSES}));
}

/* ---- multiples ---- */

/* What is read so far, without point and sign, modulo the number's digits without its point. */
union dividing {
    struct {
        uint64_t phase : 3, n : 16, rest : 32, unused : 13;
    };
    uint64_t bits;
};

struct division {
    uint32_t modulus, n_part;
};

static uint64_t divide_step(const void *arg, uint64_t bits, uint32_t point)
{
    const struct division *division = arg;
    union dividing at = {.bits = bits};
    const enum phase phase = phase_behind((enum phase)at.phase, point);
    const uint32_t digit = point - '0';
    bool beyond = phase == IN_PART && at.n >= division->n_part;
    if (phase == IN_NOTHING || (beyond && digit != 0))
        return (union dividing){.phase = IN_NOTHING}.bits;
    if ((phase == IN_WHOLE || phase == IN_PART) && !beyond)
        at.rest = (at.rest * 10 + digit) % division->modulus;
    at.n += phase == IN_PART && !beyond;
    at.phase = phase;
    return at.bits;
}

static bool divide_accepts(const void *arg, uint64_t bits)
{
    const struct division *division = arg;
    const union dividing at = {.bits = bits};
    uint64_t rest = at.rest;
    if (at.phase != IN_WHOLE && at.phase != IN_PART)
        return false;
    for (uint32_t n = at.n; n < division->n_part && rest != 0; n++)
        rest = rest * 10 % division->modulus;
    return rest == 0;
}

const struct automaton *decimal_multiples(struct automata *automata, const struct decimal *of)
{
    struct division division = {0, of->n_part};
    uint64_t modulus = 0;
    for (uint32_t i = 0; i < of->n_whole + of->n_part; i++) {
        modulus = modulus * 10 + (i < of->n_whole ? of->whole[i] : of->part[i - of->n_whole]);
        if (modulus > MOST_MODULUS) {
            automata->too_large = true;
            return NULL;
        }
    }
    division.modulus = (uint32_t)modulus;
    return automaton_least(
        automata, automaton_told(automata, &(struct automaton_teller){&division, 0, divide_step,
                                                                      divide_accepts, classes, N_CLASSES}));
}
