/* SPDX-License-Identifier: MIT */
/* Opening and trimming slots in the order of the stream. */

#include "cuda/host/slots.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/device/wait.h"

_Static_assert(SAMPLING_MAX_BIASES <= STATE_MOST_BIASES, "every list of biases has room in a slot");

static void take_image(struct slot_image *image, struct device_memory *memory, uint32_t n_vocab)
{
    image->state = device_memory_take_pinned(memory, sizeof *image->state);
    image->stop_ids = device_memory_take_pinned(memory, STATE_MOST_STOP_IDS * sizeof *image->stop_ids);
    image->biases = device_memory_take_pinned(memory, STATE_MOST_BIASES * sizeof *image->biases);
    image->uses = device_memory_take_pinned(memory, n_vocab * sizeof *image->uses);
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
    const size_t n_tables = n * shape->n_groups;
    device->states = device_memory_take_zeroed(memory, n * sizeof *device->states);
    device->stop_ids = device_memory_take(memory, n * STATE_MOST_STOP_IDS * sizeof *device->stop_ids);
    device->biases = device_memory_take(memory, n * STATE_MOST_BIASES * sizeof *device->biases);
    device->uses = device_memory_take_zeroed(memory, n * n_vocab * sizeof *device->uses);
    device->tables =
        device_memory_take_zeroed(memory, n_tables * device->table_size * sizeof *device->tables);
    device->mask = device_memory_take(memory, (n_vocab + 31) / 32 * sizeof *device->mask);
    for (uint32_t i = 0; i < SLOTS_IMAGES; i++)
        take_image(&slots->images[i], memory, n_vocab);
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
    const size_t bytes = (n_vocab + 31) / 32 * sizeof *mask;
    int r = next_image(slots, &image);
    if (r < 0)
        return r;
    memcpy(image->uses, mask, bytes);
    r = device_copy(device_stream(slots->device), (void *)(uintptr_t)slots->on_device.mask, image->uses,
                    bytes);
    return r < 0 ? r : close_image(slots, image);
}

/* ---- slots ---- */

static void write_uses(struct token_use *uses, uint32_t n_vocab, const struct backend_slot *params)
{
    memset(uses, 0, n_vocab * sizeof *uses);
    for (uint32_t i = 0; i < params->n_history; i++) {
        int32_t id = params->history[i];
        if (id < 0 || (uint32_t)id >= n_vocab)
            continue;
        if (i < params->n_prompt)
            uses[id].in_prompt = 1;
        else
            uses[id].in_output++;
    }
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

static void write_image(struct slot_image *image, const struct backend_slot *params, uint32_t n_vocab)
{
    const struct sampling *sampling = &params->sampling;
    *image->state =
        (struct slot_state){.position = params->position,
                            .last_id = -1,
                            .end = BACKEND_RUNNING,
                            .end_position = params->end_position,
                            .n_stop_ids = params->n_stop_ids,
                            .n_biases = write_biases(image->biases, n_vocab, &sampling->logit_bias),
                            .n_logprobs = params->n_logprobs,
                            .keeps_uses = sampling_needs_uses(sampling),
                            .top_k = sampling->top_k,
                            .temperature = (float)sampling->temperature,
                            .repetition_penalty = (float)sampling->repetition_penalty,
                            .presence_penalty = (float)sampling->presence_penalty,
                            .frequency_penalty = (float)sampling->frequency_penalty,
                            .top_p = sampling->top_p,
                            .min_p = sampling->min_p,
                            .seed = sampling->seed};
    for (uint32_t i = 0; i < params->n_stop_ids; i++)
        image->stop_ids[i] = params->stop_ids[i];
    if (image->state->keeps_uses)
        write_uses(image->uses, n_vocab, params);
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

int device_slots_open(struct device_slots *slots, uint32_t slot, const struct backend_slot *params)
{
    struct slot_image *image;
    if (slot >= slots->on_device.n_slots || slots->slots[slot].open ||
        params->n_stop_ids > STATE_MOST_STOP_IDS || params->n_logprobs > SLOTS_MOST_LOGPROBS ||
        params->sampling.logit_bias.n > STATE_MOST_BIASES || params->position % BACKEND_BLOCK_TOKENS != 0)
        return -EINVAL;
    int r = next_image(slots, &image);
    if (r < 0)
        return r;
    write_image(image, params, slots->on_device.n_vocab);
    r = queue_image(slots, image, slot);
    if (r == 0)
        r = close_image(slots, image);
    if (r < 0)
        return r;
    slots->slots[slot] = (struct device_slot){.open = true,
                                              .position = params->position,
                                              .most = params->position,
                                              .n_logprobs = params->n_logprobs};
    return 0;
}

void device_slots_close(struct device_slots *slots, uint32_t slot)
{
    if (slot < slots->on_device.n_slots)
        slots->slots[slot] = (struct device_slot){0};
}

int device_slots_trim(struct device_slots *slots, uint32_t at, uint32_t position)
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
    int r = next_image(slots, &image);
    if (r < 0)
        return r;
    *image->state = (struct slot_state){.position = position, .last_id = -1, .end = BACKEND_RUNNING};
    r = device_copy(device_stream(slots->device), &slots->on_device.states[at], image->state,
                    offsetof(struct slot_state, end_position));
    if (r == 0)
        r = close_image(slots, image);
    if (r < 0)
        return r;
    uint32_t keep = backend_blocks_for(position);
    slot->position = slot->most = position;
    slot->n_blocks = keep < slot->n_blocks ? keep : slot->n_blocks;
    slot->has_last = false;
    slot->end = BACKEND_RUNNING;
    return 0;
}
