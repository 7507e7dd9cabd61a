/* SPDX-License-Identifier: MIT */
/* The client's loop: what has come, then the timers.
 *
 * quern_dispatch takes what both sockets have and returns as soon as a callback was made. There is no thread:
 * no callback is ever made outside of a call, and whoever does not call is not looked after, which the pool
 * notices (its lease) and the timers forgive. */

#include "client/lib/loop.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "client/lib/incoming.h"
#include "client/lib/question.h"
#include "client/lib/requests/request.h"
#include "client/lib/requests/sending.h"
#include "client/lib/session.h"

#define TIMERS_NS    (20 * CLOCK_NS_PER_MS) /* how often timers are looked at */
#define PASS_NS      2000                 /* for each request: the least between two looks at those of all */
#define FEW_REQUESTS 256                  /* up to so many are looked at each time */
#define ABSENT_NS    (2 * CLOCK_NS_PER_S) /* without a call */

/* Every dispatch that finds nothing yet runs the timers. Those of thousands of requests would cost more than
 * what comes. */
static void run_timers_of_requests(struct quern *client)
{
    const size_t n = quern_active(client);
    const uint64_t least_ns = n > FEW_REQUESTS ? n * PASS_NS : 0;
    if (client->now - client->passed_ns < (least_ns < TIMERS_NS ? least_ns : TIMERS_NS))
        return;
    client->passed_ns = client->now;
    requests_timers(client);
}

static void run_timers(struct quern *client)
{
    /* Whoever did not call for a while has no right to call the broker silent, nor slow to open. */
    if (client->now - client->timers_ns > ABSENT_NS)
        client->heard_ns = client->closed_ns = client->now;
    client->timers_ns = client->now;
    session_timers(client);
    run_timers_of_requests(client);
    questions_timers(client);
}

static bool must_look(const struct quern *client)
{
    return client->dealer_news.look || client->stream_news.look;
}

int loop_round(struct quern *client, int wait_ms)
{
    struct pollfd items[3] = {socket_news_item(&client->dealer_news),
                              socket_news_item(&client->stream_news),
                              {.fd = client->watched, .events = POLLIN}};
    if (client->state == SESSION_BROKEN)
        return client->broken;
    int before = client->delivered;
    bool interrupted = poll(items, 3, must_look(client) ? 0 : wait_ms) < 0 && errno == EINTR && wait_ms > 0;
    client->seen = items[2].revents != 0;
    client->now = clock_ns();
    socket_news_polled(&client->dealer_news, &items[0]);
    socket_news_polled(&client->stream_news, &items[1]);
    incoming_take(client);
    sending_go_on(client);
    if (client->now - client->timers_ns >= TIMERS_NS || client->delivered == before)
        run_timers(client);
    if (client->state == SESSION_BROKEN)
        return client->broken;
    return interrupted ? -EINTR : 0;
}

int loop_refuse_inside(const struct quern *client, struct quern_error *ret_err)
{
    struct error err = {0};
    if (!client->dispatching)
        return 0;
    error_set(&err, 0, "functions that wait cannot be called inside a callback");
    return state_say(ret_err, -EBUSY, &err);
}

int quern_dispatch(struct quern *client, int timeout_ms, struct quern_error *ret_err)
{
    int r = loop_refuse_inside(client, ret_err);
    if (r < 0)
        return r;
    client->dispatching = true;
    client->delivered = 0;
    uint64_t start = clock_ns();
    r = loop_round(client, 0);
    while (r == 0 && client->delivered == 0 && !client->seen && !sending_has_room_again(client)) {
        /* In short waits, for the timers of requests and of the opening. */
        int64_t left =
            timeout_ms < 0 ? INT64_MAX : timeout_ms - (int64_t)((clock_ns() - start) / CLOCK_NS_PER_MS);
        if (left <= 0)
            break;
        bool busy = client->requests || client->questions || client->state != SESSION_OPEN;
        int step = busy ? 20 : 250;
        r = loop_round(client, left < step ? (int)left : step);
    }
    client->dispatching = false;
    if (client->delivered > 0 || r == -EINTR)
        return client->delivered;
    return r < 0 ? state_say(ret_err, r, &client->broken_err) : 0;
}

int quern_wait(struct quern *const *clients, size_t n, int fd, int timeout_ms)
{
    struct pollfd few[2 * 16 + 1], *items = few;
    nfds_t n_items = 0;
    if (2 * n + 1 > sizeof few / sizeof *few && !(items = calloc(2 * n + 1, sizeof *items)))
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        items[n_items++] = socket_news_item(&clients[i]->dealer_news);
        items[n_items++] = socket_news_item(&clients[i]->stream_news);
        if (clients[i]->state == SESSION_BROKEN || must_look(clients[i]))
            timeout_ms = 0;
    }
    if (fd >= 0)
        items[n_items++] = (struct pollfd){.fd = fd, .events = POLLIN};
    poll(items, n_items, timeout_ms);
    if (items != few)
        free(items);
    return 0;
}

void quern_watch(struct quern *client, int fd)
{
    client->watched = fd;
}
