/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_WORKER_TOLD_H
#define TESTS_INTEGRATION_WORKER_TOLD_H

/* Assembles a worker's answers from the frames on its stream. */

#include "tests/integration/worker/scripted_broker.h"

#define WINDOW 32768 /* frames without an acknowledgement */

/* One request, assembled from its frames. */
struct told {
    struct ids ids;
    struct buffer text;
    uint64_t frames, last_wseq;
    struct ending end;
    bool ended;
};

void told_deinit(struct told *told);

/* Adds a frame: it must continue where the last one ended. */
void take_frame(struct told *told, const struct frame *frame);

/* Reads frames, which must be of this request only, to its end. */
struct told read_request(struct scripted *s, uint8_t id);

void ack(struct scripted *s, uint64_t wseq);

/* Checks that the worker serves a request from assignment to `finished`. */
void check_serves(struct scripted *s, uint8_t id);

#endif
