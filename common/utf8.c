/* SPDX-License-Identifier: MIT */
/* Walks text a character at a time; utf8proc knows what a character is. Whether all of a text is UTF-8 is
 * told without it: texts of megabytes pass through the broker's loop. */

#include "common/utf8.h"

#include <string.h>

#include <utf8proc.h>

/* The length of the character at `at`, of which `len` ≥ 1 bytes are there; `ret_shown` says whether it may be
 * shown as it is. A byte that is not UTF-8 is a character that may not. */
static size_t next(const uint8_t *at, size_t len, bool *ret_shown)
{
    utf8proc_int32_t point = *at;
    utf8proc_ssize_t n = *at < 0x80 ? 1 : utf8proc_iterate(at, (utf8proc_ssize_t)len, &point);
    *ret_shown = n > 0 && point >= 0x20 && !(point >= 0x7f && point <= 0x9f);
    return n > 0 ? (size_t)n : 1;
}

static bool is_trail(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

/* The length of the character of several bytes at `at`; 0 when it is none: too short, too long for what it
 * says, a surrogate, or beyond the last one there is. */
static size_t long_character(const uint8_t *at, size_t len)
{
    uint8_t lead = at[0];
    if (len < 2 || lead < 0xc2 || lead > 0xf4 || !is_trail(at[1]))
        return 0;
    if (lead < 0xe0)
        return 2;
    if (len < 3 || !is_trail(at[2]))
        return 0;
    if (lead < 0xf0)
        return (lead == 0xe0 && at[1] < 0xa0) || (lead == 0xed && at[1] >= 0xa0) ? 0 : 3;
    if (len < 4 || !is_trail(at[3]))
        return 0;
    return (lead == 0xf0 && at[1] < 0x90) || (lead == 0xf4 && at[1] >= 0x90) ? 0 : 4;
}

/* Every text that a process receives passes here, megabytes in the broker's loop. */
size_t utf8_valid(struct bytes text)
{
    const uint8_t *data = text.data;
    size_t i = utf8_ascii(text);
    while (i < text.len) {
        size_t n = long_character(data + i, text.len - i);
        if (n == 0)
            break;
        i += n;
        i += utf8_ascii((struct bytes){data + i, text.len - i});
    }
    return i;
}

char *utf8_clean(char *text)
{
    size_t len = strlen(text), to = 0;
    bool shown;
    for (size_t i = 0, n; i < len; i += n) {
        n = next((const uint8_t *)text + i, len - i, &shown);
        if (shown)
            memmove(text + to, text + i, n); /* never forward: a character that is replaced only shrinks */
        else
            text[to] = '?';
        to += shown ? n : 1;
    }
    text[to] = 0;
    return text;
}

char *utf8_printable(struct bytes text, size_t size, char *ret_text)
{
    const uint8_t *in = text.data;
    size_t to = 0;
    for (size_t i = 0, n; i < text.len; i += n) {
        bool shown;
        n = next(in + i, text.len - i, &shown);
        size_t put = shown ? n : 1;
        /* Room for the dots must stay, unless all the rest fits: it never grows. */
        if (to + (text.len - i) >= size && to + put + 3 >= size) {
            memcpy(ret_text + to, "...", 3);
            to += 3;
            break;
        }
        if (shown)
            memcpy(ret_text + to, in + i, n);
        else
            ret_text[to] = '?';
        to += put;
    }
    ret_text[to] = 0;
    return ret_text;
}

int utf8_append_shown(struct buffer *out, struct bytes text)
{
    const uint8_t *in = text.data;
    int r = buffer_reserve(out, text.len);
    for (size_t i = 0, n; i < text.len && r == 0; i += n) {
        bool shown;
        n = next(in + i, text.len - i, &shown);
        if (shown || in[i] == '\n' || in[i] == '\t')
            r = buffer_append(out, in + i, n);
        else if (in[i] != '\r')
            r = buffer_append(out, "?", 1);
    }
    return r;
}

int utf8_append_replaced(struct buffer *out, struct bytes text)
{
    const uint8_t *in = text.data;
    size_t before = out->len;
    int r = buffer_reserve(out, text.len);
    for (size_t i = 0; i < text.len && r == 0;) {
        size_t n = utf8_valid((struct bytes){in + i, text.len - i});
        r = buffer_append(out, in + i, n);
        i += n;
        if (i < text.len && r == 0) {
            r = buffer_append(out, "\xef\xbf\xbd", 3);
            i++;
        }
    }
    if (r < 0)
        out->len = before;
    return r;
}
