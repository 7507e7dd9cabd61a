/* SPDX-License-Identifier: MIT */
/* Values in a format, laid out as Python does it. Widths and precisions are bounded, so that a format is no
 * way round the bound on work. */

#include "worker/template/jinja/layout.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "worker/template/jinja/string_ops.h"

enum { MAX_WIDTH = 4096, MAX_PRECISION = 100 };

static const struct jinja_string *fill_of(const struct jinja_layout *layout)
{
    static const struct jinja_string blank = {.data = " ", .len = 1};
    return layout->fill.len > 0 ? &layout->fill : &blank;
}

int jinja_unfit(struct jinja_run *run, char type, struct jinja_value value)
{
    return jinja_fail(run, -EINVAL, "the format '%c' does not fit %s",
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

/* Puts `mark` between groups of the `whole` digits that a number begins with. */
static size_t group_digits(char *digits, size_t n, size_t whole, size_t size, char mark)
{
    for (size_t at = whole; at > size;) {
        at -= size;
        memmove(digits + at + 1, digits + at, n - at);
        digits[at] = mark;
        n++;
    }
    return n;
}

/* Appends sign, prefix and digits, padded. Zeros and the alignment '=' go between prefix and digits. */
static int append_number(struct jinja_run *run, struct jinja_builder *builder,
                         const struct jinja_layout *layout, bool negative, const char *prefix,
                         const char *digits, size_t n)
{
    char head[8];
    int head_len = snprintf(head, sizeof head, "%s%s",
                            negative              ? "-"
                            : layout->sign == '+' ? "+"
                            : layout->sign == ' ' ? " "
                                                  : "",
                            prefix);
    const int64_t missing = layout->width - head_len - (int64_t)n;
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
        r = jinja_append(run, builder, digits, n, NULL);
    for (int64_t i = before; r == 0 && i < missing; i++)
        r = jinja_append_string(run, builder, fill);
    return r;
}

static int lay_out_whole(struct jinja_run *run, struct jinja_builder *builder,
                         const struct jinja_layout *layout, int64_t number)
{
    char digits[200], prefix[3] = "";
    const char type = layout->type ? layout->type : 'd';
    const unsigned base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
    size_t n = spell_whole(number < 0 ? -(uint64_t)number : (uint64_t)number, base, type == 'X', digits);
    if (layout->alternate && base != 10)
        snprintf(prefix, sizeof prefix, "0%c", type);
    if (layout->grouping)
        n = group_digits(digits, n, n, base == 10 ? 3 : 4, layout->grouping);
    return append_number(run, builder, layout, number < 0, prefix, digits, n);
}

static int lay_out_real(struct jinja_run *run, struct jinja_builder *builder,
                        const struct jinja_layout *layout, double number)
{
    char digits[700], pattern[8];
    const bool percent = layout->type == '%', negative = signbit(number) && !isnan(number);
    const char type = percent ? 'f' : layout->type ? layout->type : 'g';
    int precision = layout->precision >= 0 ? (int)layout->precision : 6;
    double size = fabs(number) * (percent ? 100 : 1);
    snprintf(pattern, sizeof pattern, "%%%s.*%c", layout->alternate ? "#" : "", type);
    int len = snprintf(digits, sizeof digits - 250, pattern, precision, size);
    size_t n = (size_t)len, whole = strspn(digits, "0123456789");
    if (!layout->type && isfinite(number) &&
        !strpbrk(digits, ".e")) { /* a real number shows that it is one */
        memcpy(digits + n, ".0", 3);
        n += 2;
    }
    if (layout->grouping)
        n = group_digits(digits, n, whole, 3, layout->grouping);
    if (percent)
        digits[n++] = '%';
    return append_number(run, builder, layout, negative, "", digits, n);
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

int jinja_lay_out(struct jinja_run *run, struct jinja_builder *builder, const struct jinja_layout *layout,
                  struct jinja_value value)
{
    const bool plain = !layout->type && !layout->sign && !layout->grouping && !layout->alternate;
    const char type = layout->type;
    if (layout->width > MAX_WIDTH || layout->precision > MAX_PRECISION)
        return jinja_fail(run, -EINVAL, "a format has a width of at most %d and a precision of at most %d",
                          MAX_WIDTH, MAX_PRECISION);
    if (value.type == JINJA_STR)
        return (type && type != 's') || layout->sign || layout->grouping || layout->align == '='
                   ? jinja_unfit(run,
                                 type                   ? type
                                 : layout->align == '=' ? '='
                                                        : layout->sign,
                                 value)
                   : lay_out_string(run, builder, layout, value.string);
    if (plain && layout->width == 0 && layout->precision < 0 && !layout->align)
        return jinja_append_value(run, builder, value);
    if (!jinja_is_number(value))
        return jinja_unfit(run, type ? type : 's', value);
    if (jinja_is_whole(value) && (!type || strchr("dxXob", type)))
        return layout->precision >= 0 ? jinja_unfit(run, '.', value)
                                      : lay_out_whole(run, builder, layout, jinja_whole_of(value));
    if (!type && layout->precision < 0) { /* as it prints itself */
        struct jinja_builder digits = {0};
        const double number = jinja_real_of(value);
        int r = jinja_append_value(run, &digits, jinja_of_real(fabs(number)));
        return r != 0 ? r : append_number(run, builder, layout, signbit(number), "", digits.data, digits.len);
    }
    if (type && !strchr("eEfFgG%", type))
        return jinja_unfit(run, type, value);
    return lay_out_real(run, builder, layout, jinja_real_of(value));
}
