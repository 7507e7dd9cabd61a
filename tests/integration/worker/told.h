/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_WORKER_TOLD_H
#define TESTS_INTEGRATION_WORKER_TOLD_H

/* Answers of a worker, put together from the frames on its stream. */

#include "tests/integration/worker/scripted_broker.h"

#define WINDOW 32768 /* frames without an acknowledgement */

/* One request as its frames told it. */
struct told {
    struct ids ids;
    struct buffer text;
    uint64_t frames, last_wseq;
    struct ending end;
    bool ended;
};

void told_deinit(struct told *told);

/* Takes a frame in: it must continue where the last one ended. */
void take_frame(struct told *told, const struct frame *frame);

/* Reads frames, of this request alone, to its end. */
struct told read_request(struct scripted *s, uint8_t id);

void ack(struct scripted *s, uint64_t wseq);

/* A request served from assignment to `finished` shows that the worker is well. */
void check_serves(struct scripted *s, uint8_t id);

#endif
