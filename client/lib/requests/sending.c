/* SPDX-License-Identifier: MIT */
/* Requests on their way to the pool.
 *
 *   waiting, by tenant ──its turn, and room──▶ under way ──accepted or refused──▶ no concern of this file
 *        ▲────────────the session was opened again──┘
 *
 * All messages to the broker go through one socket, in order. If many large ones were put there at once,
 * everything after them would be late, pings included, and libzmq would hold a copy of each: a prompt of
 * megabytes that is sent for a hundred outputs would be in memory a hundred times. So only a few are under
 * way at a time, and tenants take turns. Brief messages are sent at once, behind those of their own tenant.
 */

#include "client/lib/requests/sending.h"

#include <errno.h>

#include <utlist.h>

#include "client/lib/requests/delivery.h"
#include "client/lib/core/outgoing.h"

/* ---- room ---- */

int sending_check(struct quern *client, const struct quern_encoded *encoded, struct error *err)
{
    struct sender *sender;
    HASH_FIND_STR(client->senders, encoded->tenant, sender);
    size_t had = sender ? sender->bytes : 0;
    size_t more = sizeof(struct request) + state_bytes_to_count(client, encoded);
    size_t left = client->unaccepted < UNACCEPTED_MAX_BYTES ? UNACCEPTED_MAX_BYTES - client->unaccepted : 0;
    if (more <= left && had <= left - more && more <= left - more - had)
        return 0;
    client->room_wanted = true;
    client->room_made = false;
    return error_set(
        err, -EAGAIN,
        "too many unsent requests: %zu bytes that the pool has not yet accepted; no room for %zu more", had,
        more);
}

bool sending_has_room_again(struct quern *client)
{
    bool made = client->room_made;
    client->room_wanted &= !made;
    client->room_made = false;
    return made;
}

static bool is_brief(const struct request *request)
{
    return request->encoded->bytes.len <= BRIEF_BYTES;
}

/* Whether it may be sent now. With nothing else under way it always may. */
static bool may_go(const struct quern *client, const struct request *request)
{
    if (client->parting && outgoing_in_parts(client, request->encoded->bytes.len))
        return false;
    size_t piped = client->piped;
    size_t before = client->under_way > piped ? client->under_way : piped;
    return is_brief(request) || before == 0 || before + request->encoded->bytes.len <= UNDER_WAY_MAX_BYTES;
}

bool sending_is_through(const struct quern *client, const struct request *request)
{
    return is_brief(request) || client->piped == 0;
}

/* ---- parts ---- */

/* Parts that libzmq holds before more are made. */
#define PARTS_AHEAD_BYTES (UNDER_WAY_MAX_BYTES / 2)

int sending_send(struct quern *client, struct request *request, struct error *err)
{
    const size_t len = request->encoded->bytes.len;
    int r = outgoing_check_generate(client, len, err);
    if (r < 0 || !outgoing_in_parts(client, len))
        return r < 0 ? r : outgoing_generate(client, request, err);
    if (client->parting && client->parting != request)
        return error_set(err, -EAGAIN, "another request is being sent in parts");
    request->parts_sent = 0;
    client->parting = request;
    return 0;
}

/* One that was cancelled before all of it was out. The pool gives back what it has, and answers nothing that
 * is waited for. */
static void end_parting(struct quern *client)
{
    struct request *request = client->parting;
    if (!request || !request->cancel_wanted || request->whole_sent)
        return;
    outgoing_cancel(client, request, NULL);
    delivery_set_end(request, &(struct ending){.reason = END_CANCELLED});
    delivery_close(client, request);
}

/* If the socket is full or out of memory, the next round tries again. */
static void send_parts(struct quern *client)
{
    struct request *request;
    while ((request = client->parting) && client->state == SESSION_OPEN &&
           client->piped <= PARTS_AHEAD_BYTES) {
        if (outgoing_part(client, request, NULL) < 0)
            return;
        request->sent_ns = request->heard_ns = client->now;
        if (request->parts_sent < request->encoded->bytes.len)
            continue;
        request->whole_sent = true;
        client->parting = NULL;
    }
}

/* ---- turns ---- */

static int send_it(struct quern *client, struct request *request, struct error *err)
{
    int r = sending_send(client, request, err);
    request->sent_ns = request->heard_ns = client->now;
    if (r == 0)
        state_request_sent(client, request);
    return r;
}

int sending_begin(struct quern *client, struct request *request, struct error *err)
{
    const struct sender *sender = request->sender;
    bool alone = client->turns == sender && !sender->next;
    if (client->state != SESSION_OPEN || sender->unsent != request || (!alone && !is_brief(request)) ||
        !may_go(client, request))
        return 0;
    int r = send_it(client, request, err);
    send_parts(client);
    return r == -EAGAIN ? 0 : r;
}

bool sending_end_unwanted(struct quern *client, struct request *request)
{
    if (!request->unsent || request->was_sent || !request->cancel_wanted)
        return false;
    delivery_set_end(request, &(struct ending){.reason = END_CANCELLED});
    delivery_close(client, request);
    return true;
}

/* Sends the first request of the tenant whose turn it is. If the socket is full or out of memory, the next
 * round tries again. False: nothing can be sent now. */
static bool send_next(struct quern *client)
{
    struct sender *sender = client->turns;
    struct error err = {0};
    if (!sender || client->state != SESSION_OPEN)
        return false;
    struct request *request = sender->unsent;
    if (sending_end_unwanted(client, request))
        return true;
    if (!may_go(client, request))
        return false;
    int r = send_it(client, request, &err);
    if (r == -EMSGSIZE) { /* the pool takes less than it did, or than was assumed before it had said */
        delivery_fail(client, request, proto_error_name(PROTO_TOO_LONG), bytes_of_string(err.text), 0);
        return true;
    }
    if (r == 0 && client->turns == sender) { /* it has more */
        DL_DELETE(client->turns, sender);
        DL_APPEND(client->turns, sender);
    }
    return r == 0;
}

void sending_go_on(struct quern *client)
{
    end_parting(client);
    send_parts(client);
    while (send_next(client))
        ;
    send_parts(client);
}
