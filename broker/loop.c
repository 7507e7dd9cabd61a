/* SPDX-License-Identifier: MIT */
/* The broker's loop.
 *
 * One turn: wait until something can be read or is due; take what came, in batches, from workers first, so
 * that what a worker published before it died is in before its death is; then the supervisor's news; then
 * what time brings; then assign; then send what could not be sent before. Nothing in a turn waits.
 *
 *     SERVING ──the pool is told to end──▶ DRAINING ──nothing runs or waits──▶ STOPPING ──▶ end
 *
 * DRAINING refuses new requests and finishes the others, restarting workers if it must; what has not ended
 * when its time is up is ended. STOPPING has asked the workers to end, and goes on sending to clients what
 * waits for them to read, and what they miss of it. Clients that say what they have taken are waited for as
 * long as they are there and the time for draining lasts; for anything else a few seconds, after which it
 * leaves; what has not ended then is killed. A second signal skips all that. So does the end of the
 * supervisor: workers are told to stop, and everybody leaves.
 *
 * A broker that is to be replaced (a reload) serves on until what it has sent was taken, for a second at
 * most, and then ends at the end of a turn: all that matters is in the vault, and the next broker takes it
 * from there as it would from one that was killed. */

#include "broker/loop.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "broker/wire/connections.h"
#include "broker/frames.h"
#include "broker/from_clients.h"
#include "broker/from_workers.h"
#include "broker/wire/intake.h"
#include "broker/wire/intake_log.h"
#include "broker/core/assembly.h"
#include "broker/core/lifecycle.h"
#include "broker/core/lifecycle_sessions.h"
#include "broker/core/upkeep.h"
#include "broker/processes.h"
#include "broker/wire/reader.h"
#include "broker/core/replay.h"
#include "broker/core/tokenize.h"
#include "common/amount.h"
#include "common/clock.h"
#include "common/log.h"

#define TICK_NS     (100 * CLOCK_NS_PER_MS) /* leases, stalls, retention */
#define RETRY_NS    (2 * CLOCK_NS_PER_MS)   /* workers' outboxes: a ROUTER does not say when one has room */
#define STOP_NS     (5 * CLOCK_NS_PER_S)    /* for workers to end, and clients to read what is theirs */
#define LEAVE_NS    CLOCK_NS_PER_S /* for clients to take what was sent, before another broker comes */
#define HOLD_NS     (100 * CLOCK_NS_PER_MS) /* clients, while libzmq has not looked at all of them */
#define TRIM_NS     (10 * CLOCK_NS_PER_S)
#define UNUSED_NS   (5 * CLOCK_NS_PER_S) /* between two looks at all connections */
#define LATE_NS     CLOCK_NS_PER_S       /* a tick so late means that we stood still ourselves */
#define POLL_MAX    (POLL_FIXED + WORKER_MAX)
#define FEW_CLIENTS 1024 /* of which somebody may wonder */

/* ---- one turn ---- */

/* What is waited for; a worker's stream is at POLL_FIXED and its index. */
enum {
    POLL_CLIENTS,
    POLL_WORKERS,
    POLL_STREAM, /* listeners come or go */
    POLL_SUPERVISOR,
    POLL_WAKE, /* clients have read */
    POLL_ZAP,
    POLL_FIXED
};

struct turn {
    struct pollfd items[POLL_MAX];
    uint64_t next_tick;
    uint64_t drain_until; /* DRAINING: when what is left is ended */
    uint64_t stop_at;     /* STOPPING: when workers are killed; else 0 */
    uint64_t leave_at;    /* when another broker is to take over at the latest; 0: none is */
    bool more;            /* a batch was full: do not wait */
    bool more_clients;    /* there are more messages of clients: not before all were looked at again */
    uint32_t stamp;       /* since then */
    uint64_t take_at;     /* but not later than this */
    bool announced;       /* "ready:" was printed */
    uint64_t loading_shown_ns;
    uint64_t next_trim_ns; /* when unused memory may be given back again */
    bool trim_pays;        /* requests were kept at the last time: there is something to give back */
    struct intake_log intake_log;
    uint64_t next_unused_ns; /* when connections that nobody uses are looked for again */
};

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Whether some socket is to be looked into, whatever its descriptor says; that of clients if it may be. */
static bool must_look(const struct broker *broker, bool takes)
{
    if (broker->stream.ready || broker->worker_link.news.look || broker->zap.news.look ||
        (takes && broker->client_link.news.look))
        return true;
    for (uint32_t i = 0; i < broker->n_workers; i++)
        if (broker->workers[i].stream && broker->workers[i].news.look)
            return true;
    return false;
}

/* takes: what clients send may be taken now; else that is seen by asking again. What they have sent beyond a
 * batch keeps their socket one to look into. */
static int milliseconds_to_wait(const struct broker *broker, const struct turn *turn, bool takes)
{
    if (turn->more || must_look(broker, takes))
        return 0;
    if (!takes)
        return 1;
    uint64_t due = earlier(turn->next_tick, queue_next_deadline(&broker->queue));
    if (broker->worker_link.waiting)
        due = earlier(due, broker->now + RETRY_NS);
    for (uint32_t i = 0; i < broker->n_workers; i++)
        if (broker->workers[i].ack_due)
            due = earlier(due, broker->workers[i].ack_due);
    uint64_t now = clock_ns();
    return due <= now ? 0 : (int)((due - now + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS);
}

/* Whether what clients send may be taken now. */
static bool may_take(const struct turn *turn, uint64_t now)
{
    return !turn->more_clients || now >= turn->take_at || reader_looked_since(turn->stamp);
}

/* We stood still, and perhaps since the descriptors were looked at: what came meanwhile counts before what
 * time brings. */
static void look_everywhere(struct broker *broker)
{
    broker->client_link.news.look = broker->worker_link.news.look = true;
    for (uint32_t i = 0; i < broker->n_workers; i++)
        broker->workers[i].news.look = true;
}

static void wait_for_something(struct broker *broker, struct turn *turn)
{
    const struct pollfd nothing = {.fd = -1};
    struct pollfd *items = turn->items;
    const uint32_t n = broker->n_workers;
    bool takes = may_take(turn, clock_ns());
    items[POLL_CLIENTS] = takes ? socket_news_item(&broker->client_link.news) : nothing;
    items[POLL_WORKERS] = socket_news_item(&broker->worker_link.news);
    items[POLL_STREAM] = (struct pollfd){.fd = broker->stream.fd, .events = POLLIN};
    items[POLL_SUPERVISOR] = (struct pollfd){.fd = broker->supervisor.fd, .events = POLLIN};
    items[POLL_WAKE] = (struct pollfd){.fd = broker->client_link.credit.wake_fd, .events = POLLIN};
    items[POLL_ZAP] = broker->zap.socket ? socket_news_item(&broker->zap.news) : nothing;
    for (uint32_t i = 0; i < n; i++)
        items[POLL_FIXED + i] =
            broker->workers[i].stream ? socket_news_item(&broker->workers[i].news) : nothing;
    poll(items, POLL_FIXED + n, milliseconds_to_wait(broker, turn, takes));
    broker->now = clock_ns();
    socket_news_polled(&broker->client_link.news, &items[POLL_CLIENTS]);
    socket_news_polled(&broker->worker_link.news, &items[POLL_WORKERS]);
    socket_news_polled(&broker->zap.news, &items[POLL_ZAP]);
    for (uint32_t i = 0; i < n; i++)
        socket_news_polled(&broker->workers[i].news, &items[POLL_FIXED + i]);
    if (broker->now > turn->next_tick + LATE_NS)
        look_everywhere(broker);
    if (items[POLL_STREAM].revents & POLLIN)
        stream_woken(&broker->stream);
    if (items[POLL_WAKE].revents & POLLIN)
        broker->client_link.retry |= credit_total_woken(&broker->client_link.credit);
}

static void take_messages(struct broker *broker, struct turn *turn)
{
    turn->more = false;
    for (uint32_t i = 0; i < broker->n_workers; i++)
        turn->more |= frames_drain(broker, &broker->workers[i]);
    turn->more |= broker->worker_link.news.look && from_workers_drain(broker);
    turn->more |= broker->zap.news.look && zap_answer(&broker->zap);
    bool more = from_clients_drain_stream(broker);
    if (!more)
        connections_caught_up();
    turn->more |= more;
    /* At each tick too, though there is nothing: what connections left behind is settled then (intake.h). */
    const bool look = broker->client_link.news.look || turn->next_tick <= broker->now;
    if (!look || !may_take(turn, broker->now))
        return;
    turn->stamp = reader_stamp();
    turn->more_clients = from_clients_drain(broker);
    turn->take_at = clock_ns() + HOLD_NS;
}

static void take_news(struct broker *broker, struct turn *turn)
{
    processes_take(broker);
    if (broker->supervisor.signals > 0 && !broker->draining) {
        broker->draining = true;
        turn->drain_until = broker->now + broker->options.drain_seconds * CLOCK_NS_PER_S;
        if (broker->supervisor.signals == 1)
            log_info("draining: %s to finish, within %u s", amount_of(broker_n_alive(broker), "request").text,
                     broker->options.drain_seconds);
    }
    if (broker->supervisor.leave && turn->leave_at == 0)
        turn->leave_at = broker->now + LEAVE_NS;
}

/* The allocator keeps what a burst took; an idle broker gives it back to the machine. */
static void give_memory_back(const struct broker *broker, struct turn *turn)
{
    if (broker_n_alive(broker) > 0 || broker->now < turn->next_trim_ns)
        return;
    bool kept = broker->ledger.n > 0; /* its frames go later */
    if (kept || turn->trim_pays)
        malloc_trim(0);
    if (kept || turn->trim_pays)
        vault_trim(broker->journal.vault);
    turn->trim_pays = kept;
    turn->next_trim_ns = broker->now + TRIM_NS;
}

/* Who did not listen for a while (stopped, swapped out) has no right to call others silent. */
static void stood_still(struct broker *broker, uint64_t late)
{
    log_warn("stalled for %.1f s", (double)late / (double)CLOCK_NS_PER_S);
    sessions_stood_still(&broker->sessions, late, broker->now);
    assembly_stood_still(broker, late);
    intake_stood_still(broker->now);
}

static void tick(struct broker *broker, struct turn *turn)
{
    lifecycle_expire(broker);
    if (broker->now > turn->next_tick + LATE_NS)
        stood_still(broker, broker->now - turn->next_tick);
    if (broker->sessions.any_doomed)
        lifecycle_close_sessions(broker);
    if (turn->next_tick > broker->now)
        return;
    turn->next_tick = broker->now + TICK_NS;
    if (client_keys_look(&broker->client_keys, broker->now))
        lifecycle_keys_gone(broker);
    zap_report(&broker->zap, broker->now);
    stream_report(&broker->stream, broker->now);
    broker->client_link.retry = true;
    client_link_shed(&broker->client_link);
    broker_upkeep(broker);
    tokenize_expire(broker);
    stream_make_room(&broker->stream, &broker->sessions);
    give_memory_back(broker, turn);
    if (turn->next_unused_ns <= broker->now) {
        turn->next_unused_ns = broker->now + UNUSED_NS;
        intake_close_unused(broker->now);
    }
    intake_log_turn(&turn->intake_log, broker->now);
}

static void send_what_waits(struct broker *broker, struct turn *turn)
{
    supervisor_flush(&broker->supervisor);
    worker_link_send_credits(&broker->worker_link);
    for (uint32_t i = 0; i < broker->n_workers; i++)
        worker_link_acknowledge(&broker->worker_link, &broker->workers[i], broker->now);
    if (broker->client_link.retry) {
        client_link_flush(&broker->client_link);
        broker->client_link.retry = replay_send_owed(broker);
        turn->more |= broker->client_link.retry;
    }
    broker->paged_bytes = 0;
    if (broker->worker_link.waiting)
        worker_link_flush(&broker->worker_link);
}

/* ---- saying that we serve ---- */

static void show_loading(const struct broker *broker, struct turn *turn, uint32_t ready)
{
    if (broker->now - turn->loading_shown_ns < TICK_NS || !isatty(STDERR_FILENO))
        return;
    turn->loading_shown_ns = broker->now;
    static const char wheel[] = "|/-\\";
    char text[LOG_WRITE_MAX];
    int n = snprintf(text, sizeof text, "\r\033[K%c loading %.3000s: %u of %u workers ready",
                     wheel[broker->now / (250 * CLOCK_NS_PER_MS) % 4], broker->options.model, ready,
                     broker->n_workers);
    log_write(text, (size_t)n);
}

/* Scripts wait for the line that begins with "ready:". */
static void announce(const struct broker *broker, struct turn *turn)
{
    uint32_t ready = 0, settled = 0;
    const struct worker *first = NULL;
    for (uint32_t i = 0; i < broker->n_workers; i++) {
        bool serves = broker->workers[i].state == WORKER_READY;
        ready += serves;
        settled += serves || broker->workers[i].state == WORKER_FAILED;
        if (serves && !first)
            first = &broker->workers[i];
    }
    if (turn->announced || settled < broker->n_workers || ready == 0) {
        if (!turn->announced && !broker->draining)
            show_loading(broker, turn, ready);
        return;
    }
    turn->announced = true;
    char tcp[sizeof " tcp://" + OPTIONS_TEXT_MAX] = "", line[LOG_WRITE_MAX];
    if (broker->options.tcp[0])
        snprintf(tcp, sizeof tcp, " tcp://%s", broker->options.tcp);
    int n = snprintf(line, sizeof line, "%sready: %s%s %u worker%s, model %s, context %u\n",
                     isatty(STDERR_FILENO) ? "\r\033[K" : "", broker->endpoints.frontend, tcp, ready,
                     ready == 1 ? "" : "s", first->model, first->context);
    log_write(line, (size_t)n);
    uint32_t clients = broker->most_connections / 2;
    log_info("room for %u clients and %zu MiB of their messages",
             clients < SESSION_MAX ? clients : SESSION_MAX, INTAKE_MAX_BYTES >> 20);
    if (clients < FEW_CLIENTS)
        log_warn("the number is low because of the limit of open files (ulimit -n, LimitNOFILE)");
    for (uint32_t i = 0; i < broker->n_workers; i++)
        if (broker->workers[i].state == WORKER_FAILED)
            log_error("%s failed for good: %s", broker->workers[i].name,
                      broker->supervisor.places[i].record.reason);
}

/* ---- the end ---- */

/* Whether clients have not taken all that was sent to them. */
static bool is_unread(const struct broker *broker)
{
    return broker->sessions.pending || atomic_load(&broker->client_link.credit.bytes) > 0;
}

/* True when the loop is done. */
static bool wind_down(struct broker *broker, struct turn *turn)
{
    if (broker->supervisor.signals > 1)
        return true;
    if (broker->now >= turn->drain_until && broker_n_alive(broker) > 0) {
        log_warn("%s not finished after %u s: ending", amount_of(broker_n_alive(broker), "request").text,
                 broker->options.drain_seconds);
        lifecycle_end_all(broker, "the pool was stopped, and this request did not finish in time");
    }
    if (turn->stop_at == 0 && broker_n_alive(broker) == 0) {
        turn->stop_at = broker->now + STOP_NS;
        supervisor_stop(&broker->supervisor);
    }
    if (turn->stop_at == 0)
        return false;
    bool untaken = lifecycle_is_awaited(broker); /* by clients who are there and say so */
    if (untaken && broker->now < (turn->drain_until > turn->stop_at ? turn->drain_until : turn->stop_at))
        return false;
    return (supervisor_alive(&broker->supervisor) == 0 && !is_unread(broker)) || broker->now >= turn->stop_at;
}

/* Nobody is left to wait for the workers, or to start us again. */
static void leave_alone(struct broker *broker)
{
    log_error("the supervisor is gone: the pool ends");
    lifecycle_end_all(broker, "the pool was killed");
    for (uint32_t i = 0; i < broker->n_workers; i++)
        worker_link_send(&broker->worker_link, &broker->workers[i], &(struct message){.kind = MESSAGE_DRAIN},
                         NULL);
}

int broker_run(struct broker *broker, struct error *err)
{
    struct turn turn = {.next_tick = broker->now};
    for (;;) {
        wait_for_something(broker, &turn);
        supervisor_turn(&broker->supervisor);
        take_messages(broker, &turn);
        take_news(broker, &turn);
        tick(broker, &turn);
        lifecycle_grow_waiting(broker);
        lifecycle_dispatch(broker);
        tokenize_dispatch(broker);
        send_what_waits(broker, &turn);
        if (!turn.announced)
            announce(broker, &turn);
        if (broker->supervisor.gone) {
            leave_alone(broker);
            return 0;
        }
        if (broker->draining && wind_down(broker, &turn))
            return 0;
        if (!broker->draining && turn.leave_at > 0 && (broker->now >= turn.leave_at || !is_unread(broker)))
            return LOOP_E_LEFT;
        if (!broker->draining && supervisor_all_failed(&broker->supervisor))
            return error_set(err, supervisor_all_unfit(&broker->supervisor) ? LOOP_E_UNFIT : -ECHILD, "%s",
                             broker->supervisor.places[0].record.reason);
    }
}
