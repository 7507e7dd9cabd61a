/* SPDX-License-Identifier: MIT */
#ifndef PROTO_DECODE_H
#define PROTO_DECODE_H

/* Private to proto/: what the two halves of decoding share. `depth` is how many containers may still be
 * opened inside one another, this value's own included. Results: 0, MESSAGE_E_MALFORMED with a reason,
 * -ENOMEM. */

#include "common/arena.h"
#include "proto/fields.h"
#include "proto/reader.h"

struct decoding {
    struct reader reader;
    struct arena *arena;
    size_t logprob_rows; /* of the frame: compared with its ids at the end */
};

/* decode_value.c: the value of `field` goes to `at`. */
int decode_value(struct decoding *decoding, unsigned depth, const struct field *field, void *at,
                 struct error *err);

/* decode.c: a whole map goes to the struct at `base`. */
int decode_map(struct decoding *decoding, unsigned depth, const struct field_table *table, void *base,
               struct error *err);

/* Says that the bytes end too early or are not msgpack. */
int decode_broken(struct error *err);

#endif
