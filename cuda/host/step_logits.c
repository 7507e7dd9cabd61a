/* SPDX-License-Identifier: MIT */
/* Waiting inside submit, and what it waits for. */

#include "cuda/host/step_logits.h"

#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "cuda/device/wait.h"

#define PROGRESS_MS 10

/* What the progress hook says of the oldest flight. */
static void ask_progress(struct steps *steps)
{
    const struct backend_config *config = steps->config;
    if (!config->progress || !config->progress(config->progress_arg))
        return;
    struct flight *oldest = &steps->flights[(steps->read + 1) % MAILBOXES];
    oldest->abandoned = true;
    for (uint32_t i = 0; i < oldest->n_sets; i++)
        steps->slots->slots[oldest->sets[i].slot].spoiled = true;
}

int steps_wait_until(struct steps *steps, uint32_t mark, const uint64_t *flag, uint64_t value, uint64_t until)
{
    int r = device_wait(steps->device, mark, flag, value, 0);
    while (r == -EAGAIN) {
        const uint64_t now = clock_ns();
        if (now >= until)
            return r;
        ask_progress(steps);
        const uint64_t left_ms = (until - now + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS;
        r = device_wait(steps->device, mark, flag, value,
                        left_ms < PROGRESS_MS ? (uint32_t)left_ms : PROGRESS_MS);
    }
    return r;
}

static int wait_for_logits(struct steps *steps)
{
    const uint64_t begun = clock_ns();
    for (;;) {
        int r = steps_wait_until(steps, MARK_LOGITS, NULL, 0, clock_ns() + PROGRESS_MS * CLOCK_NS_PER_MS);
        if (r != -EAGAIN)
            return r;
        if (device_stands_still(steps->device, clock_ns() - begun))
            return -ETIMEDOUT;
    }
}

int steps_bring_logits(struct steps *steps, uint32_t row, uint32_t n)
{
    const struct workspace *workspace = steps->pass->workspace;
    struct device_stream *stream = device_stream(steps->device);
    const size_t stride = workspace->vocab_stride;
    int r = device_copy(stream, steps->logits, workspace->logits + row * stride,
                        n * stride * sizeof *steps->logits);
    if (r == 0)
        r = device_mark(stream, MARK_LOGITS);
    return r < 0 ? r : wait_for_logits(steps);
}

/* Gives rows first … first + n − 1 of the outputs, in the staging, to the sets that want them. */
static void hand_out(struct steps *steps, const struct backend_step *step, uint32_t first, uint32_t n)
{
    const uint32_t n_vocab = steps->pass->model->params.n_vocab;
    const size_t stride = steps->pass->workspace->vocab_stride;
    const struct step_set *sets = step_sets(steps);
    for (uint32_t i = 0; i < step->n_sets; i++) {
        const struct backend_row_set *set = &step->sets[i];
        const uint32_t n_outputs = step_samples(set->output) ? 0 : step_outputs_of(set);
        for (uint32_t j = 0; j < n_outputs; j++) {
            const uint32_t output = sets[i].first_output + j;
            if (output >= first && output < first + n)
                memcpy(set->logits + (size_t)j * n_vocab, steps->logits + (output - first) * stride,
                       n_vocab * sizeof *set->logits);
        }
    }
}

int steps_hand_out_logits(struct steps *steps, const struct backend_step *step, uint32_t first, uint32_t end)
{
    int r = 0;
    while (first < end && r == 0) {
        const uint32_t n = end - first < STEPS_LOGITS_ROWS ? end - first : STEPS_LOGITS_ROWS;
        r = pass_logits(steps->pass, device_stream(steps->device), first, n);
        if (r == 0)
            r = steps_bring_logits(steps, 0, n);
        if (r == 0)
            hand_out(steps, step, first, n);
        first += n;
    }
    return r;
}
