/* SPDX-License-Identifier: MIT */
/* What a client holds: its table of requests, their held frames, random identities, the words of errors.
 *
 * No rules live here: who may change which state is said in session.c and request.c. */

#include "client/lib/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

int state_say(struct quern_error *ret, int code, const struct error *err)
{
    if (ret && err && err->text[0])
        memcpy(ret->text, err->text, sizeof ret->text);
    else if (ret)
        snprintf(ret->text, sizeof ret->text, "%s", strerror(-code));
    return code;
}

uint64_t state_random_u64(void)
{
    uint64_t number = 0;
    /* Up to 256 bytes from the kernel's pool, once seeded, cannot fail or come short. */
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        abort();
    return number;
}

struct id128 state_random_id(void)
{
    struct id128 id;
    if (getrandom(&id, sizeof id, 0) != sizeof id)
        abort();
    return id;
}

struct request *state_find_request(struct quern *client, const struct id128 *id)
{
    struct request *request;
    HASH_FIND(hh, client->requests, id, sizeof *id, request);
    return request && !request->over ? request : NULL;
}

struct request *state_add_request(struct quern *client, struct id128 id, quern_output_fn *fn, void *arg)
{
    struct request *request = calloc(1, sizeof *request);
    if (!request)
        return NULL;
    request->id = id;
    request->fn = fn;
    request->arg = arg;
    request->sent_ns = request->heard_ns = clock_ns();
    HASH_ADD(hh, client->requests, id, sizeof request->id, request);
    if (!request->hh.tbl) {
        free(request);
        return NULL;
    }
    return request;
}

void state_remove_request(struct quern *client, struct request *request)
{
    HASH_DEL(client->requests, request);
    state_drop_held(request);
    buffer_deinit(&request->wire);
    free(request);
}

void state_note_taken(struct quern *client, const struct request *request)
{
    if (request->state != REQUEST_LIVE)
        return;
    if (client->taken.len == 0)
        client->taken_ns = client->now;
    /* Untold, it is only kept for longer. */
    (void)buffer_append(&client->taken, &request->id, sizeof request->id);
}

void state_hold_frame(struct request *request, const void *data, size_t len)
{
    if (request->held_frames >= HELD_MAX_FRAMES || request->held_bytes + len > HELD_MAX_BYTES)
        return; /* the gap it leaves is seen later, and asked for */
    struct held_frame *held = malloc(sizeof *held + len);
    if (!held)
        return;
    held->next = NULL;
    held->len = len;
    memcpy(held->data, data, len);
    if (!request->held)
        request->held_tail = &request->held;
    *request->held_tail = held;
    request->held_tail = &held->next;
    request->held_frames++;
    request->held_bytes += len;
}

struct held_frame *state_take_held(struct request *request)
{
    struct held_frame *held = request->held;
    request->held = NULL;
    request->held_frames = request->held_bytes = 0;
    return held;
}

void state_drop_held(struct request *request)
{
    for (struct held_frame *held = state_take_held(request), *next; held; held = next) {
        next = held->next;
        free(held);
    }
}
