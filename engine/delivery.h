/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_DELIVERY_H
#define ENGINE_DELIVERY_H

/* Delivers events to the owner: ids become text, and each sequence gets exactly one end. */

#include <stdint.h>

#include "engine/engine.h"
#include "engine/ranking.h"
#include "engine/sequence.h"

struct delivery {
    engine_sink *sink;
    void *sink_arg;
    const struct tokenizer *tokenizer;
    struct sequence *alive; /* uthash by tag: those without a last event; the scheduler owns them */
    struct buffer text;     /* of the current event */
    uint64_t tokens;        /* delivered so far */
    float *embedding;       /* [n_embedding] of the current event, or the scores of a model that ranks */
    uint32_t n_embedding;
    struct ranking ranking;
    struct measures *measures; /* the owner's */
};

void delivery_deinit(struct delivery *delivery);

/* Allocates room for embeddings of n_embedding numbers, which may be 0, or for the scores of a model that
 * ranks, whose head it copies. 0 or -ENOMEM. */
int delivery_embeds(struct delivery *delivery, const struct model *model, uint32_t n_embedding);

/* Adds a sequence; it will get one end. 0 or -ENOMEM. */
int delivery_add(struct delivery *delivery, struct sequence *sequence);
/* Finds a sequence by its tag; NULL: none with that tag is alive. */
struct sequence *delivery_find(const struct delivery *delivery, uint64_t tag);

/* Delivers the first `n` ids of a result, and the end if they cause it. */
void delivery_ids(struct delivery *delivery, struct sequence *sequence, const struct backend_result *result,
                  uint32_t n, uint64_t now);

/* Reports how much of a watched sequence's prompt is computed; called until it has its first id. */
void delivery_reading(struct delivery *delivery, struct sequence *sequence);

/* Ends a sequence that embeds with the vector from these sums, or with the scores if the model ranks. */
void delivery_embedding(struct delivery *delivery, struct sequence *sequence, const double *sums,
                        uint64_t now);

/* Ends a sequence without new ids; the event includes withheld text. */
void delivery_end(struct delivery *delivery, struct sequence *sequence, enum engine_end end,
                  const char *fault);

#endif
