/* SPDX-License-Identifier: MIT */
/* Decodes of equal rows, which share the first block and write the same into it, through recorded graphs as
 * they are served: those that are there already, and such as would be there otherwise. */

#include "cuda/check/invariance.h"

#include <errno.h>
#include <stdio.h>

#include "common/clock.h"

#define ROWS    KERNELS_GEMV /* of the larger step */
#define STEPS   5 /* of which the first counts for nothing, and the fastest of the others for all */
#define POLL_MS 1000

/* One step at `position` of slots 0 … n − 1; how long it took. */
static int time_step(struct steps *steps, uint32_t position, uint32_t n, uint64_t *ret_ns)
{
    static const uint32_t block = 0;
    static const int32_t id = 0;
    struct backend_row_set sets[ROWS];
    const struct backend_step step = {sets, n};
    const struct backend_result *results;
    uint64_t ticket;
    for (uint32_t i = 0; i < n; i++) {
        sets[i] = (struct backend_row_set){
            .slot = i, .position = position, .ids = &id, .n_ids = 1, .output = BACKEND_SAMPLE_LAST};
        for (uint32_t g = 0; g < steps->pass->pools->n_groups; g++)
            sets[i].blocks[g] = (struct backend_blocks){&block, position == 0, position > 0};
    }
    const uint64_t begun = clock_ns();
    int r = steps_submit(steps, &step, &ticket);
    if (r < 0)
        return r;
    do
        r = steps_poll(steps, ticket, POLL_MS, &results, NULL);
    while (r == -EAGAIN);
    *ret_ns = clock_ns() - begun;
    return r;
}

static int time_steps(struct steps *steps, uint32_t n, uint64_t *ret_ns)
{
    static const struct backend_slot greedy = {.sampling = SAMPLING_GREEDY, .end_position = UINT32_MAX};
    int r = 0;
    *ret_ns = UINT64_MAX;
    for (uint32_t i = 0; i < n && r == 0; i++)
        r = device_slots_open(steps->slots, i, &greedy);
    for (uint32_t position = 0; position < STEPS && r == 0; position++) {
        uint64_t ns;
        r = time_step(steps, position, n, &ns);
        if (r == 0 && position > 0 && ns < *ret_ns)
            *ret_ns = ns;
    }
    for (uint32_t i = 0; i < n; i++)
        device_slots_close(steps->slots, i);
    return r;
}

/* Of a step of one row, and of one of n. */
struct cost {
    uint64_t one_ns, n_ns;
};

static int time_both(struct steps *steps, uint32_t n, struct cost *ret_cost)
{
    int r = time_steps(steps, 1, &ret_cost->one_ns);
    return r < 0 ? r : time_steps(steps, n, &ret_cost->n_ns);
}

/* As it would be without. */
static int time_otherwise(struct steps *steps, const struct pass *pass, uint32_t n, struct cost *ret_cost)
{
    const struct graphs served = steps->graphs;
    struct pass otherwise = *pass;
    struct graphs graphs;
    otherwise.invariant = false;
    int r = graphs_init(&graphs, &otherwise, device_stream(steps->device), n, served.eager);
    if (r < 0)
        return r;
    steps->graphs = graphs;
    steps->pass = &otherwise;
    r = time_both(steps, n, ret_cost);
    steps->pass = pass;
    steps->graphs = served;
    graphs_deinit(&graphs);
    return r;
}

static double milliseconds(uint64_t ns)
{
    return (double)ns / CLOCK_NS_PER_MS;
}

static void tell(const struct backend_config *config, uint32_t n, const struct cost *cost,
                 const struct cost *otherwise)
{
    char line[256], more[128] = "";
    if (n > 1)
        snprintf(more, sizeof more, "; of %u at once %.3g and %.3g; from %d on there is no difference", n,
                 milliseconds(cost->n_ns), milliseconds(otherwise->n_ns), ROWS + 1);
    snprintf(line, sizeof line,
             "invariant: a token of one sequence takes %.3g ms, and would take %.3g otherwise%s",
             milliseconds(cost->one_ns), milliseconds(otherwise->one_ns), more);
    config->say(config->say_arg, line);
}

int invariance_tell_cost(struct steps *steps, const struct pass *pass)
{
    const struct backend_config *config = steps->config;
    struct backend_config quiet = *config; /* its progress hook means steps that are served */
    const uint32_t n_slots = steps->slots->on_device.n_slots, n = n_slots < ROWS ? n_slots : ROWS;
    struct cost cost, otherwise;
    if (!config->say || config->n_context < STEPS)
        return 0;
    quiet.progress = NULL;
    steps->config = &quiet;
    int r = time_both(steps, n, &cost);
    if (r == 0)
        r = time_otherwise(steps, pass, n, &otherwise);
    steps->config = config;
    if (r == 0)
        tell(config, n, &cost, &otherwise);
    return r;
}
