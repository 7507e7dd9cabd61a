/* SPDX-License-Identifier: MIT */
/* device.h on the host. What is queued runs only when the host waits or asks, a piece for each question: a
 * host that looks too early, or overwrites what a copy has still to read, is caught in the ordinary tests.
 * With a seed pieces are of random length, none included, and some run when something is queued: so a host
 * that counts on the queue to be slow is caught too. */

#include "cuda/device/device.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "cuda/device/in_turn.h"
#include "cuda/device/selection.h"
#include "cuda/emu/emu.h"

#define TOTAL_BYTES  ((size_t)8 << 30)
#define STALL_MS     200u /* of a device that is to stand still */
#define SHARED_BYTES (99 * 1024)
#define MOST_GRID_YZ 65535
#define MOST_DEVICES 4096

enum kind { COPY, FILL, LAUNCH, MARK, NOTE, GRAPH };

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

struct device_stream {
    struct device *device;
    struct list queue;
    const struct work *next_of_graph; /* of the graph that is the first in the queue: what it does next */
    struct device_graph *recording;
    bool spoiled; /* the recording is of no use any more */
    const char *refusal;
    bool reached[DEVICE_MARKS];
    uint64_t noted_ns[2];
    uint64_t expected; /* of the next launch */
    bool follows;      /* the last that was queued, here or in the recording, is a launch of ours */
    bool in_turn;      /* launches do not overlap for all that */
    uint64_t n_early;  /* launches, not recorded ones, that $QUERN_EMU_EARLY could have begin early */
};

struct device_arena {
    struct device *device;
    size_t bytes, used;
    struct device_arena *next;
};

struct device {
    struct device_stream stream;
    struct device_properties properties;
    struct device_counts counts;
    struct emu_memory *allocations, *pinned;
    struct device_arena *arenas; /* their buffers are among the allocations */
    /* For tests of those above: $QUERN_EMU_FAULT and $QUERN_EMU_STALL are the numbers of the launches, from
     * 1, that fail or never end; $QUERN_EMU_FLIP that of the copy from the host whose first 16 bytes arrive
     * inverted; $QUERN_EMU_BYTES is what the device has, and $QUERN_EMU_NO_MEMORY the allocation of it that
     * is refused. $QUERN_EMU_DEVICES: so many there are, each with memory of its own. */
    uint64_t fault_at, stall_at, n_run, flip_at, n_copied, no_memory, n_asked;
    /* And of what refuses recordings: from $QUERN_EMU_NO_CAPTURE on none begins, from $QUERN_EMU_NO_GRAPH on
     * none ends well, and $QUERN_EMU_SPOIL is the launch, of those in recordings, that cannot be recorded. */
    uint64_t no_capture, no_graph, spoil_at, n_recordings, n_recorded;
    bool under_way; /* a launch has begun, and some of its blocks have still to run */
    int fault;      /* -errno, once it has failed */
    struct error reason;
};

/* ---- life ---- */

const char device_kind[] = "emu";

static uint32_t chosen[SELECTION_MOST], n_chosen;

void emu_select(const uint32_t *numbers, uint32_t n)
{
    if (n > 0)
        memcpy(chosen, numbers, n * sizeof *chosen);
    n_chosen = n;
}

uint32_t emu_number_of(uint32_t number)
{
    return n_chosen > 0 ? chosen[number] : number;
}

int device_count(uint32_t *ret_n, struct error *err)
{
    const uint64_t n = emu_number("QUERN_EMU_DEVICES", 1);
    if (n == 0 || n > MOST_DEVICES)
        return error_set(err, -ENODEV, "%s emulated devices", n == 0 ? "no" : "too many");
    *ret_n = n_chosen > 0 ? n_chosen : (uint32_t)n;
    return 0;
}

int device_open(uint32_t number, struct device **ret_device, struct error *err)
{
    uint32_t n;
    const int r = device_count(&n, err);
    if (r < 0)
        return r;
    if (number >= n)
        return error_set(err, -ENODEV, "there is no emulated device %u: there %s %u", number,
                         n == 1 ? "is" : "are", n);
    const uint32_t capability = (uint32_t)emu_number("QUERN_EMU_CAPABILITY", 90);
    const int fits = check_capability(number, "emulated", capability, err);
    if (fits < 0)
        return fits;
    struct device *device = (struct device *)calloc(1, sizeof *device);
    if (!device)
        return error_set(err, -ENOMEM, "not enough memory for the emulated device");
    device->fault_at = emu_number("QUERN_EMU_FAULT", 0);
    device->stall_at = emu_number("QUERN_EMU_STALL", 0);
    device->flip_at = emu_number("QUERN_EMU_FLIP", 0);
    device->no_memory = emu_number("QUERN_EMU_NO_MEMORY", 0);
    device->no_capture = emu_number("QUERN_EMU_NO_CAPTURE", UINT64_MAX);
    device->no_graph = emu_number("QUERN_EMU_NO_GRAPH", UINT64_MAX);
    device->spoil_at = emu_number("QUERN_EMU_SPOIL", 0);
    device->stream.refusal = "";
    device->properties = (struct device_properties){"emulated",
                                                    capability,
                                                    EMU_MULTIPROCESSORS,
                                                    SHARED_BYTES,
                                                    (size_t)32 << 20,
                                                    emu_number("QUERN_EMU_BYTES", TOTAL_BYTES),
                                                    0,
                                                    device->stall_at ? STALL_MS : 0u,
                                                    emu_has_clock(),
                                                    "none, emulated",
                                                    ""};
    snprintf(device->properties.label, sizeof device->properties.label, "%.40s (GPU %u)",
             device->properties.name, emu_number_of(number));
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

struct device *device_close(struct device *device)
{
    if (!device)
        return NULL;
    if (device->under_way)
        emu_drop();
    release(&device->stream.queue);
    if (device->stream.recording)
        device_graph_free(device->stream.recording);
    emu_memory_release_all(&device->allocations);
    emu_memory_release_all(&device->pinned);
    while (device->arenas) {
        struct device_arena *arena = device->arenas;
        device->arenas = arena->next;
        free(arena);
    }
    free(device);
    emu_profile_print();
    return NULL;
}

const struct device_properties *device_properties(const struct device *device)
{
    return &device->properties;
}

size_t device_free_bytes(struct device *device)
{
    return device->properties.total_bytes - device->counts.bytes;
}

int device_verdict(struct device *device, struct error *err)
{
    return device->fault ? error_set(err, device->fault, "%s", device->reason.text) : 0;
}

struct device_counts device_counts(const struct device *device)
{
    return device->counts;
}

/* ---- memory ---- */

/* Whether there is so much; it is taken then. */
static bool reserve(struct device *device, size_t bytes)
{
    if (device_taken(bytes) > device_free_bytes(device) || ++device->n_asked == device->no_memory)
        return false;
    device->counts.allocations++;
    device->counts.bytes += device_taken(bytes);
    return true;
}

static void *take(struct device *device, size_t bytes)
{
    void *memory = emu_memory_take(&device->allocations, bytes);
    if (memory)
        emu_memory_poison(memory, bytes, true);
    return memory;
}

void *device_alloc(struct device *device, size_t bytes)
{
    return reserve(device, bytes) ? take(device, bytes) : NULL;
}

struct device_arena *device_arena_new(struct device *device, size_t bytes)
{
    struct device_arena *arena = (struct device_arena *)calloc(1, sizeof *arena);
    if (!arena || !reserve(device, bytes)) {
        free(arena);
        return NULL;
    }
    *arena = device_arena{device, bytes, 0, device->arenas};
    device->arenas = arena;
    return arena;
}

void *device_arena_take(struct device_arena *arena, size_t bytes)
{
    const size_t taken = device_part(bytes);
    if (taken > arena->bytes - arena->used)
        return NULL;
    arena->used += taken;
    return take(arena->device, bytes);
}

void device_free(struct device *device, void *memory)
{
    if (memory)
        device->counts.bytes -= device_taken(emu_memory_release(&device->allocations, memory));
}

void *device_pinned(struct device *device, size_t bytes)
{
    void *memory = emu_memory_take(&device->pinned, bytes);
    device->counts.allocations += memory != NULL;
    return memory;
}

void device_pinned_free(struct device *device, void *memory)
{
    emu_memory_release(&device->pinned, memory);
}

/* ---- the queue ---- */

/* The memory that a copy or fill touches is there, and is of a kind that the device reaches. */
static void check_reach(const struct device *device, const void *from, size_t bytes, const char *what)
{
    if (!emu_memory_holds(device->allocations, from, bytes) && !emu_memory_holds(device->pinned, from, bytes))
        emu_die("the %s, %zu bytes at %p, is neither in device memory nor in pinned memory", what, bytes,
                from);
}

static void run_launch(struct device *device, const struct emu_launch *launch)
{
    if (!device->under_way && ++device->n_run == device->fault_at) {
        device->fault =
            error_set(&device->reason, -EIO, "kernel %s, grid %u,%u,%u of %u threads, failed", launch->name,
                      launch->grid.x, launch->grid.y, launch->grid.z, launch->block.x);
    } else {
        emu_accesses_begin(device->allocations, device->pinned);
        device->under_way = !emu_run(launch);
    }
}

static void run_copy(struct device *device, const struct work *work)
{
    check_reach(device, work->from, work->bytes, "source of a copy");
    check_reach(device, work->to, work->bytes, "target of a copy");
    memmove(work->to, work->from, work->bytes);
    if (emu_memory_holds(device->pinned, work->from, work->bytes) && ++device->n_copied == device->flip_at)
        for (size_t i = 0; i < work->bytes && i < 16; i++)
            ((uint8_t *)work->to)[i] ^= 0xff;
}

static void run_one(struct device_stream *stream, const struct work *work)
{
    switch (work->kind) {
    case COPY:
        run_copy(stream->device, work);
        break;
    case FILL:
        check_reach(stream->device, work->to, work->bytes, "target of a fill");
        memset(work->to, work->byte, work->bytes);
        break;
    case LAUNCH:
        run_launch(stream->device, &work->launch);
        break;
    case MARK:
        stream->reached[work->mark] = true;
        break;
    case NOTE:
        stream->noted_ns[work->mark] = emu_clock_ns();
        break;
    case GRAPH: /* its parts run one by one */
        break;
    }
}

static void finish_first(struct device_stream *stream)
{
    struct work *work = stream->queue.first;
    stream->queue.first = work->next;
    if (!stream->queue.first)
        stream->queue.end = &stream->queue.first;
    if (work->kind == LAUNCH)
        work->launch.release(work->launch.closure);
    free(work);
    stream->next_of_graph = stream->queue.first && stream->queue.first->kind == GRAPH
                                ? stream->queue.first->graph->works.first
                                : NULL;
}

/* Runs one copy, fill, launch or mark, or a part of a launch. False: nothing is queued, or runs any more. */
static bool run_next(struct device_stream *stream)
{
    struct work *first = stream->queue.first;
    const struct device *device = stream->device;
    const bool stalls = device->stall_at > 0 && device->n_run + 1 >= device->stall_at;
    if (!first || device->fault || (stalls && !device->under_way))
        return false;
    if (first->kind != GRAPH) {
        run_one(stream, first);
        if (!device->under_way)
            finish_first(stream);
        return true;
    }
    const struct work *part = stream->next_of_graph;
    if (part) {
        run_one(stream, part);
        if (device->under_way)
            return true;
        stream->next_of_graph = part->next;
    }
    if (!stream->next_of_graph)
        finish_first(stream);
    return true;
}

/* Runs up to n parts, with device memory open to them alone. */
static void run(struct device_stream *stream, uint32_t n)
{
    if (n == 0 || !stream->queue.first)
        return;
    emu_memory_lock(stream->device->allocations, false);
    while (n-- > 0 && run_next(stream))
        ;
    emu_memory_lock(stream->device->allocations, true);
}

/* Nothing more is queued: 0, a fault, or the recording is refused. */
static int check_queue(struct device_stream *stream, const struct work *what)
{
    struct device *device = stream->device;
    if (stream->recording && what->kind == LAUNCH && ++device->n_recorded == device->spoil_at) {
        stream->spoiled = true;
        stream->refusal = "emulated: a launch cannot be recorded";
    }
    if (device->fault)
        return device->fault;
    return stream->recording && stream->spoiled ? -EINVAL : 0;
}

/* NULL: it is empty. */
static struct work *last_of(const struct list *list)
{
    return list->first ? (struct work *)((char *)list->end - offsetof(struct work, next)) : NULL;
}

/* Two neighbours. */
static void change_places(struct work *first, struct work *second)
{
    const struct work earlier = *first;
    struct work *const behind = second->next;
    *first = *second;
    *second = earlier;
    first->next = second;
    second->next = behind;
}

/* $QUERN_EMU_EARLY names a kernel that does not wait for the launch before it, and so wins against it where
 * they overlap: "norm"; "norm:recorded" in recordings alone; "norm:3" the third time alone that it could,
 * outside of recordings. What runs already is not overtaken. */
static bool begins_early(struct device_stream *stream, const struct work *work)
{
    const char *name = getenv("QUERN_EMU_EARLY"), *colon = name ? strchr(name, ':') : NULL;
    const size_t length = colon ? (size_t)(colon - name) : strlen(name ? name : "");
    if (!name || work->kind != LAUNCH || !work->launch.overlaps || stream->device->under_way ||
        strlen(work->launch.name) != length || strncmp(name, work->launch.name, length) != 0)
        return false;
    if (stream->recording)
        return !colon || strcmp(colon, ":recorded") == 0;
    stream->n_early++;
    return !colon || strtoull(colon + 1, NULL, 10) == stream->n_early;
}

static int queue(struct device_stream *stream, const struct work *what)
{
    struct list *list = stream->recording ? &stream->recording->works : &stream->queue;
    const int r = check_queue(stream, what);
    struct work *work = r < 0 ? NULL : (struct work *)malloc(sizeof *work);
    if (!work) {
        if (what->kind == LAUNCH)
            what->launch.release(what->launch.closure);
        return r < 0 ? r : -ENOMEM;
    }
    *work = *what;
    work->next = NULL;
    stream->follows = work->kind == LAUNCH;
    if (list == &stream->queue && !list->first && work->kind == GRAPH)
        stream->next_of_graph = work->graph->works.first;
    struct work *last = begins_early(stream, work) ? last_of(list) : NULL;
    *list->end = work;
    list->end = &work->next;
    if (last)
        change_places(last, work);
    if (!stream->recording)
        run(stream, emu_random(3));
    return 0;
}

static void check_launch(const struct emu_launch *launch)
{
    const struct simt_dim grid = launch->grid;
    if (launch->shared_bytes > SHARED_BYTES)
        emu_die("kernel %s requests %zu bytes of shared memory; a block has at most %d", launch->name,
                launch->shared_bytes, SHARED_BYTES);
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > INT32_MAX || grid.y > MOST_GRID_YZ ||
        grid.z > MOST_GRID_YZ)
        emu_die("kernel %s: invalid grid %u,%u,%u", launch->name, grid.x, grid.y, grid.z);
}

int emu_queue(struct device_stream *stream, const struct emu_launch *launch)
{
    struct work work = {};
    check_launch(launch);
    work.kind = LAUNCH;
    work.launch = *launch;
    work.launch.expected = stream->expected;
    work.launch.overlaps = stream->follows && !stream->in_turn;
    stream->device->counts.overlaps += work.launch.overlaps;
    stream->expected = 0;
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

void device_launch_in_turn(struct device *device, bool in_turn)
{
    device->stream.in_turn = in_turn;
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
        run(stream, emu_is_random() ? emu_random(4) : 1);
    if (stream->device->fault)
        return stream->device->fault;
    return stream->reached[n] ? 0 : -EAGAIN;
}

int device_synchronize(struct device_stream *stream)
{
    if (stream->recording)
        return -EINVAL;
    run(stream, UINT32_MAX);
    return stream->device->fault;
}

/* ---- time ---- */

int device_note_time(struct device_stream *stream, uint32_t n)
{
    struct work work = {};
    work.kind = NOTE;
    work.mark = n;
    if (!stream->device->properties.has_clock)
        return -ENOTSUP;
    if (stream->recording || n > 1)
        return -EINVAL;
    return queue(stream, &work);
}

int device_time_between(struct device_stream *stream, uint64_t *ret_ns)
{
    *ret_ns = stream->noted_ns[1] - stream->noted_ns[0];
    return stream->device->fault;
}

uint64_t device_clock_ns(const struct device *device)
{
    return device->properties.has_clock ? emu_clock_ns() : clock_ns();
}

/* ---- libraries of the device ---- */

/* They launch as we do. */
int device_library_begin(struct device_stream *stream, const char *name, void **ret_native)
{
    stream->follows = false;
    *ret_native = stream;
    return stream->device->fault;
}

int device_library_end(struct device_stream *stream, const char *name)
{
    stream->follows = false;
    stream->device->counts.library++;
    return stream->device->fault;
}

int device_blame(struct device_stream *stream, const char *format, ...)
{
    struct device *device = stream->device;
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (device->fault == 0)
        device->fault = error_set(&device->reason, -EIO, "%s", text);
    return device->fault;
}

/* ---- graphs ---- */

const char *device_refusal(const struct device_stream *stream)
{
    return stream->refusal;
}

int device_record(struct device_stream *stream)
{
    struct device *device = stream->device;
    if (stream->recording)
        return -EINVAL;
    if (++device->n_recordings >= device->no_capture) {
        stream->refusal = "emulated: no recording begins";
        return device->fault ? device->fault : -EINVAL;
    }
    struct device_graph *graph = (struct device_graph *)calloc(1, sizeof *graph);
    if (!graph)
        return -ENOMEM;
    graph->works.end = &graph->works.first;
    stream->recording = graph;
    stream->spoiled = false;
    stream->follows = false;
    return 0;
}

int device_record_end(struct device_stream *stream, struct device_graph **ret_graph)
{
    struct device *device = stream->device;
    struct device_graph *graph = stream->recording;
    if (!graph)
        return -EINVAL;
    stream->recording = NULL;
    stream->follows = false;
    if (!stream->spoiled && device->n_recordings >= device->no_graph) {
        stream->spoiled = true;
        stream->refusal = "emulated: no graph is made";
    }
    if (stream->spoiled || device->fault) {
        device_graph_free(graph);
        return device->fault ? device->fault : -EINVAL;
    }
    device->counts.captures++;
    *ret_graph = graph;
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

/* ---- profile ---- */

int device_profile(struct device *device, bool on)
{
    (void)on;
    return device->fault;
}

void device_expect(struct device_stream *stream, size_t bytes)
{
    stream->expected = bytes;
}

uint32_t device_kernels(struct device *device, const struct backend_kernel **ret_kernels)
{
    return emu_profile_take(ret_kernels);
}
