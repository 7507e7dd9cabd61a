/* SPDX-License-Identifier: MIT */
/* To clients.
 *
 * A handler may be in the middle of a session when a send to it fails, so a session in trouble is only
 * marked; the loop closes it at the end of the turn, and its requests are then cancelled or kept, as each of
 * them asked. */

#include "broker/links/client_link.h"

#include <utlist.h>
#include <zmq.h>

#include "common/amount.h"
#include "common/log.h"

/* Its socket, to be used otherwise than to receive. */
static void *router_of(struct client_link *link)
{
    link->news.look = true;
    return link->router;
}

static void give_up(struct client_link *link, struct session *session, int reason)
{
    session->unreachable = reason != OUTBOX_E_FULL;
    session_doom(link->sessions, session);
}

static void send_bytes(struct client_link *link, struct session *session, const struct buffer *bytes)
{
    if (session->doomed)
        return;
    int r = outbox_send(&session->outbox, router_of(link), &session->peer, bytes->data, bytes->len);
    if (r != 0)
        give_up(link, session, r);
    else if (session->outbox.n > 0)
        session_pend(link->sessions, session);
}

void client_link_send(struct client_link *link, struct session *session, const struct message *message)
{
    struct error err = {{0}};
    link->scratch.len = 0;
    if (message_encode_or_say(message, &link->scratch, &err) == 0)
        send_bytes(link, session, &link->scratch);
    else
        log_error("a %s cannot be encoded: %s", message_kind_name(message->kind), err.text);
}

void client_link_send_end(struct client_link *link, struct session *session, const struct request *request)
{
    if (request->end_message.len > 0)
        send_bytes(link, session, &request->end_message);
}

void client_link_probe(struct client_link *link, struct session *session)
{
    if (session->outbox.n == 0) /* else that is tried again anyway */
        client_link_send(link, session, &(struct message){.kind = MESSAGE_PONG});
}

void client_link_send_stranger(struct client_link *link, const struct peer *peer,
                               const struct message *message)
{
    link->scratch.len = 0;
    if (message_encode(message, &link->scratch) == 0)
        outbox_try(router_of(link), peer, link->scratch.data, link->scratch.len);
}

void client_link_flush(struct client_link *link)
{
    struct session *session;
    DL_FOREACH2(link->sessions->pending, session, pending_next)
    {
        int r = 0;
        if (session->outbox.n > 0 && !session->doomed)
            r = outbox_flush(&session->outbox, router_of(link), &session->peer);
        if (r != 0)
            give_up(link, session, r);
    }
}

void client_link_shed(struct client_link *link)
{
    struct session *session;
    size_t n = 0, doomed = 0;
    if (link->credit.waiting <= link->most_unread)
        return;
    DL_COUNT2(link->sessions->pending, session, n, pending_next);
    DL_FOREACH2(link->sessions->pending, session, pending_next)
    {
        if (session->outbox.bytes <= link->most_unread / n)
            continue;
        session_doom(link->sessions, session);
        doomed++;
    }
    log_warn("%s waiting for clients that do not read: %s closed", amount_of_bytes(link->credit.waiting).text,
             amount_of(doomed, "connection").text);
}

void client_link_deinit(struct client_link *link)
{
    buffer_deinit(&link->scratch);
    if (link->router)
        zmq_close(link->router);
    link->router = NULL;
}
