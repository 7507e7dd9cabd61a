/* SPDX-License-Identifier: MIT */
/* Any bytes as what workers have written to the board: the status of the pool can be told, whatever they say,
 * and what it says of a worker that says nothing wrong is true.
 *
 * An input is what stands in two slots of three; the third has a worker's own writing. */

#include "tests/fuzz/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/core/status.h"

#define N 3

static struct broker *broker;
static struct board_slot slots[N];
static struct message_decoder *decoder;

static void begin(void)
{
    const struct board_snapshot good = {.active = 5, .tokens = 7, .tokens_per_s = 2.5, .kv_free = 1};
    broker = calloc(1, sizeof *broker);
    if (!broker || message_decoder_new(&decoder) < 0)
        abort();
    broker->n_workers = broker->supervisor.n = N;
    board_write(&slots[N - 1], &good);
    for (unsigned i = 0; i < N; i++) {
        broker->supervisor.slots[i] = &slots[i];
        broker->workers[i].state = WORKER_STARTING;
        snprintf(broker->workers[i].name, sizeof broker->workers[i].name, "worker-%u", i);
    }
}

static void check_good(const struct message *status)
{
    const struct worker_status *good = &status->status_ok.workers.items[N - 1];
    if (status->status_ok.workers.n != N || good->active != 5 || good->tokens != 7 ||
        good->tokens_per_s != 2.5 || good->kv_free != 1 || good->state != WORKER_STARTING)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct worker_status workers[WORKER_MAX];
    struct message status;
    struct buffer out = {0};
    struct error err;
    const size_t room = (N - 1) * sizeof(struct board_slot);
    if (!broker)
        begin();
    memset(slots, 0, room);
    memcpy(slots, data, len < room ? len : room);
    status_fill(broker, 1, workers, &status);
    if (message_encode(&status, &out) != 0 || message_decode(decoder, out.data, out.len, &status, &err) != 0)
        abort();
    check_good(&status);
    buffer_deinit(&out);
    return 0;
}
