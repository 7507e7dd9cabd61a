/* SPDX-License-Identifier: MIT */
/* Frames are encoded straight into one growing buffer, so that keeping one costs no allocation. In normal
 * service the broker acknowledges everything within milliseconds and the buffer starts over at its front;
 * else the acknowledged part is squeezed out once it is the larger one, which moves each byte once at most.
 *
 * Full is a state, not a limit of the ring: what must still be said then (ends of requests) is kept too. */

#include "worker/link/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_ENTRIES    1024
#define SQUEEZE_AT_BYTES 65536

struct window_entry {
    size_t at; /* in bytes */
    uint32_t len;
};

void window_deinit(struct window *window)
{
    buffer_deinit(&window->bytes);
    free(window->entries);
    *window = (struct window){0};
}

static int grow_ring(struct window *window)
{
    uint64_t cap = window->cap ? window->cap * 2 : LEAST_ENTRIES;
    struct window_entry *entries = malloc(cap * sizeof *entries);
    if (!entries)
        return -ENOMEM;
    for (uint64_t wseq = window->acked + 1; wseq <= window->last; wseq++)
        entries[wseq % cap] = window->entries[wseq % window->cap];
    free(window->entries);
    window->entries = entries;
    window->cap = cap;
    return 0;
}

int window_add(struct window *window, const uint8_t topic[PROTO_TOPIC_BYTES], struct message *frame)
{
    if (window_kept(window) == window->cap && grow_ring(window) < 0)
        return -ENOMEM;
    size_t at = window->bytes.len;
    int r = buffer_append(&window->bytes, topic, PROTO_TOPIC_BYTES);
    if (r < 0)
        return r;
    frame->frame.wseq = window->last + 1;
    r = message_encode(frame, &window->bytes);
    if (r < 0) {
        window->bytes.len = at;
        return r;
    }
    window->last++;
    window->entries[window->last % window->cap] =
        (struct window_entry){at, (uint32_t)(window->bytes.len - at)};
    return 0;
}

bool window_get(const struct window *window, uint64_t wseq, struct bytes *ret_topic,
                struct bytes *ret_payload)
{
    if (wseq <= window->acked || wseq > window->last)
        return false;
    const struct window_entry *entry = &window->entries[wseq % window->cap];
    const uint8_t *bytes = window->bytes.data + entry->at;
    *ret_topic = (struct bytes){bytes, PROTO_TOPIC_BYTES};
    *ret_payload = (struct bytes){bytes + PROTO_TOPIC_BYTES, entry->len - PROTO_TOPIC_BYTES};
    return true;
}

static void squeeze(struct window *window)
{
    size_t gone = window->gone;
    buffer_consume(&window->bytes, gone);
    for (uint64_t wseq = window->acked + 1; wseq <= window->last; wseq++)
        window->entries[wseq % window->cap].at -= gone;
    window->gone = 0;
}

void window_ack(struct window *window, uint64_t wseq)
{
    if (wseq <= window->acked || wseq > window->last)
        return;
    window->acked = wseq;
    if (wseq == window->last) {
        window->bytes.len = window->gone = 0;
        return;
    }
    window->gone = window->entries[(wseq + 1) % window->cap].at;
    if (window->gone > SQUEEZE_AT_BYTES && window->gone > window->bytes.len / 2)
        squeeze(window);
}
