/* SPDX-License-Identifier: MIT */
/* What the device samples lies in its scratch when the host looks, and is not accepted yet: an id of the host
 * that differs is copied over it, so log probabilities, drafts, penalties and ends follow from the host's.
 *
 * One step is in flight at a time. So when a step is submitted, the host has read all before it, knows each
 * slot's position, and has sampled every id of it: what penalties count is a copy of what the device counts.
 */

#include "cuda/host/host_sampling.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "cuda/host/step_logits.h"

size_t host_sampling_pinned(const struct steps *steps)
{
    return 2 * steps->max_outputs * sizeof(int32_t);
}

int host_sampling_new(struct steps *steps, struct host_sampling **ret_host)
{
    const uint32_t n_slots = steps->slots->on_device.n_slots;
    struct host_sampling *host = calloc(1, sizeof *host);
    if (!host)
        return -ENOMEM;
    host->n_slots = n_slots;
    host->slots = calloc(n_slots, sizeof *host->slots);
    host->differences = calloc(steps->max_outputs, sizeof *host->differences);
    host->of_device = device_pinned(steps->device, host_sampling_pinned(steps));
    if (!host->slots || !host->differences || !host->of_device ||
        sampler_new(steps->slots->on_device.n_vocab, &host->sampler) < 0) {
        host_sampling_free(host);
        return -ENOMEM;
    }
    host->of_host = host->of_device + steps->max_outputs;
    *ret_host = host;
    return 0;
}

struct host_sampling *host_sampling_free(struct host_sampling *host)
{
    if (!host)
        return NULL;
    for (uint32_t i = 0; host->slots && i < host->n_slots; i++)
        slot_sampling_deinit(&host->slots[i]);
    free(host->slots);
    free(host->differences);
    sampler_free(host->sampler);
    free(host);
    return NULL;
}

int host_sampling_open(struct host_sampling *host, const struct steps *steps, uint32_t slot,
                       const struct backend_slot *params)
{
    return slot_sampling_init(&host->slots[slot], params, steps->slots->on_device.n_vocab,
                              steps->slots->on_device.n_history);
}

void host_sampling_close(struct host_sampling *host, uint32_t slot)
{
    if (slot < host->n_slots)
        slot_sampling_deinit(&host->slots[slot]);
}

/* ---- a step ---- */

/* A step that is being sampled: rows first … end − 1 of its outputs are in the staging. */
struct sampling_step {
    struct steps *steps;
    uint32_t first, end, n;
};

/* The logits of an output; outputs are asked for in rising order. */
static int stage(struct sampling_step *at, uint32_t output, const float **ret_logits)
{
    struct steps *steps = at->steps;
    if (output >= at->end) {
        const uint32_t n = at->n - output < STEPS_LOGITS_ROWS ? at->n - output : STEPS_LOGITS_ROWS;
        int r = steps_bring_logits(steps, output, n);
        if (r < 0)
            return r;
        at->first = output;
        at->end = output + n;
    }
    *ret_logits = steps->logits + (size_t)(output - at->first) * steps->pass->workspace->vocab_stride;
    return 0;
}

static float logit_of(const struct steps *steps, const float *logits, int32_t id)
{
    return id >= 0 && (uint32_t)id < steps->slots->on_device.n_vocab ? logits[id] : NAN;
}

/* Queues the host's id in the place of the device's. */
static int replace(const struct steps *steps, struct flight_set *flight, uint32_t output, uint64_t position,
                   const float *logits)
{
    struct host_sampling *host = steps->host;
    const int32_t of_device = host->of_device[output], of_host = host->of_host[output];
    host->compared++;
    if (of_device == of_host)
        return 0;
    host->different++;
    flight->n_differences++;
    host->differences[host->n_differences++] =
        (struct backend_difference){.position = position,
                                    .of_device = of_device,
                                    .of_host = of_host,
                                    .logit_of_device = logit_of(steps, logits, of_device),
                                    .logit_of_host = logit_of(steps, logits, of_host)};
    return device_copy(device_stream(steps->device), pass_sampled_id(steps->pass, output),
                       &host->of_host[output], sizeof *host->of_host);
}

/* The rows of a set, up to one that does not agree with the draft, or ends the sequence. */
static int sample_set(struct sampling_step *at, const struct backend_row_set *set, uint32_t first_output,
                      struct flight_set *flight)
{
    struct steps *steps = at->steps;
    struct host_sampling *host = steps->host;
    struct slot_sampling *slot = &host->slots[set->slot];
    const size_t words = step_mask_words(steps);
    const uint32_t n = step_outputs_of(set), begin = steps->slots->slots[set->slot].position;
    for (uint32_t j = 0; j < n; j++) {
        const uint32_t row = set->output == BACKEND_SAMPLE_ALL ? j : set->n_ids - 1;
        const uint64_t position = (uint64_t)begin + row + 1;
        const float *logits;
        int r = stage(at, first_output + j, &logits);
        if (r < 0)
            return r;
        const int32_t id =
            slot_sampling_sample(slot, host->sampler, logits, position, steps->pass->model->sample_mask,
                                 set->allowed ? set->allowed + j * words : NULL);
        host->of_host[first_output + j] = id;
        r = replace(steps, flight, first_output + j, position, logits);
        if (r < 0 || id < 0)
            return r;
        const enum backend_end end = slot_sampling_accept(slot, id, (uint32_t)position + 1);
        if (end != BACKEND_RUNNING || j + 1 == n || set->ids[row + 1] != id)
            return 0;
    }
    return 0;
}

int host_sampling_run(struct steps *steps, const struct backend_step *step, uint32_t n)
{
    struct host_sampling *host = steps->host;
    struct flight *flight = step_flight(steps);
    struct sampling_step at = {.steps = steps, .n = n};
    int r = 0;
    host->n_differences = 0;
    for (uint32_t i = 0; i < n && r == 0; i++)
        r = device_copy(device_stream(steps->device), &host->of_device[i], pass_sampled_id(steps->pass, i),
                        sizeof *host->of_device);
    for (uint32_t i = 0; i < step->n_sets && r == 0; i++) {
        const struct backend_row_set *set = &step->sets[i];
        flight->sets[i].first_difference = host->n_differences;
        if (step_samples(set->output) && steps->slots->slots[set->slot].end == BACKEND_RUNNING)
            r = sample_set(&at, set, step_sets(steps)[i].first_output, &flight->sets[i]);
    }
    return r;
}
