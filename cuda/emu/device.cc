/* SPDX-License-Identifier: MIT */
/* device.h on the host. What is queued runs only when the host waits or asks, one piece for each question: a
 * host that looks too early, or overwrites what a copy has still to read, is caught in the ordinary tests. */

#include "cuda/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/emu/emu.h"

#define TOTAL_BYTES ((size_t)8 << 30)

enum kind { COPY, FILL, LAUNCH, MARK, GRAPH };

struct work {
    enum kind kind;
    void *to;
    const void *from;
    int byte;
    size_t bytes;
    struct emu_launch launch;
    struct device_graph *graph;
    uint32_t mark;
    struct work *next;
};

struct list {
    struct work *first, **end;
};

struct device_graph {
    struct list works;
    uint32_t n_kernels;
};

struct allocation {
    void *memory;
    size_t bytes;
    struct allocation *next;
};

struct device_stream {
    struct device *device;
    struct list queue;
    struct device_graph *recording;
    bool reached[DEVICE_MARKS];
};

struct device {
    struct device_stream stream;
    struct device_properties properties;
    struct device_counts counts;
    struct allocation *allocations, *pinned;
};

/* ---- life ---- */

const char device_kind[] = "emu";

int device_count(uint32_t *ret_n, struct error *err)
{
    *ret_n = 1;
    return 0;
}

int device_open(uint32_t number, struct device **ret_device, struct error *err)
{
    if (number != 0)
        return error_set(err, -ENODEV, "there is one emulated device, number 0; %u was asked for", number);
    struct device *device = (struct device *)calloc(1, sizeof *device);
    if (!device)
        return error_set(err, -ENOMEM, "no memory for the emulated device");
    device->properties =
        (struct device_properties){"emulated", 90, 4, 99 * 1024, (size_t)32 << 20, TOTAL_BYTES};
    device->stream.device = device;
    device->stream.queue.end = &device->stream.queue.first;
    *ret_device = device;
    return 0;
}

static void release(struct list *list)
{
    while (list->first) {
        struct work *work = list->first;
        list->first = work->next;
        if (work->kind == LAUNCH)
            work->launch.release(work->launch.closure);
        free(work);
    }
    list->end = &list->first;
}

static void free_all(struct allocation *list)
{
    while (list) {
        struct allocation *next = list->next;
        free(list->memory);
        free(list);
        list = next;
    }
}

struct device *device_close(struct device *device)
{
    if (!device)
        return NULL;
    release(&device->stream.queue);
    if (device->stream.recording)
        device_graph_free(device->stream.recording);
    free_all(device->allocations);
    free_all(device->pinned);
    free(device);
    return NULL;
}

const struct device_properties *device_properties(const struct device *device)
{
    return &device->properties;
}

size_t device_free_bytes(struct device *device)
{
    return TOTAL_BYTES - device->counts.bytes;
}

int device_verdict(struct device *device, struct error *err)
{
    return 0;
}

struct device_counts device_counts(const struct device *device)
{
    return device->counts;
}

/* ---- memory ---- */

static void *allocate(struct allocation **list, size_t bytes)
{
    struct allocation *entry = (struct allocation *)malloc(sizeof *entry);
    void *memory = NULL;
    if (!entry || posix_memalign(&memory, 256, bytes ? bytes : 1) != 0) {
        free(entry);
        return NULL;
    }
    memset(memory, 0xa5, bytes);
    *entry = allocation{memory, bytes, *list};
    *list = entry;
    return memory;
}

static size_t give_back(struct allocation **list, void *memory)
{
    for (; *list; list = &(*list)->next)
        if ((*list)->memory == memory) {
            struct allocation *entry = *list;
            size_t bytes = entry->bytes;
            *list = entry->next;
            free(entry->memory);
            free(entry);
            return bytes;
        }
    if (memory)
        abort();
    return 0;
}

void *device_alloc(struct device *device, size_t bytes)
{
    if (bytes > device_free_bytes(device))
        return NULL;
    void *memory = allocate(&device->allocations, bytes);
    if (memory) {
        device->counts.allocations++;
        device->counts.bytes += bytes;
    }
    return memory;
}

void device_free(struct device *device, void *memory)
{
    device->counts.bytes -= give_back(&device->allocations, memory);
}

void *device_pinned(struct device *device, size_t bytes)
{
    void *memory = allocate(&device->pinned, bytes);
    device->counts.allocations += memory != NULL;
    return memory;
}

void device_pinned_free(struct device *device, void *memory)
{
    give_back(&device->pinned, memory);
}

/* ---- the queue ---- */

static void run_one(struct device_stream *stream, const struct work *work)
{
    switch (work->kind) {
    case COPY:
        memmove(work->to, work->from, work->bytes);
        break;
    case FILL:
        memset(work->to, work->byte, work->bytes);
        break;
    case LAUNCH:
        emu_run(&work->launch);
        break;
    case MARK:
        stream->reached[work->mark] = true;
        break;
    case GRAPH:
        for (const struct work *w = work->graph->works.first; w; w = w->next)
            run_one(stream, w);
        break;
    }
}

static bool run_next(struct device_stream *stream)
{
    struct work *work = stream->queue.first;
    if (!work)
        return false;
    run_one(stream, work);
    stream->queue.first = work->next;
    if (!stream->queue.first)
        stream->queue.end = &stream->queue.first;
    if (work->kind == LAUNCH)
        work->launch.release(work->launch.closure);
    free(work);
    return true;
}

static int queue(struct device_stream *stream, const struct work *what)
{
    struct list *list = stream->recording ? &stream->recording->works : &stream->queue;
    struct work *work = (struct work *)malloc(sizeof *work);
    if (!work)
        return -ENOMEM;
    *work = *what;
    work->next = NULL;
    *list->end = work;
    list->end = &work->next;
    return 0;
}

int emu_queue(struct device_stream *stream, const struct emu_launch *launch)
{
    struct work work = {};
    work.kind = LAUNCH;
    work.launch = *launch;
    if (stream->recording)
        stream->recording->n_kernels++;
    else
        stream->device->counts.launches++;
    return queue(stream, &work);
}

struct device_stream *device_stream(struct device *device)
{
    return &device->stream;
}

int device_copy(struct device_stream *stream, void *to, const void *from, size_t bytes)
{
    struct work work = {};
    work.kind = COPY;
    work.to = to;
    work.from = from;
    work.bytes = bytes;
    return queue(stream, &work);
}

int device_fill(struct device_stream *stream, void *to, int byte, size_t bytes)
{
    struct work work = {};
    work.kind = FILL;
    work.to = to;
    work.byte = byte;
    work.bytes = bytes;
    return queue(stream, &work);
}

int device_mark(struct device_stream *stream, uint32_t n)
{
    struct work work = {};
    work.kind = MARK;
    work.mark = n;
    if (stream->recording || n >= DEVICE_MARKS)
        return -EINVAL;
    stream->reached[n] = false;
    return queue(stream, &work);
}

int device_query(struct device_stream *stream, uint32_t n)
{
    if (!stream->reached[n])
        run_next(stream);
    return stream->reached[n] ? 0 : -EAGAIN;
}

int device_synchronize(struct device_stream *stream)
{
    if (stream->recording)
        return -EINVAL;
    while (run_next(stream))
        ;
    return 0;
}

/* ---- graphs ---- */

int device_record(struct device_stream *stream)
{
    if (stream->recording)
        return -EINVAL;
    struct device_graph *graph = (struct device_graph *)calloc(1, sizeof *graph);
    if (!graph)
        return -ENOMEM;
    graph->works.end = &graph->works.first;
    stream->recording = graph;
    return 0;
}

int device_record_end(struct device_stream *stream, struct device_graph **ret_graph)
{
    if (!stream->recording)
        return -EINVAL;
    *ret_graph = stream->recording;
    stream->recording = NULL;
    stream->device->counts.captures++;
    return 0;
}

int device_graph_launch(struct device_stream *stream, struct device_graph *graph)
{
    struct work work = {};
    work.kind = GRAPH;
    work.graph = graph;
    if (stream->recording)
        return -EINVAL;
    stream->device->counts.graph_launches++;
    return queue(stream, &work);
}

uint32_t device_graph_kernels(const struct device_graph *graph)
{
    return graph->n_kernels;
}

void device_graph_free(struct device_graph *graph)
{
    if (graph)
        release(&graph->works);
    free(graph);
}
