/* SPDX-License-Identifier: MIT */
/* Values in a format, laid out as Python does it. Widths and precisions are bounded, so that a format is no
 * way round the bound on work. */

#include "text/template/jinja/library/layout.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/template/jinja/string_ops.h"
#include "text/template/jinja/characters.h"
#include "text/template/jinja/operators.h"
#include "text/template/jinja/print.h"

enum { MAX_WIDTH = 4096, MAX_PRECISION = 100 };

static const struct jinja_string *fill_of(const struct jinja_layout *layout)
{
    static const struct jinja_string blank = {.data = " ", .len = 1};
    return layout->fill.len > 0 ? &layout->fill : &blank;
}

int jinja_unfit(struct jinja_run *run, char type, struct jinja_value value)
{
    return jinja_fail(run, -EINVAL, "the format '%c' does not apply to %s",
                      type >= ' ' && type <= '~' ? type : '?', jinja_type_name(value));
}

/* Digits of a number without its sign. */
static size_t spell_whole(uint64_t number, unsigned base, bool capitals, char digits[65])
{
    char reversed[65];
    size_t n = 0;
    do {
        reversed[n++] = (capitals ? "0123456789ABCDEF" : "0123456789abcdef")[number % base];
        number /= base;
    } while (number > 0);
    for (size_t i = 0; i < n; i++)
        digits[i] = reversed[n - 1 - i];
    return n;
}

/* A number as its digits. */
struct spelled {
    bool negative;
    const char *prefix;
    const char *digits;
    size_t n, whole; /* bytes; those of them before a point, an exponent or the like */
    size_t group;    /* of how many digits */
};

/* So many digits with marks between their groups. */
static int64_t grouped_len(const struct jinja_layout *layout, const struct spelled *number, size_t digits)
{
    return (int64_t)(digits + (layout->grouping && digits > 0 ? (digits - 1) / number->group : 0));
}

/* How many zeros are to stand before the digits of a number that is filled up with them to `width` bytes:
 * they belong to its groups, none of which begins with a mark, so it may be a byte longer. */
static size_t leading_zeros(const struct jinja_layout *layout, const struct spelled *number, int64_t width)
{
    const bool zeros = layout->fill.len == 1 && layout->fill.data[0] == '0' && layout->align == '=';
    const int64_t room = width - (int64_t)(number->n - number->whole);
    size_t digits = number->whole;
    while (zeros && layout->grouping && digits > 0 && grouped_len(layout, number, digits) < room)
        digits++;
    return digits - number->whole;
}

static int append_digits(struct jinja_run *run, struct jinja_builder *builder,
                         const struct jinja_layout *layout, const struct spelled *number, size_t zeros)
{
    const size_t digits = zeros + number->whole;
    int r = 0;
    if (!layout->grouping)
        return jinja_append(run, builder, number->digits, number->n, NULL);
    for (size_t i = 0; r == 0 && i < digits; i++) {
        if (i > 0 && (digits - i) % number->group == 0)
            r = jinja_append(run, builder, &layout->grouping, 1, NULL);
        if (r == 0)
            r = jinja_append(run, builder, i < zeros ? "0" : number->digits + (i - zeros), 1, NULL);
    }
    return r != 0
               ? r
               : jinja_append(run, builder, number->digits + number->whole, number->n - number->whole, NULL);
}

/* Appends sign, prefix and digits, padded. Zeros and the alignment '=' go between prefix and digits. */
static int append_number(struct jinja_run *run, struct jinja_builder *builder,
                         const struct jinja_layout *layout, const struct spelled *number)
{
    char head[8];
    int head_len = snprintf(head, sizeof head, "%s%s",
                            number->negative      ? "-"
                            : layout->sign == '+' ? "+"
                            : layout->sign == ' ' ? " "
                                                  : "",
                            number->prefix);
    const size_t zeros = leading_zeros(layout, number, layout->width - head_len);
    const int64_t missing = layout->width - head_len - (int64_t)(number->n - number->whole) -
                            grouped_len(layout, number, zeros + number->whole);
    const int64_t before = missing <= 0           ? 0
                           : layout->align == '<' ? 0
                           : layout->align == '^' ? missing / 2
                                                  : missing;
    const struct jinja_string *fill = fill_of(layout);
    int r = 0;
    if (layout->align == '=')
        r = jinja_append(run, builder, head, (size_t)head_len, NULL);
    for (int64_t i = 0; r == 0 && i < before; i++)
        r = jinja_append_string(run, builder, fill);
    if (r == 0 && layout->align != '=')
        r = jinja_append(run, builder, head, (size_t)head_len, NULL);
    if (r == 0)
        r = append_digits(run, builder, layout, number, zeros);
    for (int64_t i = before; r == 0 && i < missing; i++)
        r = jinja_append_string(run, builder, fill);
    return r;
}

static int lay_out_whole(struct jinja_run *run, struct jinja_builder *builder,
                         const struct jinja_layout *layout, int64_t number)
{
    char digits[65], prefix[3] = "";
    const char type = layout->type ? layout->type : 'd';
    const unsigned base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
    const size_t n =
        spell_whole(number < 0 ? -(uint64_t)number : (uint64_t)number, base, type == 'X', digits);
    if (layout->alternate && base != 10)
        snprintf(prefix, sizeof prefix, "0%c", type);
    const struct spelled spelled = {.negative = number < 0,
                                    .prefix = prefix,
                                    .digits = digits,
                                    .n = n,
                                    .whole = n,
                                    .group = base == 10 ? 3 : 4};
    return append_number(run, builder, layout, &spelled);
}

/* Digits with a point, an exponent, or the names of what is no number. */
static int append_real(struct jinja_run *run, struct jinja_builder *builder,
                       const struct jinja_layout *layout, bool negative, const char *digits)
{
    const struct spelled spelled = {.negative = negative,
                                    .prefix = "",
                                    .digits = digits,
                                    .n = strlen(digits),
                                    .whole = strspn(digits, "0123456789"),
                                    .group = 3};
    return append_number(run, builder, layout, &spelled);
}

static int lay_out_real(struct jinja_run *run, struct jinja_builder *builder,
                        const struct jinja_layout *layout, double number)
{
    char digits[500], pattern[8]; /* the largest number has 309 digits and 100 behind the point */
    const bool percent = layout->type == '%', negative = signbit(number) && !isnan(number);
    const char type = percent ? 'f' : layout->type ? layout->type : 'g';
    int precision = layout->precision >= 0 ? (int)layout->precision : 6;
    double size = fabs(number) * (percent ? 100 : 1);
    snprintf(pattern, sizeof pattern, "%%%s.*%c", layout->alternate ? "#" : "", type);
    snprintf(digits, sizeof digits - 3, pattern, precision, size);
    if (!layout->type && isfinite(number) && !strpbrk(digits, ".e")) /* a real number shows that it is one */
        strcat(digits, ".0");
    if (percent)
        strcat(digits, "%");
    return append_real(run, builder, layout, negative, digits);
}

/* A number that is not whole as it prints itself. */
static int lay_out_plain(struct jinja_run *run, struct jinja_builder *builder,
                         const struct jinja_layout *layout, double number)
{
    struct jinja_builder printed = {0};
    char digits[64] = "";
    int r = jinja_append_value(run, &printed, jinja_of_real(fabs(number)));
    if (r != 0)
        return r;
    memcpy(digits, printed.data, printed.len);
    return append_real(run, builder, layout, signbit(number) && !isnan(number), digits);
}

/* A string, cut to the precision and padded. */
static int lay_out_string(struct jinja_run *run, struct jinja_builder *builder,
                          const struct jinja_layout *layout, const struct jinja_string *string)
{
    struct jinja_value value = {.type = JINJA_STR, .string = string};
    struct jinja_string cut = *string;
    int r = 0;
    if (builder->html)
        r = jinja_escape(run, string, &value);
    if (r == 0 && layout->precision >= 0) {
        cut = *value.string;
        cut.len = jinja_offset_of(&cut, layout->precision);
        value.string = &cut;
    }
    const struct jinja_string *fill = fill_of(layout);
    int64_t n = 0;
    if (r == 0)
        r = jinja_length(run, value, &n);
    const int64_t missing = layout->width - n;
    const int64_t before = missing <= 0           ? 0
                           : layout->align == '>' ? missing
                           : layout->align == '^' ? missing / 2
                                                  : 0;
    for (int64_t i = 0; r == 0 && i < before; i++)
        r = jinja_append_string(run, builder, fill);
    if (r == 0)
        r = jinja_append_string(run, builder, value.string);
    for (int64_t i = before; r == 0 && i < missing; i++)
        r = jinja_append_string(run, builder, fill);
    return r;
}

/* What stands in a layout that only numbers have; 0: nothing. */
static char of_numbers(const struct jinja_layout *layout)
{
    return layout->type && layout->type != 's' ? layout->type
           : layout->sign                      ? layout->sign
           : layout->alternate                 ? '#'
           : layout->grouping                  ? layout->grouping
           : layout->align == '='              ? '='
                                               : 0;
}

static int lay_out_number(struct jinja_run *run, struct jinja_builder *builder,
                          const struct jinja_layout *layout, struct jinja_value value)
{
    const char type = layout->type;
    if (jinja_is_whole(value) && (!type || strchr("dxXob", type)))
        return layout->precision >= 0 ? jinja_unfit(run, '.', value)
                                      : lay_out_whole(run, builder, layout, jinja_whole_of(value));
    if (!type && layout->precision < 0)
        return lay_out_plain(run, builder, layout, jinja_real_of(value));
    if (type && !strchr("eEfFgG%", type))
        return jinja_unfit(run, type, value);
    return lay_out_real(run, builder, layout, jinja_real_of(value));
}

int jinja_lay_out(struct jinja_run *run, struct jinja_builder *builder, const struct jinja_layout *layout,
                  struct jinja_value value)
{
    struct jinja_layout numbers = *layout;
    if (layout->width > MAX_WIDTH || layout->precision > MAX_PRECISION)
        return jinja_fail(run, -EINVAL, "a format has a width of at most %d and a precision of at most %d",
                          MAX_WIDTH, MAX_PRECISION);
    if (value.type == JINJA_STR)
        return of_numbers(layout) ? jinja_unfit(run, of_numbers(layout), value)
                                  : lay_out_string(run, builder, layout, value.string);
    if (layout->zeros)
        numbers.align = '=';
    if (!of_numbers(&numbers) && !layout->type && layout->width == 0 && layout->precision < 0 &&
        !layout->align)
        return jinja_append_value(run, builder, value);
    return jinja_is_number(value) ? lay_out_number(run, builder, &numbers, value)
                                  : jinja_unfit(run, layout->type ? layout->type : 's', value);
}
