/* SPDX-License-Identifier: MIT */
/* What a client holds: its table of requests, their held frames, random identities, the words of errors.
 *
 * No rules live here: who may change which state is said in session.c and request.c. */

#include "client/lib/core/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <utlist.h>

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
    state_request_settled(client, request);
    state_drop_encoded(request);
    state_drop_held(request);
    free(request->end_text);
    free(request->end_stop);
    free(request);
}

struct quern_encoded *quern_encoded_free(struct quern_encoded *encoded)
{
    if (encoded && --encoded->refs == 0) {
        buffer_deinit(&encoded->bytes);
        free(encoded);
    }
    return NULL;
}

size_t quern_encoded_bytes(const struct quern_encoded *encoded)
{
    return encoded->bytes.len;
}

void state_drop_encoded(struct request *request)
{
    if (!request->sender)
        request->encoded = quern_encoded_free(request->encoded);
}

/* ---- what the pool has not accepted ---- */

/* The tenant's sender, made if need be; NULL when out of memory. */
static struct sender *sender_for(struct quern *client, const char *tenant)
{
    struct sender *sender;
    HASH_FIND_STR(client->senders, tenant, sender);
    if (sender || !(sender = calloc(1, sizeof *sender)))
        return sender;
    strcpy(sender->tenant, tenant);
    HASH_ADD_STR(client->senders, tenant, sender);
    if (!sender->hh.tbl) {
        free(sender);
        return NULL;
    }
    return sender;
}

size_t state_bytes_to_count(const struct quern *client, const struct quern_encoded *encoded)
{
    return encoded->counted_by == client ? 0 : encoded->bytes.len;
}

static void count(struct quern *client, struct sender *sender, size_t more, size_t less)
{
    sender->bytes = sender->bytes + more - less;
    client->unaccepted = client->unaccepted + more - less;
}

/* Counts the request among its tenant's. 0 or -ENOMEM. */
static int enter(struct quern *client, struct request *request)
{
    struct quern_encoded *encoded = request->encoded;
    struct sender *sender = sender_for(client, encoded->tenant);
    if (!sender)
        return -ENOMEM;
    request->sender = sender;
    sender->n++;
    count(client, sender, sizeof *request + state_bytes_to_count(client, encoded), 0);
    request->counts_alone = encoded->counted_by && encoded->counted_by != client;
    if (request->counts_alone)
        return 0;
    encoded->counted_by = client;
    encoded->pending++;
    return 0;
}

/* The bytes that count no more with it. */
static size_t uncount(struct request *request)
{
    struct quern_encoded *encoded = request->encoded;
    if (request->counts_alone)
        return encoded->bytes.len;
    if (--encoded->pending > 0)
        return 0;
    encoded->counted_by = NULL;
    return encoded->bytes.len;
}

static void leave_unsent(struct quern *client, struct request *request)
{
    struct sender *sender = request->sender;
    if (!request->unsent)
        return;
    request->unsent = false;
    DL_DELETE2(sender->unsent, request, unsent_prev, unsent_next);
    if (!sender->unsent)
        DL_DELETE(client->turns, sender);
}

static void leave_way(struct quern *client, struct request *request)
{
    if (client->parting == request)
        client->parting = NULL;
    client->under_way -= request->under_way;
    request->under_way = 0;
}

int state_request_waits(struct quern *client, struct request *request)
{
    int r = request->sender ? 0 : enter(client, request);
    request->state = REQUEST_NEW;
    if (r < 0 || request->unsent)
        return r;
    struct sender *sender = request->sender;
    leave_way(client, request);
    if (!sender->unsent)
        DL_APPEND(client->turns, sender);
    DL_APPEND2(sender->unsent, request, unsent_prev, unsent_next);
    request->unsent = true;
    return 0;
}

void state_request_sent(struct quern *client, struct request *request)
{
    size_t len = request->encoded->bytes.len;
    leave_unsent(client, request);
    client->under_way -= request->under_way;
    request->state = REQUEST_SENT;
    request->was_sent = true;
    request->under_way = len > BRIEF_BYTES ? len : 0;
    client->under_way += request->under_way;
}

void state_request_settled(struct quern *client, struct request *request)
{
    struct sender *sender = request->sender;
    leave_way(client, request);
    if (!sender)
        return;
    leave_unsent(client, request);
    count(client, sender, 0, sizeof *request + uncount(request));
    request->sender = NULL;
    client->room_made = client->room_wanted;
    if (--sender->n > 0)
        return;
    HASH_DEL(client->senders, sender);
    free(sender);
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
