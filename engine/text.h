/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_TEXT_H
#define ENGINE_TEXT_H

/* The output text of one sequence: takes the bytes of token pieces, and returns whole UTF-8 sequences.
 *
 * Bytes that may become a stop string, and incomplete characters, are withheld. A stop string may begin
 * anywhere and span several pieces. Among several, the one that ends first counts, among those that end
 * together the longest. The text ends before it. Stop strings are compared with the bytes of the pieces,
 * before any replacement. Invalid UTF-8 becomes U+FFFD, one for each maximal part of a sequence; a sequence
 * cut off by the end is omitted. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/utf8.h"

struct text_stop; /* a stop string, and how far it has matched */

struct text {
    struct buffer held; /* withheld bytes */
    struct text_stop *stops;
    uint32_t n_stops;
    struct bytes stop; /* the stop string that ended the text; "": none yet */
    bool passes;       /* a stop string that is completed now does not end the text */
};

#define TEXT_STOPPED 1

/* Copies the stop strings, which must not be empty. 0 or -ENOMEM. A zeroed text has no stop strings. */
int text_init(struct text *text, const struct bytes *stops, uint32_t n_stops);
void text_deinit(struct text *text);

/* Whether a piece may be published unchanged, without text_push: nothing is withheld, there are no stop
 * strings, and it is ASCII, as most pieces are. */
static inline bool text_is_plain(const struct text *text, struct bytes piece)
{
    return text->n_stops == 0 && text->held.len == 0 && utf8_ascii(piece) == piece.len;
}

/* Takes a piece and appends publishable text to `out`. 0; TEXT_STOPPED: a stop string is complete, `out` has
 * all the text before it, and nothing may follow; -ENOMEM. */
int text_push(struct text *text, struct bytes piece, struct buffer *out);

/* The end without a stop string: appends the withheld text. 0 or -ENOMEM. */
int text_finish(struct text *text, struct buffer *out);

#endif
