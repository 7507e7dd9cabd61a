/* SPDX-License-Identifier: MIT */
/* A step is checked whole, described in pinned memory, copied to its place on the device, and queued: as a
 * recorded graph when all its sets are sampled rows, else, and where the host samples (host_sampling.h),
 * piece by piece. Its last kernel writes the results into a mailbox, which poll watches.
 *
 * Descriptions and mailboxes are rings of MAILBOXES, so with two flights the ring's next is always free: what
 * the device has still to read belongs to flights that are not yet read. Outputs that are sampled have the
 * first logits; those that the host wants come behind them, are made before, a few rows at a time through
 * pinned memory, and are with the caller before submit returns: they serve diagnostics, not serving.
 *
 * The host follows a slot when it reads a result. A set is surplus if the slot had ended by the results
 * before it; then it did not move. An abandoned flight runs to its end, and poll waits for that: its memory
 * is in use until then. */

#include "cuda/host/step.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "cuda/device/wait.h"
#include "cuda/host/host_sampling.h"
#include "cuda/host/step_logits.h"

/* ---- life ---- */

static size_t aligned(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* The description's parts in the order of what decoding uses: mostly the first two are copied. */
static struct step_offsets offsets_of(const struct steps_shape *shape)
{
    struct step_offsets offsets;
    offsets.sets = aligned(sizeof(struct step));
    offsets.ids = offsets.sets + aligned(shape->n_sets * sizeof(struct step_set));
    offsets.blocks = offsets.ids + aligned(shape->n_rows * sizeof(int32_t));
    const size_t n_blocks = (size_t)shape->n_sets * shape->n_groups * shape->table_size;
    offsets.end = offsets.blocks + aligned(n_blocks * sizeof(uint32_t));
    return offsets;
}

static void place(uint8_t *image, const struct step_offsets *offsets, struct step_memory *ret_memory)
{
    ret_memory->step = (struct step *)image;
    ret_memory->sets = (struct step_set *)(image + offsets->sets);
    ret_memory->ids = (int32_t *)(image + offsets->ids);
    ret_memory->blocks = (uint32_t *)(image + offsets->blocks);
}

static void take_mailbox(struct mailbox *mailbox, struct device_memory *memory,
                         const struct steps_shape *shape)
{
    mailbox->number = device_memory_take_pinned(memory, sizeof *mailbox->number);
    mailbox->sets = device_memory_take_pinned(memory, shape->n_sets * sizeof *mailbox->sets);
    mailbox->ids = device_memory_take_pinned(memory, shape->max_outputs * sizeof *mailbox->ids);
    mailbox->logprobs = device_memory_take_pinned(memory, (size_t)shape->max_outputs * SLOTS_MOST_LOGPROBS *
                                                              sizeof *mailbox->logprobs);
}

static int take_flight(struct flight *flight, struct device_memory *memory, const struct steps *steps,
                       uint32_t n_sets, size_t mask_bytes)
{
    flight->image = device_memory_take_pinned(memory, steps->offsets.end);
    flight->masks = device_memory_take_pinned(memory, mask_bytes);
    if (!memory->device)
        return 0;
    flight->sets = calloc(n_sets, sizeof *flight->sets);
    flight->results = calloc(n_sets, sizeof *flight->results);
    return flight->sets && flight->results ? 0 : -ENOMEM;
}

int steps_init(struct steps *steps, struct device_memory *memory, const struct steps_shape *shape)
{
    const size_t mask_bytes = (size_t)shape->max_outputs * ((shape->n_vocab + 31) / 32) * sizeof(uint32_t);
    *steps = (struct steps){
        .max_rows = shape->max_rows, .max_outputs = shape->max_outputs, .offsets = offsets_of(shape)};
    uint8_t *image = device_memory_take_zeroed(memory, steps->offsets.end);
    if (image)
        place(image, &steps->offsets, &steps->memory);
    steps->memory.max_rows = shape->n_rows;
    steps->memory.max_blocks = shape->n_sets * shape->n_groups * shape->table_size;
    steps->memory.rows = device_memory_take_zeroed(memory, shape->n_rows * sizeof *steps->memory.rows);
    steps->memory.outputs = device_memory_take_zeroed(memory, shape->n_rows * sizeof *steps->memory.outputs);
    steps->masks = device_memory_take(memory, mask_bytes);
    steps->mailboxes = device_memory_take_pinned(memory, MAILBOXES * sizeof *steps->mailboxes);
    steps->device_mailboxes = device_memory_take(memory, MAILBOXES * sizeof *steps->device_mailboxes);
    steps->logits = device_memory_take_pinned(memory, (size_t)STEPS_LOGITS_ROWS * shape->vocab_stride *
                                                          sizeof *steps->logits);
    int r = 0;
    for (uint32_t i = 0; i < MAILBOXES && r == 0; i++) {
        r = take_flight(&steps->flights[i], memory, steps, shape->n_sets, mask_bytes);
        if (steps->mailboxes)
            take_mailbox(&steps->mailboxes[i], memory, shape);
    }
    return r;
}

int steps_start(struct steps *steps, bool eager)
{
    struct device_stream *stream = device_stream(steps->device);
    int r =
        device_copy(stream, steps->device_mailboxes, steps->mailboxes, MAILBOXES * sizeof *steps->mailboxes);
    if (r == 0)
        r = graphs_init(&steps->graphs, steps->pass, stream, steps->slots->on_device.n_slots, eager);
    return r;
}

int steps_wait(struct steps *steps)
{
    if (steps->failed || steps->submitted == steps->read)
        return steps->failed;
    return device_wait_due(steps->device, MARK_STEPS + (uint32_t)(steps->submitted % MAILBOXES));
}

size_t steps_logits_bytes(const struct steps *steps)
{
    return (size_t)STEPS_LOGITS_ROWS * steps->pass->workspace->vocab_stride * sizeof *steps->logits;
}

void steps_give_back_logits(struct steps *steps)
{
    device_pinned_free(steps->device, steps->logits);
    steps->logits = NULL;
}

int steps_take_logits(struct steps *steps)
{
    if (!steps->logits)
        steps->logits = device_pinned(steps->device, steps_logits_bytes(steps));
    return steps->logits ? 0 : -ENOMEM;
}

void steps_deinit(struct steps *steps)
{
    steps_wait(steps); /* a graph that runs is not freed */
    graphs_deinit(&steps->graphs);
    for (uint32_t i = 0; i < MAILBOXES; i++) {
        free(steps->flights[i].sets);
        free(steps->flights[i].results);
        steps->flights[i].sets = NULL;
        steps->flights[i].results = NULL;
    }
}

/* ---- failure ---- */

int steps_fail(struct steps *steps, int code)
{
    if (steps->failed)
        return steps->failed;
    steps->failed = device_verdict(steps->device, &steps->failure);
    if (steps->failed == 0) {
        steps->failed = code;
        if (code == -ETIMEDOUT)
            error_set(&steps->failure, code, "%s has made no progress for %u ms",
                      device_properties(steps->device)->name, device_properties(steps->device)->stall_ms);
        else
            error_set(&steps->failure, code, "%s rejected work: %s", device_properties(steps->device)->name,
                      strerror(-code));
    }
    return steps->failed;
}

int steps_verdict(struct steps *steps, struct error *err)
{
    struct error unused;
    if (!steps->failed && device_verdict(steps->device, &unused) < 0)
        steps_fail(steps, -EIO);
    return steps->failed ? error_set(err, steps->failed, "%s", steps->failure.text) : 0;
}

/* ---- the check ---- */

static int check_blocks(const struct steps *steps, const struct device_slot *slot,
                        const struct backend_row_set *set)
{
    const struct pools *pools = steps->pass->pools;
    const uint32_t n = set->blocks[0].n;
    if (n > steps->slots->on_device.table_size - slot->n_blocks)
        return -EINVAL;
    for (uint32_t g = 0; g < pools->n_groups; g++) {
        const struct backend_blocks *blocks = &set->blocks[g];
        if (blocks->told != slot->n_blocks || blocks->n != n)
            return -EINVAL;
        for (uint32_t i = 0; i < n; i++)
            if (blocks->ids[i] >= pools->groups[g].n_blocks)
                return -EINVAL;
    }
    uint64_t capacity = (uint64_t)(slot->n_blocks + n) * BACKEND_BLOCK_TOKENS;
    return (uint64_t)set->position + set->n_ids > capacity ? -EINVAL : 0;
}

/* Where a set begins, and with which id. */
static int check_place(const struct steps *steps, const struct device_slot *slot,
                       const struct backend_row_set *set)
{
    if (set->allowed && slot->in_flight > 0)
        return -EINVAL; /* a masked sequence is not run ahead */
    if (!set->ids)
        return set->n_ids == 1 && set->position >= slot->position &&
                       (slot->has_last || slot->end != BACKEND_RUNNING)
                   ? 0
                   : -EINVAL;
    if (slot->sampling > 0 || set->position != slot->most)
        return -EINVAL;
    for (uint32_t i = 0; i < set->n_ids; i++)
        if (set->ids[i] < 0 || (uint32_t)set->ids[i] >= steps->pass->model->params.n_vocab)
            return -EINVAL;
    return 0;
}

static bool may_snapshot(const struct state_pool *states, const struct backend_row_set *set)
{
    return set->snapshot_rows <= set->n_ids && set->snapshot < states->n_snapshots;
}

static int check_set(struct steps *steps, const struct backend_row_set *set)
{
    if (set->slot >= steps->slots->on_device.n_slots || set->n_ids == 0)
        return -EINVAL;
    struct device_slot *slot = &steps->slots->slots[set->slot];
    if (!slot->open || slot->spoiled || slot->astray || slot->checked == steps->checks)
        return -EINVAL;
    slot->checked = steps->checks;
    if (!step_samples(set->output) && set->output != BACKEND_OUTPUT_NONE && !set->logits)
        return -EINVAL;
    if (slot->by_history && set->output == BACKEND_SAMPLE_ALL && set->n_ids > 1)
        return -EINVAL;
    if (set->snapshot_rows > 0 && !may_snapshot(&steps->pass->states->pool, set))
        return -EINVAL;
    int r = check_blocks(steps, slot, set);
    return r < 0 ? r : check_place(steps, slot, set);
}

static int check_step(struct steps *steps, const struct backend_step *step)
{
    uint64_t rows = 0, sampled = 0;
    if (steps->submitted - steps->read >= steps_most_flights(steps))
        return -EINVAL;
    steps->checks++;
    for (uint32_t i = 0; i < step->n_sets; i++) {
        int r = check_set(steps, &step->sets[i]);
        if (r < 0)
            return r;
        rows += step->sets[i].n_ids;
        sampled += step_samples(step->sets[i].output) ? step_outputs_of(&step->sets[i]) : 0;
    }
    if (rows == 0 || rows > steps->max_rows)
        return -EINVAL;
    return sampled > steps->max_outputs ? -ENOMEM : 0;
}

/* ---- the description ---- */

/* A description that is being written: its parts in pinned memory, and how far each has come. */
struct writing {
    struct steps *steps;
    struct flight *flight;
    struct step_memory to;
    uint32_t n_rows, n_outputs, n_blocks, n_masks, n_logprobs;
    bool any_ids;
};

static void write_blocks(struct writing *writing, const struct backend_blocks *blocks, struct step_set *to)
{
    to->told = blocks->told;
    to->first_block = writing->n_blocks;
    to->n_blocks = blocks->n;
    for (uint32_t g = 0; g < writing->steps->pass->pools->n_groups && blocks->n > 0; g++) {
        memcpy(writing->to.blocks + writing->n_blocks, blocks[g].ids, blocks->n * sizeof *blocks->ids);
        writing->n_blocks += blocks->n;
    }
}

static void write_mask(struct writing *writing, const struct backend_row_set *set, struct step_set *to)
{
    const size_t words = step_mask_words(writing->steps);
    const uint32_t n = step_samples(set->output) ? step_outputs_of(set) : 0;
    to->first_mask = UINT32_MAX;
    if (!set->allowed || n == 0)
        return;
    if (set->await)
        set->await(set->await_arg); /* they go to the device with the step */
    to->first_mask = writing->n_masks;
    memcpy(writing->flight->masks + writing->n_masks * words, set->allowed, n * words * sizeof *set->allowed);
    writing->n_masks += n;
}

static void write_set(struct writing *writing, const struct backend_row_set *set, uint32_t i)
{
    struct step_set *to = &writing->to.sets[i];
    const struct device_slot *slot = &writing->steps->slots->slots[set->slot];
    const uint32_t n_logprobs = step_samples(set->output) ? slot->n_logprobs : 0;
    *to = (struct step_set){.slot = set->slot,
                            .first_row = writing->n_rows,
                            .n_rows = set->n_ids,
                            .from_slot = set->ids == NULL,
                            .output = set->output,
                            .first_logprob = writing->n_logprobs,
                            .snapshot_rows = set->snapshot_rows,
                            .snapshot = set->snapshot};
    if (set->ids)
        memcpy(writing->to.ids + writing->n_rows, set->ids, set->n_ids * sizeof *set->ids);
    writing->any_ids |= set->ids != NULL;
    write_blocks(writing, set->blocks, to);
    write_mask(writing, set, to);
    writing->flight->sets[i] =
        (struct flight_set){set->slot, set->n_ids, set->output, n_logprobs, writing->n_logprobs, 0, 0};
    writing->n_rows += set->n_ids;
    writing->n_logprobs += n_logprobs * step_outputs_of(set);
}

/* The outputs of the sets that are sampled, or of the others, in their order. */
static void number_outputs(struct writing *writing, const struct backend_step *step, bool sampled)
{
    for (uint32_t i = 0; i < step->n_sets; i++)
        if (step_samples(step->sets[i].output) == sampled) {
            writing->to.sets[i].first_output = writing->n_outputs;
            writing->n_outputs += step_outputs_of(&step->sets[i]);
        }
}

/* What a step is when it is described. */
struct described {
    uint32_t n_rows, n_sampled, n_outputs, n_masks;
    size_t bytes; /* of the description, as far as the last part that has something */
    bool decodes; /* every set is one row that is sampled */
    bool reads;   /* some set is rows of a prompt, and more than one */
    bool repeats; /* DRY bears on some set that is sampled */
    bool greedy;  /* every set that is sampled is greedy */
};

static size_t used_bytes(const struct writing *writing, uint32_t n_sets)
{
    const struct step_offsets *offsets = &writing->steps->offsets;
    if (writing->n_blocks > 0)
        return offsets->blocks + writing->n_blocks * sizeof *writing->to.blocks;
    if (writing->any_ids)
        return offsets->ids + writing->n_rows * sizeof *writing->to.ids;
    return offsets->sets + n_sets * sizeof *writing->to.sets;
}

static struct described describe(struct steps *steps, const struct backend_step *step, struct flight *flight)
{
    struct writing writing = {.steps = steps, .flight = flight};
    struct described described = {.decodes = step->n_sets <= GRAPHS_MOST, .greedy = true};
    place(flight->image, &steps->offsets, &writing.to);
    for (uint32_t i = 0; i < step->n_sets; i++) {
        write_set(&writing, &step->sets[i], i);
        described.decodes &= step->sets[i].n_ids == 1 && step->sets[i].output == BACKEND_SAMPLE_LAST;
        const struct device_slot *slot = &steps->slots->slots[step->sets[i].slot];
        described.repeats |= step_samples(step->sets[i].output) && slot->repeats;
        described.greedy &= !step_samples(step->sets[i].output) || slot->greedy;
        described.reads |= step->sets[i].n_ids > 1 && step->sets[i].output != BACKEND_SAMPLE_ALL;
    }
    number_outputs(&writing, step, true);
    described.n_sampled = writing.n_outputs;
    number_outputs(&writing, step, false);
    described.n_outputs = writing.n_outputs;
    described.n_rows = writing.n_rows;
    described.n_masks = writing.n_masks;
    described.bytes = used_bytes(&writing, step->n_sets);
    *writing.to.step = (struct step){.number = flight->number,
                                     .mailbox = (uint32_t)(flight->number % MAILBOXES),
                                     .n_sets = step->n_sets,
                                     .n_rows = writing.n_rows,
                                     .n_outputs = writing.n_outputs};
    return described;
}

/* ---- submitting ---- */

/* Layers of a step that is not recorded. However many rows only decode, a library does not unpack all weights
 * for them (library_products.h). */
static int queue_layers(const struct steps *steps, struct device_stream *stream, uint32_t n_sets,
                        const struct described *described)
{
    struct pass pass = *steps->pass;
    pass.most_sets = n_sets;
    if (!described->reads)
        pass.large_from = UINT32_MAX;
    return pass_layers(&pass, stream, described->n_rows);
}

/* Of n outputs, of which some may be padding. */
static int queue_sampling(struct steps *steps, struct device_stream *stream, const struct backend_step *step,
                          uint32_t n, const struct described *described)
{
    struct pass pass = *steps->pass;
    pass.sample.greedy = described->greedy;
    if (!steps->host || described->n_sampled == 0)
        return pass_sample(&pass, stream, n);
    int r = pass_sample_ids(&pass, stream, n);
    if (r == 0)
        r = host_sampling_run(steps, step, described->n_sampled);
    return r < 0 ? r : pass_accept(&pass, stream, n);
}

static int queue_step(struct steps *steps, const struct backend_step *step, struct flight *flight,
                      const struct described *described)
{
    struct device_stream *stream = device_stream(steps->device);
    int r = device_copy(stream, steps->memory.step, flight->image, described->bytes);
    if (r == 0 && described->n_masks > 0)
        r = device_copy(stream, steps->masks, flight->masks,
                        (size_t)described->n_masks * step_mask_words(steps) * sizeof *flight->masks);
    if (r == 0 && described->repeats)
        r = kernels_repeats(stream, &steps->slots->on_device, &steps->memory, step->n_sets);
    if (r < 0)
        return r;
    if (described->decodes && steps->host) {
        r = graphs_decode_logits(steps->pass, stream, step->n_sets);
        if (r == 0)
            r = queue_sampling(steps, stream, step, graphs_bucket(step->n_sets), described);
    } else if (described->decodes) {
        r = graphs_decode(&steps->graphs, steps->pass, stream, step->n_sets, described->greedy);
    } else {
        r = queue_layers(steps, stream, step->n_sets, described);
        if (r == 0)
            r = steps_hand_out_logits(steps, step, described->n_sampled, described->n_outputs);
        if (r == 0 && described->n_sampled > 0)
            r = pass_logits(steps->pass, stream, 0, described->n_sampled);
        if (r == 0)
            r = queue_sampling(steps, stream, step, described->n_sampled, described);
    }
    return r < 0 ? r : device_mark(stream, MARK_STEPS + (uint32_t)(flight->number % MAILBOXES));
}

/* What the host knows of the slots from now on. */
static void follow(struct steps *steps, const struct backend_step *step)
{
    for (uint32_t i = 0; i < step->n_sets; i++) {
        const struct backend_row_set *set = &step->sets[i];
        struct device_slot *slot = &steps->slots->slots[set->slot];
        slot->n_blocks += set->blocks[0].n;
        slot->most += set->n_ids;
        slot->in_flight++;
        slot->sampling += step_samples(set->output);
        slot->has_last = step_samples(set->output);
    }
}

int steps_submit(struct steps *steps, const struct backend_step *step, uint64_t *ret_ticket)
{
    if (steps->failed)
        return steps->failed;
    int r = check_step(steps, step);
    if (r < 0)
        return r;
    const uint64_t number = ++steps->submitted;
    struct flight *flight = &steps->flights[number % MAILBOXES];
    flight->number = number;
    flight->waited_ns = 0;
    flight->abandoned = false;
    flight->n_sets = step->n_sets;
    const struct described described = describe(steps, step, flight);
    flight->padding_rows = described.decodes ? graphs_bucket(step->n_sets) - step->n_sets : 0;
    steps->padding_rows += flight->padding_rows;
    follow(steps, step);
    steps->queued = step;
    r = queue_step(steps, step, flight, &described);
    steps->queued = NULL;
    if (r < 0)
        return steps_fail(steps, r);
    *ret_ticket = number;
    return 0;
}

/* ---- reading ---- */

static void take_result(struct steps *steps, const struct flight *flight, uint32_t i)
{
    const struct mailbox *mailbox = &steps->mailboxes[flight->number % MAILBOXES];
    const struct set_result *from = &mailbox->sets[i];
    const struct flight_set *set = &flight->sets[i];
    struct device_slot *slot = &steps->slots->slots[set->slot];
    const bool surplus = slot->end != BACKEND_RUNNING;
    flight->results[i] = (struct backend_result){
        .n_ids = from->n_ids,
        .ids = mailbox->ids + from->first_id,
        .n_accepted = from->n_accepted,
        .logprobs = set->n_logprobs > 0 ? mailbox->logprobs + set->first_logprob : NULL,
        .end = (enum backend_end)from->end};
    slot->in_flight--;
    slot->sampling -= step_samples(set->output);
    if (slot->spoiled)
        return;
    const uint32_t moved = surplus                             ? 0
                           : set->output == BACKEND_SAMPLE_ALL ? from->n_accepted + 1
                                                               : set->n_ids;
    slot->position += moved;
    slot->most -= set->n_ids - moved;
    slot->astray = steps->pass->states->pool.n > 0 && !surplus && moved < set->n_ids;
    slot->end = (enum backend_end)from->end;
}

int steps_poll(struct steps *steps, uint64_t ticket, int timeout_ms,
               const struct backend_result **ret_results, struct error *err)
{
    if (steps->failed)
        return steps_verdict(steps, err);
    if (ticket != steps->read + 1 || ticket > steps->submitted)
        return error_set(err, -EINVAL, "no ticket %llu is open", (unsigned long long)ticket);
    struct flight *flight = &steps->flights[ticket % MAILBOXES];
    const uint64_t begun = clock_ns();
    int r = steps_wait_until(steps, MARK_STEPS + (uint32_t)(ticket % MAILBOXES),
                             steps->mailboxes[ticket % MAILBOXES].number, ticket,
                             begun + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * CLOCK_NS_PER_MS);
    flight->waited_ns += clock_ns() - begun;
    if (r == -EAGAIN && device_stands_still(steps->device, flight->waited_ns))
        r = -ETIMEDOUT;
    if (r == -EAGAIN)
        return r;
    if (r < 0) {
        steps_fail(steps, r);
        return steps_verdict(steps, err);
    }
    steps->read = ticket;
    for (uint32_t i = 0; i < flight->n_sets; i++)
        take_result(steps, flight, i);
    if (flight->abandoned)
        return -ECANCELED;
    *ret_results = flight->results;
    return 0;
}

void steps_facts(const struct steps *steps, struct backend_facts *ret_facts)
{
    *ret_facts = (struct backend_facts){.padding_rows = steps->flights[steps->read % MAILBOXES].padding_rows};
}

void steps_run_eagerly(struct steps *steps, bool eagerly)
{
    steps->graphs.eager = eagerly;
}
