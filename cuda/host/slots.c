/* SPDX-License-Identifier: MIT */
/* Opening and trimming slots in the order of the stream. */

#include "cuda/host/slots.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/device/wait.h"
#include "engine/sampling/dry.h"

_Static_assert(SAMPLING_MAX_BIASES <= STATE_MOST_BIASES, "every list of biases has room in a slot");

static size_t mask_bytes(uint32_t n_vocab)
{
    return (n_vocab + 31) / 32 * sizeof(uint32_t);
}

static void take_image(struct slot_image *image, struct device_memory *memory, uint32_t n_vocab,
                       uint32_t n_history)
{
    image->state = device_memory_take_pinned(memory, sizeof *image->state);
    image->stop_ids = device_memory_take_pinned(memory, STATE_MOST_STOP_IDS * sizeof *image->stop_ids);
    image->biases = device_memory_take_pinned(memory, STATE_MOST_BIASES * sizeof *image->biases);
    image->uses = device_memory_take_pinned(memory, n_vocab * sizeof *image->uses);
    image->history = device_memory_take_pinned(memory, n_history * sizeof *image->history);
    image->sequences = device_memory_take_pinned(memory, sizeof *image->sequences);
    image->breakers = device_memory_take_pinned(memory, mask_bytes(n_vocab));
}

int device_slots_init(struct device_slots *slots, struct device_memory *memory,
                      const struct slots_shape *shape)
{
    struct slots *device = &slots->on_device;
    const size_t n = shape->n_slots;
    const uint32_t n_vocab = shape->n_vocab;
    *slots = (struct device_slots){.device = memory->device};
    device->n_slots = shape->n_slots;
    device->n_groups = shape->n_groups;
    device->n_vocab = n_vocab;
    device->table_size = backend_blocks_for(shape->n_context);
    device->n_history = device->table_size * BACKEND_BLOCK_TOKENS;
    const size_t n_tables = n * shape->n_groups;
    device->states = device_memory_take_zeroed(memory, n * sizeof *device->states);
    device->stop_ids = device_memory_take(memory, n * STATE_MOST_STOP_IDS * sizeof *device->stop_ids);
    device->biases = device_memory_take(memory, n * STATE_MOST_BIASES * sizeof *device->biases);
    device->uses = device_memory_take_zeroed(memory, n * n_vocab * sizeof *device->uses);
    device->history = device_memory_take(memory, n * device->n_history * sizeof *device->history);
    device->sequences = device_memory_take(memory, n * sizeof *device->sequences);
    device->breakers = device_memory_take(memory, n * mask_bytes(n_vocab));
    device->tables =
        device_memory_take_zeroed(memory, n_tables * device->table_size * sizeof *device->tables);
    device->mask = device_memory_take(memory, mask_bytes(n_vocab));
    for (uint32_t i = 0; i < SLOTS_IMAGES; i++)
        take_image(&slots->images[i], memory, n_vocab, device->n_history);
    if (!memory->device)
        return 0;
    slots->slots = calloc(n, sizeof *slots->slots);
    return slots->slots ? 0 : -ENOMEM;
}

void device_slots_deinit(struct device_slots *slots)
{
    free(slots->slots);
    slots->slots = NULL;
}

/* ---- images ---- */

/* The next image, once the device is done with what it held. */
static int next_image(struct device_slots *slots, struct slot_image **ret_image)
{
    struct slot_image *image = &slots->images[slots->next_image];
    int r = image->queued ? device_wait_due(slots->device, MARK_IMAGES + slots->next_image) : 0;
    if (r < 0)
        return r;
    image->queued = false;
    *ret_image = image;
    return 0;
}

/* What was queued of it is all: the image is not touched before the mark behind it is reached. */
static int close_image(struct device_slots *slots, struct slot_image *image)
{
    image->queued = true;
    int r = device_mark(device_stream(slots->device), MARK_IMAGES + slots->next_image);
    slots->next_image = (slots->next_image + 1) % SLOTS_IMAGES;
    return r;
}

int device_slots_set_mask(struct device_slots *slots, const uint32_t *mask)
{
    struct slot_image *image;
    const uint32_t n_vocab = slots->on_device.n_vocab;
    const size_t bytes = mask_bytes(n_vocab);
    int r = next_image(slots, &image);
    if (r < 0)
        return r;
    memcpy(image->uses, mask, bytes);
    r = device_copy(device_stream(slots->device), (void *)(uintptr_t)slots->on_device.mask, image->uses,
                    bytes);
    return r < 0 ? r : close_image(slots, image);
}

/* ---- slots ---- */

static void write_uses(struct token_use *uses, uint32_t n_vocab, const struct backend_slot *params,
                       uint32_t window)
{
    memset(uses, 0, n_vocab * sizeof *uses);
    for (uint32_t i = params->n_history > window ? params->n_history - window : 0; i < params->n_history;
         i++) {
        int32_t id = params->history[i];
        if (id < 0 || (uint32_t)id >= n_vocab)
            continue;
        if (i < params->n_prompt)
            uses[id].in_prompt = 1;
        else
            token_use_count(&uses[id]);
    }
}

static void add_sequences(struct slot_sequences *to, const struct id_sequences *list, uint32_t *len)
{
    for (size_t at = 0; at < list->len; at += 1 + (size_t)list->items[at]) {
        const size_t n = 1 + (size_t)list->items[at];
        to->starts[to->n++] = *len;
        memcpy(to->items + *len, list->items + at, n * sizeof *to->items);
        *len += (uint32_t)n;
    }
}

static void write_sequences(struct slot_sequences *to, const struct sampling *sampling)
{
    uint32_t len = 0;
    to->n = 0;
    add_sequences(to, &sampling->bad_words, &len);
    to->n_bad_words = to->n;
    add_sequences(to, &sampling->dry_breakers.sequences, &len);
}

/* What looks at ids in their order. Ids outside the vocabulary are in no history. */
static void write_history(struct slot_image *image, const struct backend_slot *params, uint32_t n_vocab)
{
    const struct dry_breakers *breakers = &params->sampling.dry_breakers;
    const size_t bytes = mask_bytes(n_vocab), given = breakers->n_words * sizeof *breakers->mask;
    memset(image->breakers, 0, bytes);
    if (given > 0)
        memcpy(image->breakers, breakers->mask, given < bytes ? given : bytes);
    if (params->n_history > 0)
        memcpy(image->history, params->history, params->n_history * sizeof *image->history);
    write_sequences(image->sequences, &params->sampling);
}

/* What a list says twice of an id is added up, in its order; ids that are none say nothing. */
static uint32_t write_biases(struct slot_bias *biases, uint32_t n_vocab, const struct logit_bias_list *list)
{
    uint32_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct logit_bias *item = &list->items[i];
        uint32_t at = 0;
        if (item->id < 0 || (uint32_t)item->id >= n_vocab)
            continue;
        while (at < n && biases[at].id != item->id)
            at++;
        if (at == n)
            biases[n++] = (struct slot_bias){item->id, 0};
        biases[at].bias += item->bias;
    }
    return n;
}

/* Each id once: several threads of a kernel look at them, and none writes where another does. */
static uint32_t write_stop_ids(int32_t *stop_ids, const struct backend_slot *params)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < params->n_stop_ids; i++) {
        uint32_t at = 0;
        while (at < n && stop_ids[at] != params->stop_ids[i])
            at++;
        stop_ids[at] = params->stop_ids[i];
        n += at == n;
    }
    return n;
}

/* Ids that the last n of a parameter means. */
static uint32_t last_n(int32_t n)
{
    return n < 0 ? UINT32_MAX : (uint32_t)n;
}

static void write_image(struct slot_image *image, const struct backend_slot *params, uint32_t n_vocab)
{
    const struct sampling *sampling = &params->sampling;
    const bool penalizes = sampling->repeat_last_n != 0;
    const bool by_history = sampling_needs_history(sampling);
    *image->state =
        (struct slot_state){.position = params->position,
                            .last_id = -1,
                            .end = BACKEND_RUNNING,
                            .end_position = params->end_position,
                            .n_stop_ids = write_stop_ids(image->stop_ids, params),
                            .n_biases = write_biases(image->biases, n_vocab, &sampling->logit_bias),
                            .n_logprobs = params->n_logprobs,
                            .keeps_uses = sampling_needs_uses(sampling) || by_history,
                            .keeps_history = by_history,
                            .top_k = (uint32_t)sampling->top_k,
                            .temperature = (float)sampling->temperature,
                            .repetition_penalty = penalizes ? (float)sampling->repetition_penalty : 1,
                            .presence_penalty = penalizes ? (float)sampling->presence_penalty : 0,
                            .frequency_penalty = penalizes ? (float)sampling->frequency_penalty : 0,
                            .top_p = sampling->top_p,
                            .min_p = sampling->min_p,
                            .seed = sampling->seed,
                            .top_n_sigma = sampling->top_n_sigma,
                            .typical_p = sampling->typical_p,
                            .xtc_probability = sampling->xtc_probability,
                            .xtc_threshold = sampling->xtc_threshold,
                            .dynatemp_middle = sampling->temperature,
                            .dynatemp_range = sampling->dynatemp_range,
                            .dynatemp_exponent = sampling->dynatemp_exponent,
                            .dry_multiplier = sampling->dry_multiplier,
                            .dry_base = sampling->dry_base,
                            .dry_allowed = (uint32_t)sampling->dry_allowed_length,
                            .dry_last = dry_is_on(sampling) ? last_n(sampling->dry_penalty_last_n) : 0,
                            .window = penalizes && by_history ? last_n(sampling->repeat_last_n) : UINT32_MAX,
                            .n_prompt = params->n_prompt,
                            .has_bad_words = sampling->bad_words.n > 0,
                            .stops_from = params->stops_from};
    if (image->state->keeps_uses)
        write_uses(image->uses, n_vocab, params, image->state->window);
    if (by_history)
        write_history(image, params, n_vocab);
}

static int queue_history(struct device_slots *slots, const struct slot_image *image, uint32_t slot,
                         uint32_t n_history)
{
    const struct slots *device = &slots->on_device;
    struct device_stream *stream = device_stream(slots->device);
    const size_t bytes = mask_bytes(device->n_vocab);
    int r = device_copy(stream, &device->sequences[slot], image->sequences, sizeof *image->sequences);
    if (r == 0)
        r = device_copy(stream, (uint8_t *)device->breakers + slot * bytes, image->breakers, bytes);
    return r < 0 || n_history == 0 ? r
                                   : device_copy(stream, device->history + (size_t)slot * device->n_history,
                                                 image->history, n_history * sizeof *image->history);
}

static int queue_image(struct device_slots *slots, const struct slot_image *image, uint32_t slot)
{
    const struct slots *device = &slots->on_device;
    const struct slot_state *state = image->state;
    struct device_stream *stream = device_stream(slots->device);
    const size_t at = slot;
    int r = device_copy(stream, &device->states[slot], state, sizeof *state);
    if (r == 0 && state->n_stop_ids > 0)
        r = device_copy(stream, device->stop_ids + at * STATE_MOST_STOP_IDS, image->stop_ids,
                        state->n_stop_ids * sizeof *image->stop_ids);
    if (r == 0 && state->n_biases > 0)
        r = device_copy(stream, device->biases + at * STATE_MOST_BIASES, image->biases,
                        state->n_biases * sizeof *image->biases);
    if (r == 0 && state->keeps_uses)
        r = device_copy(stream, device->uses + at * device->n_vocab, image->uses,
                        device->n_vocab * sizeof *image->uses);
    return r;
}

/* As path_of of sample.cu. */
static bool is_greedy(const struct slot_state *state)
{
    return (state->temperature == 0 || state->top_k == 1) && state->n_logprobs == 0;
}

int device_slots_open(struct device_slots *slots, uint32_t slot, const struct backend_slot *params)
{
    struct slot_image *image;
    if (slot >= slots->on_device.n_slots || slots->slots[slot].open ||
        params->n_stop_ids > STATE_MOST_STOP_IDS || params->n_logprobs > SLOTS_MOST_LOGPROBS ||
        params->sampling.logit_bias.n > STATE_MOST_BIASES || params->n_history > slots->on_device.n_history ||
        (slots->states->pool.n > 0 && params->position % BACKEND_BLOCK_TOKENS != 0))
        return -EINVAL;
    int r = next_image(slots, &image);
    if (r < 0)
        return r;
    write_image(image, params, slots->on_device.n_vocab);
    r = queue_image(slots, image, slot);
    if (r == 0 && image->state->keeps_history)
        r = queue_history(slots, image, slot, params->n_history);
    if (r == 0)
        r = params->position > 0
                ? device_states_restore(slots->states, device_stream(slots->device), slot, params->snapshot)
                : device_states_clear(slots->states, device_stream(slots->device), slot);
    if (r == 0)
        r = close_image(slots, image);
    if (r < 0)
        return r;
    slots->slots[slot] = (struct device_slot){.open = true,
                                              .position = params->position,
                                              .most = params->position,
                                              .by_history = image->state->keeps_history,
                                              .repeats = image->state->dry_last > 0,
                                              .greedy = is_greedy(image->state),
                                              .n_logprobs = params->n_logprobs};
    return 0;
}

void device_slots_close(struct device_slots *slots, uint32_t slot)
{
    if (slot < slots->on_device.n_slots)
        slots->slots[slot] = (struct device_slot){0};
}

/* Queues what a trim does to the slot's state, where there is one; -EINVAL: nothing leads back to what it was
 * there. */
static int trim_state(const struct device_slots *slots, uint32_t at, uint32_t position, uint32_t snapshot)
{
    const struct state_pool *pool = &slots->states->pool;
    const struct device_slot *slot = &slots->slots[at];
    struct device_stream *stream = device_stream(slots->device);
    if (pool->n == 0 || (position == slot->position && !slot->astray))
        return 0;
    if (position == 0)
        return device_states_clear(slots->states, stream, at);
    return snapshot < pool->n_snapshots ? device_states_restore(slots->states, stream, at, snapshot)
                                        : -EINVAL;
}

int device_slots_trim(struct device_slots *slots, uint32_t at, uint32_t position, uint32_t snapshot)
{
    /* What a trim changes stands at the front of a state, in this order. */
    _Static_assert(offsetof(struct slot_state, position) == 0 && offsetof(struct slot_state, last_id) == 4 &&
                       offsetof(struct slot_state, end) == 8,
                   "a trim is one copy");
    struct slot_image *image;
    if (at >= slots->on_device.n_slots)
        return 0;
    struct device_slot *slot = &slots->slots[at];
    if (!slot->open || slot->spoiled || slot->in_flight > 0 || position > slot->position)
        return 0;
    int r = trim_state(slots, at, position, snapshot);
    if (r == -EINVAL) {
        slot->spoiled = true;
        return 0;
    }
    if (r < 0)
        return r;
    r = next_image(slots, &image);
    if (r < 0)
        return r;
    *image->state = (struct slot_state){.position = position, .last_id = -1, .end = BACKEND_RUNNING};
    r = device_copy(device_stream(slots->device), &slots->on_device.states[at], image->state,
                    offsetof(struct slot_state, end_position));
    if (r == 0)
        r = close_image(slots, image);
    if (r < 0)
        return r;
    slot->astray = false;
    uint32_t keep = backend_blocks_for(position);
    slot->position = slot->most = position;
    slot->n_blocks = keep < slot->n_blocks ? keep : slot->n_blocks;
    slot->has_last = false;
    slot->end = BACKEND_RUNNING;
    return 0;
}
