/* SPDX-License-Identifier: MIT */
/* The broker's loop.
 *
 * One turn: wait until something can be read or is due; take what came, in batches, from workers first, so
 * that what a worker published before it died is in before its death is; then signals; then what time brings;
 * then assign; then send what could not be sent before. Nothing in a turn waits.
 *
 *     SERVING ──SIGTERM, SIGINT, SIGHUP──▶ DRAINING ──nothing runs or waits──▶ STOPPING ──▶ end
 *
 * DRAINING refuses new requests and finishes the others, restarting workers if it must. STOPPING has asked
 * the workers to end, and kills those that have not after a few seconds. A second signal skips all that.
 * Whatever the way out, no worker is left behind. */

#include "broker/broker.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/backend.h"
#include "broker/boot.h"
#include "broker/frontend.h"
#include "broker/ingest.h"
#include "broker/lifecycle.h"
#include "broker/sockets.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/rundir.h"

#define TICK_NS    (100 * CLOCK_NS_PER_MS) /* leases, stalls, retention */
#define RETRY_NS   (2 * CLOCK_NS_PER_MS)   /* outboxes: a ROUTER does not say when one peer can take more */
#define STOP_NS    (5 * CLOCK_NS_PER_S)    /* from asking workers to end to killing them */
#define TRIM_NS    (10 * CLOCK_NS_PER_S)
#define LATE_NS    CLOCK_NS_PER_S /* a tick so late means that we stood still ourselves */
#define POLL_FIXED 4
#define POLL_MAX   (POLL_FIXED + 2 * WORKER_MAX)

/* ---- set-up ---- */

static void worker_started(void *arg, uint32_t index)
{
    backend_worker_started(arg, index);
}

static void worker_died(void *arg, uint32_t index)
{
    backend_worker_died(arg, index);
}

static int check_model(const char *path, struct error *err)
{
    if (access(path, R_OK) < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    return 0;
}

static void init_tables(struct broker *broker)
{
    broker->journal.limit = JOURNAL_LIMIT_BYTES;
    broker->ledger.seed = broker->sessions.seed = broker->secret;
    broker->admission.max_queued = ADMISSION_MAX_QUEUED;
    broker->admission.max_queued_bytes = ADMISSION_MAX_QUEUED_BYTES;
    broker->n_workers = broker->options.workers;
    for (uint32_t i = 0; i < broker->n_workers; i++) {
        broker->workers[i].index = i;
        snprintf(broker->workers[i].name, sizeof broker->workers[i].name, "worker-%u", i);
    }
}

int broker_init(struct broker *broker, const struct options *options, struct error *err)
{
    *broker = (struct broker){.options = *options, .lock_fd = -1, .now = clock_ns()};
    broker->supervisor.board_fd = -1;
    if (getrandom(&broker->secret, sizeof broker->secret, 0) != sizeof broker->secret)
        return error_set(err, -EIO, "no random numbers");
    init_tables(broker);
    int r = check_model(broker->options.model, err);
    if (r == 0)
        r = rundir_prepare(broker->options.rundir, err);
    if (r == 0)
        r = rundir_lock(broker->options.rundir, &broker->lock_fd, err);
    if (r == 0)
        r = boot_raise(broker->options.rundir, &broker->boot, err);
    if (r == 0)
        sockets_clear(broker->options.rundir);
    if (r == 0)
        r = sockets_bind(broker, err);
    if (r == 0 &&
        (message_decoder_new(&broker->decoder) < 0 || message_decoder_new(&broker->request_decoder) < 0 ||
         message_decoder_new(&broker->frame_decoder) < 0))
        r = error_set(err, -ENOMEM, "out of memory");
    struct supervisor_hooks hooks = {worker_started, worker_died, broker};
    if (r == 0)
        r = supervisor_init(&broker->supervisor, &broker->options, broker->backend_endpoint, broker->boot,
                            &hooks, err);
    if (r < 0)
        broker_deinit(broker);
    return r;
}

/* ---- one turn ---- */

struct turn {
    zmq_pollitem_t items[POLL_MAX];
    uint64_t next_tick;
    int signals;      /* that asked us to end */
    uint64_t stop_at; /* STOPPING: when workers are killed; else 0 */
    bool more;        /* a batch was full: do not wait */
};

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static long milliseconds_to_wait(const struct broker *broker, const struct turn *turn)
{
    if (turn->more)
        return 0;
    uint64_t due = earlier(turn->next_tick, supervisor_next(&broker->supervisor));
    due = earlier(due, queue_next_deadline(&broker->queue));
    if (broker->outboxes_waiting)
        due = earlier(due, broker->now + RETRY_NS);
    for (uint32_t i = 0; i < broker->n_workers; i++)
        if (broker->workers[i].ack_due)
            due = earlier(due, broker->workers[i].ack_due);
    uint64_t now = clock_ns();
    return due <= now ? 0 : (long)((due - now + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS);
}

static void wait_for_something(struct broker *broker, struct turn *turn, int signal_fd)
{
    zmq_pollitem_t *items = turn->items;
    int n = 0;
    items[n++] = (zmq_pollitem_t){.socket = broker->frontend, .events = ZMQ_POLLIN};
    items[n++] = (zmq_pollitem_t){.socket = broker->backend, .events = ZMQ_POLLIN};
    items[n++] = (zmq_pollitem_t){.socket = broker->stream.socket, .events = ZMQ_POLLIN};
    items[n++] = (zmq_pollitem_t){.fd = signal_fd, .events = ZMQ_POLLIN};
    for (uint32_t i = 0; i < broker->n_workers; i++) {
        if (broker->workers[i].stream)
            items[n++] = (zmq_pollitem_t){.socket = broker->workers[i].stream, .events = ZMQ_POLLIN};
        if (broker->supervisor.children[i].words.fd >= 0)
            items[n++] =
                (zmq_pollitem_t){.fd = broker->supervisor.children[i].words.fd, .events = ZMQ_POLLIN};
    }
    zmq_poll(items, n, milliseconds_to_wait(broker, turn));
    broker->now = clock_ns();
}

static void take_messages(struct broker *broker, struct turn *turn)
{
    turn->more = false;
    for (uint32_t i = 0; i < broker->n_workers; i++) {
        turn->more |= ingest_drain(broker, &broker->workers[i]);
        words_read(&broker->supervisor.children[i].words, broker->now);
    }
    turn->more |= backend_drain(broker);
    turn->more |= frontend_drain_stream(broker);
    turn->more |= frontend_drain(broker);
}

static void take_signals(struct broker *broker, struct turn *turn, int signal_fd)
{
    struct signalfd_siginfo info;
    while (read(signal_fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo != SIGCHLD)
            turn->signals++;
        else
            supervisor_reap(&broker->supervisor, broker->now);
    }
    if (turn->signals > 0 && !broker->draining) {
        broker->draining = true;
        log_info("draining: %zu requests to finish", lifecycle_alive(broker));
    }
}

/* The allocator keeps what a burst took; an idle broker gives it back to the machine. */
static void give_memory_back(struct broker *broker)
{
    if (lifecycle_alive(broker) > 0 || broker->now < broker->next_trim_ns)
        return;
    bool kept = broker->ledger.n > 0; /* its frames go later */
    if (kept || broker->trim_pays)
        malloc_trim(0);
    broker->trim_pays = kept;
    broker->next_trim_ns = broker->now + TRIM_NS;
}

/* Whoever did not listen for a while (stopped, swapped out) has no right to call others silent. */
static void forgive(struct broker *broker, uint64_t late)
{
    log_warn("stood still for %.1f s", (double)late / (double)CLOCK_NS_PER_S);
    frontend_forgive(broker);
    lifecycle_forgive(broker, late);
    supervisor_forgive(&broker->supervisor, broker->now);
}

static void tick(struct broker *broker, struct turn *turn)
{
    lifecycle_expire(broker);
    if (broker->now > turn->next_tick + LATE_NS)
        forgive(broker, broker->now - turn->next_tick);
    if (broker->sessions.any_doomed)
        frontend_tick(broker);
    if (turn->next_tick > broker->now)
        return;
    turn->next_tick = broker->now + TICK_NS;
    frontend_tick(broker);
    backend_tick(broker);
    lifecycle_tick(broker);
    give_memory_back(broker);
    for (uint32_t i = 0; i < broker->n_workers; i++)
        if (broker->workers[i].state == WORKER_READY || broker->workers[i].state == WORKER_DRAINING)
            supervisor_watch(&broker->supervisor, i, broker->workers[i].heard_ns, broker->now);
}

/* ---- saying that we serve ---- */

static void show_loading(struct broker *broker, uint32_t ready)
{
    if (broker->now - broker->loading_shown_ns < TICK_NS || !isatty(STDERR_FILENO))
        return;
    broker->loading_shown_ns = broker->now;
    static const char wheel[] = "|/-\\";
    fprintf(stderr, "\r\033[K%c loading %s: %u of %u workers ready",
            wheel[broker->now / (250 * CLOCK_NS_PER_MS) % 4], broker->options.model, ready,
            broker->n_workers);
}

/* Scripts wait for the line that begins with "ready:". */
static void announce(struct broker *broker)
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
    if (broker->announced || settled < broker->n_workers || ready == 0) {
        if (!broker->announced && !broker->draining)
            show_loading(broker, ready);
        return;
    }
    broker->announced = true;
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    fprintf(stderr, "ready: %s", broker->frontend_endpoint);
    if (broker->options.tcp[0])
        fprintf(stderr, " tcp://%s", broker->options.tcp);
    fprintf(stderr, " %u worker%s, model %s, context %u\n", ready, ready == 1 ? "" : "s", first->model,
            first->context);
    for (uint32_t i = 0; i < broker->n_workers; i++)
        if (broker->workers[i].state == WORKER_FAILED)
            log_error("%s failed for good: %s", broker->workers[i].name,
                      broker->supervisor.children[i].reason);
}

/* ---- the end ---- */

/* True when the loop is done. */
static bool wind_down(struct broker *broker, struct turn *turn)
{
    if (turn->signals > 1)
        return true;
    if (turn->stop_at == 0 && lifecycle_alive(broker) == 0) {
        turn->stop_at = broker->now + STOP_NS;
        supervisor_stop(&broker->supervisor, SIGTERM);
    }
    if (turn->stop_at == 0)
        return false;
    return supervisor_alive(&broker->supervisor) == 0 || broker->now >= turn->stop_at;
}

int broker_run(struct broker *broker, int signal_fd, struct error *err)
{
    struct turn turn = {.next_tick = broker->now};
    for (;;) {
        supervisor_tick(&broker->supervisor, broker->now);
        wait_for_something(broker, &turn, signal_fd);
        take_messages(broker, &turn);
        take_signals(broker, &turn, signal_fd);
        tick(broker, &turn);
        lifecycle_dispatch(broker);
        for (uint32_t i = 0; i < broker->n_workers; i++)
            ingest_acknowledge(broker, &broker->workers[i]);
        if (broker->outboxes_waiting) {
            broker->outboxes_waiting = false;
            frontend_flush(broker);
            backend_flush(broker);
        }
        if (!broker->announced)
            announce(broker);
        if (broker->draining && wind_down(broker, &turn))
            return 0;
        if (!broker->draining && supervisor_all_failed(&broker->supervisor))
            return error_set(err, -ECHILD, "%s", broker->supervisor.children[0].reason);
    }
}

/* Tells the clients of whatever has not ended. */
static void end_requests(struct broker *broker)
{
    struct request *request;
    while ((request = queue_first(&broker->queue)))
        lifecycle_fail(broker, request, PROTO_DRAINING, "the pool was stopped");
    for (uint32_t i = 0; i < broker->n_workers; i++)
        while ((request = broker->workers[i].requests))
            lifecycle_fail(broker, request, PROTO_DRAINING, "the pool was stopped");
}

static void end_workers(struct broker *broker)
{
    struct supervisor *supervisor = &broker->supervisor;
    supervisor_stop(supervisor, SIGKILL);
    for (uint32_t i = 0; i < supervisor->n; i++) {
        ingest_close(&broker->workers[i]);
        outbox_deinit(&broker->workers[i].outbox);
        if (supervisor->children[i].pid <= 0)
            continue;
        waitpid(supervisor->children[i].pid, NULL, 0);
        supervisor_forget(supervisor, i);
    }
    supervisor_deinit(supervisor);
}

static void free_tables(struct broker *broker)
{
    struct session *session, *next_session;
    HASH_ITER(by_id, broker->sessions.by_id, session, next_session)
    {
        session_close(&broker->sessions, session);
    }
    struct request *request, *next;
    HASH_ITER(by_home, broker->ledger.by_home, request, next)
    {
        ledger_remove(&broker->ledger, &broker->journal, request);
    }
    queue_deinit(&broker->queue);
    journal_page_deinit(&broker->page);
    buffer_deinit(&broker->scratch);
    message_decoder_free(broker->decoder);
    message_decoder_free(broker->request_decoder);
    message_decoder_free(broker->frame_decoder);
}

void broker_deinit(struct broker *broker)
{
    if (broker->stream.socket && broker->frontend)
        end_requests(broker);
    end_workers(broker);
    free_tables(broker);
    stream_deinit(&broker->stream);
    if (broker->frontend)
        zmq_close(broker->frontend);
    if (broker->backend)
        zmq_close(broker->backend);
    if (broker->context)
        zmq_ctx_term(broker->context);
    sockets_unlink(broker);
    if (broker->lock_fd >= 0)
        close(broker->lock_fd);
    *broker = (struct broker){.lock_fd = -1};
}
