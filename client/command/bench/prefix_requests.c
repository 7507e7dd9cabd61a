/* SPDX-License-Identifier: MIT */
/* Requests of quern bench prefix, and the pools that are asked. */

#include "client/command/bench/prefix.h"

#include <errno.h>
#include <stdio.h>

#include "client/command/terminal/interrupt.h"
#include "common/hash.h"

static void on_output(void *arg, const struct quern_output *output)
{
    struct prefix_asked *asked = arg;
    struct prefix_bench *bench = asked->bench;
    if (asked->first_ns == 0 && output->n_ids > 0)
        asked->first_ns = clock_ns();
    for (size_t i = 0; i < output->n_ids && asked->output_tokens < TURN_IDS; i++)
        asked->output[asked->output_tokens++] = output->ids[i];
    const struct quern_end *end = output->end;
    if (!end)
        return;
    asked->prompt_tokens = end->prompt_tokens;
    asked->cached_tokens = end->cached_tokens;
    bench->open--;
    bench->open_apart[asked->place]--;
    bench->last_end_ns = clock_ns();
    if (end->reason == QUERN_ERROR)
        snprintf(bench->wrong, sizeof bench->wrong, "a request ended by %s: %.120s", end->error, end->text);
}

/* The pools apart in turn: each for itself, and the program chooses between them. */
static uint32_t place_of(const struct prefix_bench *bench)
{
    uint32_t place = 0;
    while (place < WORKERS - 1 && bench->apart[place] != bench->pool)
        place++;
    return place;
}

int prefix_send(struct prefix_bench *bench, struct prefix_asked *asked, const int32_t *ids, size_t n,
                uint32_t max_tokens, struct error *err)
{
    struct quern_request request;
    struct quern_error said = {0};
    quern_request_init(&request);
    request.ids = ids;
    request.n_ids = n;
    request.max_tokens = max_tokens;
    request.has_seed = true;
    *asked = (struct prefix_asked){.bench = bench, .sent_ns = clock_ns(), .place = place_of(bench)};
    bench->open++;
    bench->open_apart[asked->place]++;
    int r = quern_generate(pool_client(bench->pool), &request, on_output, asked, NULL, &said);
    return r < 0 ? error_set(err, r, "%s", said.text) : 0;
}

int prefix_await(struct prefix_bench *bench, uint32_t open, struct error *err)
{
    struct quern_error said = {0};
    bench->last_end_ns = clock_ns();
    while (bench->open > open) {
        int r = 0;
        for (uint32_t i = 0; i < WORKERS && bench->apart[i] && r >= 0; i++)
            r = quern_dispatch(pool_client(bench->apart[i]), 1, &said);
        if (!bench->apart[0])
            r = quern_dispatch(pool_client(bench->pool), 1000, &said);
        if (r < 0)
            return error_set(err, r, "%s", said.text);
        if (bench->wrong[0])
            return error_set(err, -EPROTO, "%s", bench->wrong);
        if (interrupt_signal())
            return error_set(err, -EINTR, "interrupted");
        if (clock_ns() - bench->last_end_ns > STALL_NS)
            return error_set(err, -ETIMEDOUT, "nothing has ended for a minute, %u requests are open",
                             bench->open);
    }
    return 0;
}

int prefix_ask(struct prefix_bench *bench, struct prefix_asked *asked, const int32_t *ids, size_t n,
               uint32_t max_tokens, struct error *err)
{
    int r = prefix_send(bench, asked, ids, n, max_tokens, err);
    return r == 0 ? prefix_await(bench, 0, err) : r;
}

void prefix_make_ids(int32_t *ids, size_t n, uint64_t name)
{
    for (uint64_t i = 0; i < n; i++)
        ids[i] = (int32_t)(3 + hash64(&i, sizeof i, name) % 256);
}

int prefix_open_pool(struct prefix_bench *bench, const char *device, uint32_t workers, uint32_t store_mib,
                     struct error *err)
{
    const struct pool_options options = {
        .model = bench->model, .device = device, .workers = workers, .prefix_store = store_mib};
    bench->open = 0;
    return pool_open(&options, &bench->pool, err);
}

int prefix_ask_status(struct prefix_bench *bench, const struct quern_status **ret_status, struct error *err)
{
    struct quern_error said = {0};
    int r = quern_status(pool_client(bench->pool), 5000, ret_status, &said);
    return r < 0 ? error_set(err, r, "%s", said.text) : 0;
}
