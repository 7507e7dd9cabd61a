/* SPDX-License-Identifier: MIT */
/* See json_out.h. Most of a text needs no escape: runs of plain bytes are copied whole. */

#include "gateway/json/json_out.h"

#include <math.h>
#include <stdio.h>

#include "common/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd"

void json_out_bytes(struct json_out *out, const void *data, size_t len)
{
    if (!out->failed && buffer_append(&out->buffer, data, len) < 0)
        out->failed = true;
}

static void escape(struct json_out *out, unsigned char byte)
{
    char code[8];
    switch (byte) {
    case '"':
        json_out_text(out, "\\\"");
        break;
    case '\\':
        json_out_text(out, "\\\\");
        break;
    case '\n':
        json_out_text(out, "\\n");
        break;
    case '\r':
        json_out_text(out, "\\r");
        break;
    case '\t':
        json_out_text(out, "\\t");
        break;
    default:
        snprintf(code, sizeof code, "\\u%04x", byte);
        json_out_text(out, code);
    }
}

/* Of text that is UTF-8. */
static void append_valid(struct json_out *out, const unsigned char *text, size_t len)
{
    size_t plain = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] >= 0x20 && text[i] != '"' && text[i] != '\\' && text[i] != 0x7f)
            continue;
        json_out_bytes(out, text + plain, i - plain);
        escape(out, text[i]);
        plain = i + 1;
    }
    json_out_bytes(out, text + plain, len - plain);
}

void json_out_string(struct json_out *out, struct bytes text)
{
    const unsigned char *data = text.data;
    json_out_text(out, "\"");
    for (size_t at = 0; at < text.len;) {
        size_t valid = utf8_valid((struct bytes){data + at, text.len - at});
        append_valid(out, data + at, valid);
        at += valid;
        if (at < text.len) {
            json_out_text(out, REPLACEMENT);
            at++;
        }
    }
    json_out_text(out, "\"");
}

/* The digits of a number, with zeros before them up to `least` digits, so that they end at `end`. Returns
 * where they begin. An answer has dozens of numbers, for which printf is slow. */
static char *digits_before(char *end, uint64_t number, int least)
{
    for (int n = 0; number > 0 || n < least; n++, number /= 10)
        *--end = (char)('0' + number % 10);
    return end;
}

void json_out_number(struct json_out *out, int64_t number)
{
    char text[24], *const end = text + sizeof text;
    const uint64_t magnitude = number < 0 ? -(uint64_t)number : (uint64_t)number;
    char *begin = digits_before(end, magnitude, 1);
    if (number < 0)
        *--begin = '-';
    json_out_bytes(out, begin, (size_t)(end - begin));
}

void json_out_bool(struct json_out *out, bool value)
{
    json_out_text(out, value ? "true" : "false");
}

void json_out_real(struct json_out *out, double real)
{
    char digits[32];
    if (!isfinite(real))
        real = -9999;
    snprintf(digits, sizeof digits, "%.9g", real);
    json_out_text(out, digits);
}

void json_out_ms(struct json_out *out, double ms)
{
    char text[32], *end = text + sizeof text;
    if (!(ms >= 0 && ms < 1e9)) {
        json_out_real(out, ms);
        return;
    }
    const uint64_t ns = (uint64_t)(ms * 1e6 + 0.5);
    char *begin = digits_before(end, ns % 1000000, 6);
    *--begin = '.';
    begin = digits_before(begin, ns / 1000000, 1);
    while (end[-1] == '0')
        end--;
    if (end[-1] == '.')
        end--;
    json_out_bytes(out, begin, (size_t)(end - begin));
}

void json_out_base64(struct json_out *out, struct bytes bytes)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *in = bytes.data;
    for (size_t i = 0; i < bytes.len; i += 3) {
        const size_t left = bytes.len - i;
        const uint32_t three =
            (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) | (left > 2 ? in[i + 2] : 0);
        const char four[] = {letters[three >> 18], letters[three >> 12 & 63],
                             left > 1 ? letters[three >> 6 & 63] : '=', left > 2 ? letters[three & 63] : '='};
        json_out_bytes(out, four, sizeof four);
    }
}

void json_out_deinit(struct json_out *out)
{
    buffer_deinit(&out->buffer);
    *out = (struct json_out){0};
}
