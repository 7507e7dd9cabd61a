/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_DELIVERY_H
#define ENGINE_DELIVERY_H

/* Events on their way to the owner: ids become text, and each sequence is told exactly once that it ended. */

#include <stdint.h>

#include "engine/engine.h"
#include "engine/sequence.h"

struct delivery {
    engine_sink *sink;
    void *sink_arg;
    const struct tokenizer *tokenizer;
    struct sequence *alive; /* uthash by tag: those whose last event is not out; the scheduler owns them */
    struct buffer text;     /* of the event being made */
    uint64_t tokens;        /* delivered so far */
    float *embedding;       /* [n_embedding] of the event being made */
    uint32_t n_embedding;
};

void delivery_deinit(struct delivery *delivery);

/* Makes room for embeddings of so many numbers, or for none. 0 or -ENOMEM. */
int delivery_embeds(struct delivery *delivery, uint32_t n_embedding);

/* Adds one that will be told its end: 0 or -ENOMEM. */
int delivery_add(struct delivery *delivery, struct sequence *sequence);
/* By its tag; NULL: none of that tag is alive. */
struct sequence *delivery_find(const struct delivery *delivery, uint64_t tag);

/* Hands over the first `n` ids of a result, and the end if they bring it. */
void delivery_ids(struct delivery *delivery, struct sequence *sequence, const struct backend_result *result,
                  uint32_t n, uint64_t now);

/* Tells how much of a watched sequence's prompt is computed, as long as it has made nothing. */
void delivery_reading(struct delivery *delivery, struct sequence *sequence);

/* Ends a sequence that embeds with the vector of these sums. */
void delivery_embedding(struct delivery *delivery, struct sequence *sequence, const double *sums,
                        uint64_t now);

/* Ends a sequence that made nothing new; the text that was withheld goes with the event. */
void delivery_end(struct delivery *delivery, struct sequence *sequence, enum engine_end end,
                  const char *fault);

#endif
