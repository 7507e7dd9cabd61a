/* SPDX-License-Identifier: MIT */
/* Withholding, stop strings and UTF-8.
 *
 * Each stop string is a Knuth–Morris–Pratt automaton fed byte by byte; its state is the length of the longest
 * end of the text that begins the stop string. The largest state over all of them is exactly what must be
 * withheld: a byte given out earlier can be part of no later match. What is before that leaves in whole UTF-8
 * sequences; the beginning of one waits for its rest in the same buffer. */

#include "engine/text.h"

#include <errno.h>
#include <stdlib.h>

struct text_stop {
    uint8_t *bytes;
    uint32_t *fall; /* [len]: the state to fall back to when the byte after n matched ones does not match */
    uint32_t len;
    uint32_t border; /* the state to fall back to from a whole match that ended nothing */
    uint32_t state;  /* bytes matched */
};

static int stop_init(struct text_stop *stop, struct bytes string)
{
    stop->len = (uint32_t)string.len;
    stop->bytes = malloc(string.len);
    stop->fall = calloc(string.len, sizeof *stop->fall);
    if (!stop->bytes || !stop->fall)
        return -ENOMEM;
    memcpy(stop->bytes, string.data, string.len);
    uint32_t k = 0;
    for (uint32_t i = 1; i < stop->len; i++) { /* fall[i]: the longest proper border of the first i bytes */
        stop->fall[i] = k;
        while (k > 0 && stop->bytes[k] != stop->bytes[i])
            k = stop->fall[k];
        if (stop->bytes[k] == stop->bytes[i])
            k++;
    }
    stop->border = k;
    return 0;
}

/* True when this byte completes the stop string. */
static bool stop_feed(struct text_stop *stop, uint8_t byte)
{
    while (stop->state > 0 && stop->bytes[stop->state] != byte)
        stop->state = stop->fall[stop->state];
    if (stop->bytes[stop->state] == byte)
        stop->state++;
    return stop->state == stop->len;
}

int text_init(struct text *text, const struct bytes *stops, uint32_t n_stops)
{
    *text = (struct text){0};
    if (n_stops == 0)
        return 0;
    text->stops = calloc(n_stops, sizeof *text->stops);
    if (!text->stops)
        return -ENOMEM;
    text->n_stops = n_stops;
    for (uint32_t i = 0; i < n_stops; i++)
        if (stop_init(&text->stops[i], stops[i]) < 0) {
            text_deinit(text);
            return -ENOMEM;
        }
    return 0;
}

void text_deinit(struct text *text)
{
    for (uint32_t i = 0; i < text->n_stops; i++) {
        free(text->stops[i].bytes);
        free(text->stops[i].fall);
    }
    free(text->stops);
    buffer_deinit(&text->held);
    *text = (struct text){0};
}

/* Looks at the sequence that begins at s[0]: its length when it is whole and valid; 0 when it is valid so far
 * but `len` ends it; negative: minus the bytes that one U+FFFD stands for (Unicode 15, table 3-7). */
static int utf8_sequence(const uint8_t *s, size_t len)
{
    uint8_t lead = s[0], low = 0x80, high = 0xbf;
    if (lead < 0x80)
        return 1;
    int need = lead >= 0xc2 && lead <= 0xdf   ? 2
               : lead >= 0xe0 && lead <= 0xef ? 3
               : lead >= 0xf0 && lead <= 0xf4 ? 4
                                              : -1;
    if (need < 0)
        return -1;
    if (lead == 0xe0)
        low = 0xa0; /* shorter forms exist */
    else if (lead == 0xed)
        high = 0x9f; /* surrogates */
    else if (lead == 0xf0)
        low = 0x90;
    else if (lead == 0xf4)
        high = 0x8f; /* beyond U+10FFFF */
    for (int i = 1; i < need; i++) {
        if ((size_t)i == len)
            return 0;
        if (s[i] < low || s[i] > high)
            return -i;
        low = 0x80;
        high = 0xbf;
    }
    return need;
}

/* Appends the first `len` bytes of `s` as UTF-8; returns how many of them were used, or -ENOMEM. A sequence
 * that is not yet whole is left, or with `last` left out. */
static ssize_t give_out(const uint8_t *s, size_t len, bool last, struct buffer *out)
{
    size_t used = 0;
    while (used < len) {
        size_t run = used;
        int n = 0;
        while (run < len && (n = utf8_sequence(s + run, len - run)) > 0)
            run += (size_t)n;
        if (buffer_append(out, s + used, run - used) < 0)
            return -ENOMEM;
        used = run;
        if (used == len || (n == 0 && !last))
            break;
        if (n == 0)
            return (ssize_t)len;
        if (buffer_append(out, "\xef\xbf\xbd", 3) < 0)
            return -ENOMEM;
        used += (size_t)-n;
    }
    return (ssize_t)used;
}

/* Feeds a byte to every automaton. True when a stop string is complete, with its length. */
static bool feed(struct text *text, uint8_t byte, uint32_t *ret_len)
{
    bool complete = false;
    uint32_t longest = 0;
    for (uint32_t i = 0; i < text->n_stops; i++)
        if (stop_feed(&text->stops[i], byte) && text->passes) {
            text->stops[i].state = text->stops[i].border;
        } else if (text->stops[i].state == text->stops[i].len) {
            complete = true;
            if (text->stops[i].len > longest)
                text->stop = (struct bytes){text->stops[i].bytes, text->stops[i].len};
            longest = text->stops[i].len > longest ? text->stops[i].len : longest;
        }
    if (complete)
        *ret_len = longest;
    return complete;
}

int text_push(struct text *text, struct bytes piece, struct buffer *out)
{
    const uint8_t *data = piece.data;
    uint32_t withheld = 0, stop_len = 0;
    if (text_is_plain(text, piece))
        return buffer_append(out, data, piece.len);
    size_t taken = piece.len;
    bool stopped = false;
    for (size_t i = 0; text->n_stops > 0 && i < piece.len && !stopped; i++) {
        stopped = feed(text, data[i], &stop_len);
        if (stopped)
            taken = i + 1;
    }
    for (uint32_t i = 0; i < text->n_stops && !stopped; i++)
        withheld = text->stops[i].state > withheld ? text->stops[i].state : withheld;

    if (text->held.len == 0 && withheld == 0 && !stopped) { /* the usual case needs no copy */
        ssize_t used = give_out(data, piece.len, false, out);
        if (used < 0)
            return -ENOMEM;
        return buffer_append(&text->held, data + used, piece.len - (size_t)used);
    }
    if (buffer_append(&text->held, data, taken) < 0)
        return -ENOMEM;
    size_t ready = text->held.len - (stopped ? stop_len : withheld);
    ssize_t used = give_out(text->held.data, ready, stopped, out);
    if (used < 0)
        return -ENOMEM;
    buffer_consume(&text->held, stopped ? text->held.len : (size_t)used);
    return stopped ? TEXT_STOPPED : 0;
}

int text_finish(struct text *text, struct buffer *out)
{
    ssize_t used = give_out(text->held.data, text->held.len, true, out);
    if (used < 0)
        return -ENOMEM;
    text->held.len = 0;
    return 0;
}
