/* SPDX-License-Identifier: MIT */
/* The worker's slot of the board: a snapshot now and then, two counters at every layer and step. */

#include "worker/worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/shm.h"

#define RATE_NS CLOCK_NS_PER_S

int report_open(struct worker *worker, struct error *err)
{
    int fd = worker->options.board_fd;
    struct stat stat;
    void *memory;
    if (fd < 0)
        return 0;
    if (fstat(fd, &stat) < 0)
        return error_set(err, -errno, "board: descriptor %d: %s", fd, strerror(errno));
    int r = shm_map(fd, (size_t)stat.st_size, &memory);
    if (r < 0)
        return error_set(err, r, "board: %s", strerror(-r));
    worker->board = memory;
    worker->board_bytes = (size_t)stat.st_size;
    close(fd);
    if (board_check(worker->board, worker->board_bytes) < 0)
        return error_set(err, -EINVAL, "board: not a board of this version");
    if (worker->options.board_slot >= worker->board->n_slots)
        return error_set(err, -EINVAL, "board: no slot %u among %u", worker->options.board_slot,
                         worker->board->n_slots);
    worker->slot = &worker->board->slots[worker->options.board_slot];
    return 0;
}

void report_close(struct worker *worker)
{
    if (worker->board)
        munmap(worker->board, worker->board_bytes);
    worker->board = NULL;
    worker->slot = NULL;
}

/* Tokens a second, over windows of a second or so. */
static void measure_rate(struct worker *worker, uint64_t now, uint64_t tokens)
{
    uint64_t ns = now - worker->rate_since_ns;
    if (ns < RATE_NS)
        return;
    worker->tokens_per_s = (double)(tokens - worker->rate_tokens) * 1e9 / (double)ns;
    worker->rate_tokens = tokens;
    worker->rate_since_ns = now;
}

void report_write(struct worker *worker, uint64_t now)
{
    if (!worker->slot)
        return;
    struct engine_stats stats = {0};
    struct board_snapshot snapshot = {.state = worker->state,
                                      .pid = (uint32_t)getpid(),
                                      .incarnation = worker->options.incarnation,
                                      .step_started_ns = worker->step_started_ns};
    if (worker->engine) {
        engine_stats(worker->engine, &stats);
        measure_rate(worker, now, stats.tokens);
        snprintf(snapshot.device, sizeof snapshot.device, "%.*s", (int)sizeof snapshot.device - 1,
                 engine_backend_info(worker->engine)->device);
    }
    snapshot.active = stats.active;
    snapshot.waiting = stats.waiting;
    snapshot.slots = stats.slots;
    snapshot.kv_free = stats.blocks_free;
    snapshot.kv_total = stats.blocks_total;
    snapshot.tokens = stats.tokens;
    snapshot.cache_hits = stats.cache_hits;
    snapshot.tokens_per_s = worker->tokens_per_s;
    board_write(worker->slot, &snapshot);
    atomic_store_explicit(&worker->slot->steps, stats.steps, memory_order_relaxed);
}
