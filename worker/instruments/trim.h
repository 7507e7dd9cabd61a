/* SPDX-License-Identifier: MIT */
#ifndef WORKER_INSTRUMENTS_TRIM_H
#define WORKER_INSTRUMENTS_TRIM_H

/* Memory that a worker gives back while it lives.
 *
 * A `trim` may come in the middle of a step; it is made before the next one, and answered then. Who asks
 * again meanwhile, or for the same run later, gets the answer to that run. What another run asks for while
 * one waits is rejected: it could not say what went for whom. */

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "proto/message.h"
#include "worker/link/link.h"

#define TRIM_REFS 8 /* questions that wait for one trim */

struct trimmer {
    struct link *link;
    struct engine *engine;
    uint64_t run; /* asked for last; 0: none was */
    bool prefixes, waits;
    uint64_t refs[TRIM_REFS];
    uint32_t n_refs;
    struct message answer; /* to the last run, */
    struct error failure;  /* or, unless its text is "", why it could not be made */
    struct given_memory given[PROTO_MAX_GIVEN];
};

void trimmer_init(struct trimmer *trimmer, struct link *link, struct engine *engine);

/* Takes a `trim`. In the middle of a step too. */
void trimmer_take(struct trimmer *trimmer, const struct message *message);

/* Between two steps only. Makes the trim that waits and answers it: true; costs a branch if none does. */
bool trimmer_tend_now(struct trimmer *trimmer);
static inline bool trimmer_tend(struct trimmer *trimmer)
{
    return trimmer->waits && trimmer_tend_now(trimmer);
}

#endif
