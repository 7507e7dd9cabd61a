/* SPDX-License-Identifier: MIT */
#ifndef WORKER_INSTRUMENTS_TRIM_H
#define WORKER_INSTRUMENTS_TRIM_H

/* Returns memory of a running worker.
 *
 * A `trim` may arrive in the middle of a step; it is executed before the next one, and answered then.
 * Repeated questions for the same run, meanwhile or later, get the same answer. While one run waits, another
 * is rejected, because its answer could not separate the memory of the two. */

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "proto/message.h"
#include "worker/link/link.h"

#define TRIM_REFS 8 /* questions that wait for one trim */

struct trimmer {
    struct link *link;
    struct engine *engine;
    uint64_t run; /* the last one; 0: none */
    bool prefixes, waits;
    uint64_t refs[TRIM_REFS];
    uint32_t n_refs;
    struct message answer; /* to the last run */
    struct error failure;  /* if its text is not "": why the last run failed */
    struct given_memory given[PROTO_MAX_GIVEN];
};

void trimmer_init(struct trimmer *trimmer, struct link *link, struct engine *engine);

/* Takes a `trim`. Allowed inside a step too. */
void trimmer_take(struct trimmer *trimmer, const struct message *message);

/* Between steps only. Executes and answers a waiting trim and returns true; costs one branch if there is
 * none. */
bool trimmer_tend_now(struct trimmer *trimmer);
static inline bool trimmer_tend(struct trimmer *trimmer)
{
    return trimmer->waits && trimmer_tend_now(trimmer);
}

#endif
