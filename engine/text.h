/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_TEXT_H
#define ENGINE_TEXT_H

/* The text of one sequence on its way out: the bytes of token pieces in, whole UTF-8 sequences out.
 *
 * Bytes that may still become a stop string, or the rest of a character, are withheld. A stop string is
 * found anywhere, across pieces or inside one. Of several, the one that ends first counts, and of those that
 * end together the longest. The text ends before it. Stop strings are compared with the bytes of the pieces,
 * before any replacement. Bytes that are not UTF-8 become U+FFFD, one for each maximal part of a sequence; a
 * sequence that the end cuts short is left out. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/utf8.h"

struct text_stop; /* one stop string and how far it has matched */

struct text {
    struct buffer held; /* bytes taken and not yet given out */
    struct text_stop *stops;
    uint32_t n_stops;
    struct bytes stop; /* that ended it, of those; "": none yet */
};

#define TEXT_STOPPED 1

/* Copies the stop strings, none of them empty. 0 or -ENOMEM. A text of zeroes is one without stop strings. */
int text_init(struct text *text, const struct bytes *stops, uint32_t n_stops);
void text_deinit(struct text *text);

/* Whether a piece may be published as it is: nothing is withheld or looked for, and it is ASCII, as most
 * pieces are. It need not be pushed then. */
static inline bool text_is_plain(const struct text *text, struct bytes piece)
{
    return text->n_stops == 0 && text->held.len == 0 && utf8_ascii(piece) == piece.len;
}

/* Takes a piece and appends to `out` what may be published. 0; TEXT_STOPPED when a stop string was completed:
 * `out` then has all the text before it, and nothing may follow; -ENOMEM. */
int text_push(struct text *text, struct bytes piece, struct buffer *out);

/* The end without a stop string: appends what was withheld. 0 or -ENOMEM. */
int text_finish(struct text *text, struct buffer *out);

#endif
