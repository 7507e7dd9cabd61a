/* SPDX-License-Identifier: MIT */
/* The board as its worker writes it. It only reads what it tells of. */

#include "worker/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"

#define USAGE_NS CLOCK_NS_PER_S /* between looks at what may have to ask the device */
#define RATE_NS  CLOCK_NS_PER_S

int report_open(struct report *report, int fd, uint32_t incarnation, struct error *err)
{
    *report = (struct report){.incarnation = incarnation};
    if (fd < 0)
        return 0;
    int r = board_map(fd, &report->slot);
    close(fd);
    if (r == -EINVAL)
        return error_set(err, r, "board: not a board of this version");
    return r < 0 ? error_set(err, r, "board: descriptor %d: %s", fd, strerror(-r)) : 0;
}

void report_close(struct report *report)
{
    board_unmap(report->slot);
    *report = (struct report){0};
}

void report_look_again(struct report *report)
{
    report->next_ns = report->next_usage_ns = 0;
}

void report_progress(struct report *report)
{
    if (report->slot)
        atomic_fetch_add_explicit(&report->slot->layers, 1, memory_order_relaxed);
}

/* Tokens a second, over windows of a second or so. */
static void measure_rate(struct report *report, uint64_t now, uint64_t tokens)
{
    uint64_t ns = now - report->rate_since_ns;
    if (ns < RATE_NS)
        return;
    report->tokens_per_s = (double)(tokens - report->rate_tokens) * 1e9 / (double)ns;
    report->rate_tokens = tokens;
    report->rate_since_ns = now;
}

static void describe_usage(struct report *report, struct engine *engine, uint64_t now,
                           struct board_snapshot *snapshot)
{
    if (now >= report->next_usage_ns) {
        report->next_usage_ns = now + USAGE_NS;
        engine_usage(engine, &report->usage);
        resident_read(&report->resident);
    }
    const struct backend_usage *usage = &report->usage;
    snapshot->memory_resident = report->resident.bytes;
    snapshot->memory_weights = usage->weights;
    snapshot->memory_workspace = usage->workspace;
    snapshot->memory_staging = usage->staging;
    snapshot->device_free = usage->device_free;
    snapshot->device_total = usage->device_total;
    snapshot->launches = usage->launches;
    snapshot->recorded_launches = usage->recorded;
    snapshot->refused_recordings = usage->refused;
    snapshot->padding_rows = usage->padding_rows;
    snapshot->library_products = usage->library_products;
    engine_compared(engine, &snapshot->ids_compared, &snapshot->ids_different);
}

/* What the device has taken for this worker, and of it the parts that are known. */
static void describe_memory(const struct backend_info *info, const struct engine_stats *stats,
                            struct board_snapshot *snapshot)
{
    snapshot->memory = info->memory_bytes;
    snapshot->memory_kv = backend_kv_bytes(info);
    for (uint32_t g = 0; g < info->n_groups; g++)
        snapshot->memory_kv_held += (uint64_t)stats->blocks_held[g] * info->groups[g].block_bytes;
    snapshot->memory_states = (uint64_t)info->state_bytes * (info->n_slots + info->n_snapshots);
}

static uint64_t peak_of(uint64_t *peak, uint64_t bytes)
{
    *peak = bytes > *peak ? bytes : *peak;
    return *peak;
}

/* As far as reports have seen, which are about a millisecond apart. */
static void keep_peaks(struct report *report, struct board_snapshot *snapshot)
{
    struct report_peaks *peaks = &report->peaks;
    snapshot->memory_peak = peak_of(&peaks->memory, snapshot->memory);
    snapshot->memory_kv_held_peak = peak_of(&peaks->kv_held, snapshot->memory_kv_held);
    snapshot->memory_resident_peak = peak_of(&peaks->resident, snapshot->memory_resident);
}

void report_write(struct report *report, const struct report_facts *facts, uint64_t now, uint64_t ns)
{
    report->next_ns = now + ns;
    if (!report->slot)
        return;
    struct engine_stats stats = {0};
    struct board_snapshot snapshot = {.state = facts->state,
                                      .pid = (uint32_t)getpid(),
                                      .incarnation = report->incarnation,
                                      .step_started_ns = facts->step_started_ns};
    if (facts->engine) {
        const struct measures *measures = engine_measures(facts->engine);
#define COPY_HISTOGRAM(scale, name, ...) snapshot.name = measures->name;
        WORKER_HISTOGRAMS(COPY_HISTOGRAM)
        engine_stats(facts->engine, &stats);
        const struct backend_info *info = engine_backend_info(facts->engine);
        snapshot.kv_block_bytes = (uint32_t)(backend_kv_bytes(info) / info->groups[0].n_blocks);
        describe_usage(report, facts->engine, now, &snapshot);
        describe_memory(info, &stats, &snapshot);
        measure_rate(report, now, stats.tokens);
        snprintf(snapshot.device, sizeof snapshot.device, "%.*s", (int)sizeof snapshot.device - 1,
                 engine_backend_info(facts->engine)->device);
    }
    snapshot.active = stats.active;
    snapshot.waiting = stats.waiting + facts->unstarted;
    snapshot.slots = stats.slots;
    snapshot.kv_free = stats.blocks_free;
    snapshot.kv_total = stats.blocks_total;
    snapshot.tokens = stats.tokens;
    snapshot.cache_hits = stats.cache_hits;
    snapshot.prefill_tokens = stats.prefill_tokens;
    snapshot.evictions = stats.evictions;
    snapshot.restores = stats.restores;
    snapshot.kv_cached = stats.blocks_cached;
    snapshot.drafted = stats.drafted;
    snapshot.accepted = stats.accepted;
    snapshot.tokens_per_s = report->tokens_per_s;
    keep_peaks(report, &snapshot);
    board_write(report->slot, &snapshot);
    atomic_store_explicit(&report->slot->steps, stats.steps, memory_order_relaxed);
}
