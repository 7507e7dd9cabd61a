/* SPDX-License-Identifier: MIT */
/* Recording and launching. Eager or recorded, a decode has the rows of its bucket, so that both do the same
 * arithmetic. */

#include "cuda/host/graphs.h"

#include <errno.h>

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

static int record(struct graphs *graphs, const struct pass *pass, struct device_stream *queue, uint32_t n)
{
    struct device_graph *graph = NULL;
    int r = device_record(queue);
    if (r < 0)
        return r;
    int queued = queue_decode(pass, queue, n);
    r = device_record_end(queue, &graph); /* after a failure too: the queue must run again */
    if (r == 0 && queued == 0) {
        graphs->graphs[bucket_index(n)] = graph;
        return 0;
    }
    if (r == 0)
        device_graph_free(graph);
    return r < 0 ? r : queued;
}

/* Queues every kind of step of up to n rows, and drops it: so whatever cannot be queued is known when the
 * backend opens, and the code of all kernels is on the device before the first request. */
static int rehearse(const struct pass *pass, struct device_stream *queue, uint32_t n)
{
    const uint32_t max_outputs = pass->workspace->max_outputs;
    struct device_graph *graph = NULL;
    int r = device_record(queue);
    if (r < 0)
        return r;
    int queued = pass_layers(pass, queue, n);
    if (queued == 0)
        queued = pass_logits(pass, queue, 0, n < max_outputs ? n : max_outputs);
    if (queued == 0)
        queued = pass_sample(pass, queue, n < max_outputs ? n : max_outputs);
    r = device_record_end(queue, &graph);
    if (r == 0)
        device_graph_free(graph);
    return queued < 0 ? queued : r;
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
        r = record(graphs, pass, queue, n);
        if (n >= n_slots)
            break;
    }
    if (r < 0)
        graphs_deinit(graphs);
    return r;
}

void graphs_deinit(struct graphs *graphs)
{
    for (uint32_t i = 0; i < GRAPHS_BUCKETS; i++) {
        if (graphs->graphs[i])
            device_graph_free(graphs->graphs[i]);
        graphs->graphs[i] = NULL;
    }
}

struct device_graph *graphs_of(const struct graphs *graphs, uint32_t n)
{
    return graphs->graphs[bucket_index(n)];
}

int graphs_decode(const struct graphs *graphs, const struct pass *pass, struct device_stream *queue,
                  uint32_t n)
{
    struct device_graph *graph = graphs->eager ? NULL : graphs_of(graphs, n);
    return graph ? device_graph_launch(queue, graph) : queue_decode(pass, queue, graphs_bucket(n));
}

int graphs_decode_logits(const struct pass *pass, struct device_stream *queue, uint32_t n)
{
    return queue_logits(pass, queue, graphs_bucket(n));
}
