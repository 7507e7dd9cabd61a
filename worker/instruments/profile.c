/* SPDX-License-Identifier: MIT */
/* Steps are counted as they are read. A device that runs ahead has one under way between two steps: as a
 * profile begins on a busy one, that step is counted though not measured, so that as many steps are in the
 * table as were counted; on one that was idle it is one more. */

#include "worker/instruments/profile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void profiler_init(struct profiler *profiler, struct link *link, struct engine *engine)
{
    *profiler = (struct profiler){.link = link, .engine = engine};
}

/* ---- answers ---- */

void profiler_take(struct profiler *profiler, const struct message *message, uint64_t now)
{
    const uint64_t ref = message->profile.ref;
    if (profiler->state != PROFILE_IDLE && profiler->run != message->profile.run) {
        link_refuse(profiler->link, ref, PROTO_OVERLOADED, "this worker is already being profiled");
        return;
    }
    if (profiler->state == PROFILE_IDLE && profiler->run == message->profile.run) {
        link_refuse(profiler->link, ref, PROTO_BAD_REQUEST,
                    "this profile has ended: start a new one with another run");
        return;
    }
    if (profiler->state == PROFILE_IDLE) {
        profiler->state = PROFILE_ASKED;
        profiler->run = message->profile.run;
        profiler->steps = message->profile.steps;
        profiler->made = profiler->n = 0;
        profiler->failure.text[0] = 0;
    }
    profiler->until_ns = now + PROFILE_LEASE_NS;
    if (profiler->failure.text[0]) {
        link_refuse(profiler->link, ref, PROTO_UNSUPPORTED, profiler->failure.text);
        return;
    }
    struct message answer = {.kind = MESSAGE_PROFILE_OK};
    answer.profile_ok.ref = ref;
    answer.profile_ok.done = profiler->state == PROFILE_DONE;
    answer.profile_ok.steps = profiler->made;
    answer.profile_ok.bandwidth = profiler->bandwidth;
    answer.profile_ok.kernels.items = profiler->kernels;
    answer.profile_ok.kernels.n = profiler->n;
    link_send(profiler->link, &answer);
}

/* ---- measuring ---- */

static void begin(struct profiler *profiler)
{
    int r = engine_profile(profiler->engine, true);
    if (r < 0) {
        error_set(&profiler->failure, r, "%s: kernels cannot be measured: %s",
                  engine_backend_info(profiler->engine)->device, strerror(-r));
        profiler->state = PROFILE_DONE;
        return;
    }
    profiler->before = engine_steps(profiler->engine);
    profiler->state = PROFILE_MEASURING;
}

static void copy_kernel(struct profiler *profiler, const struct backend_kernel *from)
{
    char *name = profiler->names[profiler->n];
    snprintf(name, BACKEND_KERNEL_NAME, "%s", from->name);
    profiler->kernels[profiler->n++] = (struct kernel_profile){.name = bytes_of_string(name),
                                                               .n = from->n,
                                                               .ns = from->ns,
                                                               .bytes = from->bytes,
                                                               .macs = from->macs,
                                                               .blocks = from->n_blocks,
                                                               .threads = from->n_threads,
                                                               .shared_bytes = from->shared_bytes,
                                                               .loaded = from->loaded,
                                                               .sectors = from->sectors,
                                                               .asked = from->asked,
                                                               .passes = from->passes,
                                                               .conflicts = from->conflicts};
}

static void finish(struct profiler *profiler)
{
    const struct backend_kernel *kernels;
    const uint32_t n = engine_kernels(profiler->engine, &kernels);
    for (uint32_t i = 0; i < n && profiler->n < PROTO_MAX_KERNELS; i++)
        copy_kernel(profiler, &kernels[i]);
    engine_profile(profiler->engine, false);
    profiler->state = PROFILE_DONE;
}

void profiler_tend_now(struct profiler *profiler, uint64_t now)
{
    if (now >= profiler->until_ns) {
        if (profiler->state == PROFILE_MEASURING)
            engine_profile(profiler->engine, false);
        profiler->state = PROFILE_IDLE;
        return;
    }
    if (profiler->state == PROFILE_ASKED)
        begin(profiler);
    if (profiler->state != PROFILE_MEASURING)
        return;
    profiler->made = (uint32_t)(engine_steps(profiler->engine) - profiler->before);
    if (profiler->made >= profiler->steps)
        finish(profiler);
}
