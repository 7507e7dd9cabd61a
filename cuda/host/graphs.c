/* SPDX-License-Identifier: MIT */
/* Recording and launching. Eager or recorded, a decode has the rows of its bucket, so that both do the same
 * arithmetic. A driver that refuses to record a bucket is not asked for larger ones, which cost it more. */

#include "cuda/host/graphs.h"

#include <errno.h>
#include <stdio.h>

uint32_t graphs_bucket(uint32_t n)
{
    uint32_t bucket = 1;
    while (bucket < n)
        bucket *= 2;
    return bucket;
}

static uint32_t bucket_index(uint32_t n)
{
    return (uint32_t)__builtin_ctz(graphs_bucket(n));
}

/* A library is for prompts, however many rows decode. */
static int queue_logits(const struct pass *pass, struct device_stream *queue, uint32_t n_rows)
{
    struct pass own = *pass;
    own.large_from = UINT32_MAX;
    int r = pass_layers(&own, queue, n_rows);
    return r < 0 ? r : pass_logits(&own, queue, 0, n_rows);
}

static int queue_decode(const struct pass *pass, struct device_stream *queue, uint32_t n_rows)
{
    int r = queue_logits(pass, queue, n_rows);
    return r < 0 ? r : pass_sample(pass, queue, n_rows);
}

/* Of a driver that does not record, and works on. */
static bool is_refusal(int r)
{
    return r == -EINVAL || r == -ENOMEM;
}

/* Records what `queue_what` queues of n rows. *ret_graph is NULL where the driver refuses. 0; a fault; what
 * cannot be queued at all. */
static int record(const struct pass *pass, struct device_stream *queue, uint32_t n,
                  int (*queue_what)(const struct pass *pass, struct device_stream *queue, uint32_t n),
                  struct device_graph **ret_graph)
{
    struct device_graph *graph = NULL;
    *ret_graph = NULL;
    int r = device_record(queue);
    if (r < 0)
        return is_refusal(r) ? 0 : r;
    const int queued = queue_what(pass, queue, n);
    r = device_record_end(queue, &graph); /* after a failure too: the queue must run again */
    if (r < 0)
        return is_refusal(r) ? 0 : r;
    if (queued == 0)
        *ret_graph = graph;
    else
        device_graph_free(graph);
    return queued;
}

static struct pass with_sampling(const struct pass *pass, bool greedy)
{
    struct pass own = *pass;
    own.sample.greedy = greedy;
    return own;
}

/* Of both kinds. */
static int record_bucket(struct graphs *graphs, const struct pass *pass, struct device_stream *queue,
                         uint32_t n)
{
    int r = 0;
    for (uint32_t greedy = 0; greedy < GRAPHS_KINDS && r == 0 && graphs->refused == 0; greedy++) {
        const struct pass own = with_sampling(pass, greedy);
        struct device_graph **graph = &graphs->graphs[greedy][bucket_index(n)];
        r = record(&own, queue, n, queue_decode, graph);
        if (r < 0 || *graph)
            continue;
        graphs->refused = n;
        snprintf(graphs->refusal, sizeof graphs->refusal, "%s", device_refusal(queue));
    }
    return r;
}

static int queue_any(const struct pass *pass, struct device_stream *queue, uint32_t n)
{
    const uint32_t most = pass->workspace->max_outputs, n_outputs = n < most ? n : most;
    int r = pass_layers(pass, queue, n);
    if (r == 0)
        r = pass_logits(pass, queue, 0, n_outputs);
    return r < 0 ? r : pass_sample(pass, queue, n_outputs);
}

/* Queues every kind of step of up to n rows, and drops it: so whatever cannot be queued is known when the
 * backend opens, and the code of all kernels is on the device before the first request. */
static int rehearse(const struct pass *pass, struct device_stream *queue, uint32_t n)
{
    struct device_graph *graph;
    int r = record(pass, queue, n, queue_any, &graph);
    if (graph)
        device_graph_free(graph);
    return r;
}

/* With the library where it may multiply, and without. */
static int rehearse_both(const struct pass *pass, struct device_stream *queue, uint32_t n)
{
    struct pass own = *pass;
    int r = rehearse(pass, queue, n);
    own.large_from = UINT32_MAX;
    return r < 0 || !pass_is_large(pass, n) ? r : rehearse(&own, queue, n);
}

static int rehearse_all(const struct pass *pass, struct device_stream *queue)
{
    const uint32_t max_rows = pass->workspace->max_rows;
    int r = 0;
    for (uint32_t n = 3; n < max_rows && r == 0; n = 2 * n - 1) /* between the powers of two */
        r = rehearse_both(pass, queue, n);
    return r < 0 ? r : rehearse_both(pass, queue, max_rows);
}

int graphs_init(struct graphs *graphs, const struct pass *pass, struct device_stream *queue, uint32_t n_slots,
                bool eager)
{
    *graphs = (struct graphs){.eager = eager};
    int r = rehearse_all(pass, queue);
    for (uint32_t n = 1; n <= GRAPHS_MOST && !eager && r == 0; n *= 2) {
        if (graphs->refused == 0)
            r = record_bucket(graphs, pass, queue, n);
        graphs->n_refused += graphs->refused > 0;
        if (n >= n_slots)
            break;
    }
    if (r < 0)
        graphs_deinit(graphs);
    return r;
}

void graphs_deinit(struct graphs *graphs)
{
    for (uint32_t i = 0; i < GRAPHS_KINDS * GRAPHS_BUCKETS; i++) {
        struct device_graph **graph = &graphs->graphs[i / GRAPHS_BUCKETS][i % GRAPHS_BUCKETS];
        if (*graph)
            device_graph_free(*graph);
        *graph = NULL;
    }
}

struct device_graph *graphs_of(const struct graphs *graphs, uint32_t n, bool greedy)
{
    return graphs->graphs[greedy][bucket_index(n)];
}

int graphs_decode(const struct graphs *graphs, const struct pass *pass, struct device_stream *queue,
                  uint32_t n, bool greedy)
{
    struct device_graph *graph = graphs->eager ? NULL : graphs_of(graphs, n, greedy);
    if (graph)
        return device_graph_launch(queue, graph);
    const struct pass own = with_sampling(pass, greedy);
    return queue_decode(&own, queue, graphs_bucket(n));
}

int graphs_decode_logits(const struct pass *pass, struct device_stream *queue, uint32_t n)
{
    return queue_logits(pass, queue, graphs_bucket(n));
}
