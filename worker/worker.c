/* SPDX-License-Identifier: MIT */
/* The loop of a worker process.
 *
 * Read what the broker says, hand prepared requests to the engine, step it, publish what came of it, again;
 * block only when there is nothing to do, or when so many frames are unacknowledged that more must not be
 * made. The progress hook reads and publishes in the middle of a step too, so that a cancel ends even a long
 * prefill within a layer. Prompts are prepared on a thread of their own (prepare.h).
 *
 *     LOADING ──▶ READY ──SIGTERM, drain──▶ DRAINING ──all done and acknowledged──▶ end
 *                   └──────device failed──▶ FAILED ─────────────────┘
 *
 * A worker outlives its broker: what runs is finished, as far as the window holds it, and kept for a new
 * broker, for which it waits until `orphan_s` seconds have passed without a word. It does not outlive its
 * supervisor, its parent. */

#include "worker/worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <zmq.h>

#include "common/amount.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/program/program.h"
#include "worker/assign.h"
#include "gguf/truncation.h"
#include "worker/instruments/differences.h"
#include "worker/instruments/profile.h"
#include "worker/instruments/trace.h"
#include "worker/instruments/trim.h"
#include "worker/link/link.h"
#include "worker/load.h"
#include "worker/publish.h"
#include "worker/report.h"
#include "worker/link/stream.h"
#include "worker/tokenize.h"

#define LOOK_NS        (2 * CLOCK_NS_PER_MS) /* between looks at the sockets inside a step */
#define REPORT_NS      CLOCK_NS_PER_MS       /* between reports to the board while working */
#define IDLE_NS        (250 * CLOCK_NS_PER_MS)
#define DEADLINE_NS    (10 * CLOCK_NS_PER_MS) /* between looks at the deadlines of prompts in preparation */
#define PATIENCE_NS    (5 * CLOCK_NS_PER_S)   /* for the last acknowledgements */
#define PREPARATION_NS (60 * CLOCK_NS_PER_S)  /* of one prompt: beyond, its thread hangs */
#define JOIN_MS        2000                   /* for the end of that thread */
#define MOST_AT_ONCE   64 /* messages of one look, so that a flood does not stop the steps */

struct worker {
    const struct worker_options *options;
    struct load load; /* the model and all that computes */
    void *zmq;
    struct stream stream;
    struct link link;
    struct publisher publisher;
    struct assignments assignments;
    struct tokenize tokenize;
    struct trace trace;
    struct profiler profiler;
    struct trimmer trimmer;
    struct differences differences;
    struct report report;

    enum worker_state state;
    bool has_work;            /* the engine has something to do */
    bool in_step;             /* inside engine_step */
    uint64_t next_look_ns;    /* then: when to look at the sockets again */
    uint64_t step_started_ns; /* of the running step; 0: idle */
    uint64_t done_ns;         /* draining and nothing runs any more, since then; 0: not yet */
    int failure;              /* -errno: what became of the device, in FAILED */
};

static volatile sig_atomic_t asked_to_end;
static volatile sig_atomic_t loading; /* nothing to finish yet */

static void on_signal(int signal)
{
    if (loading)
        _exit(EXIT_SUCCESS);
    if (asked_to_end)
        _exit(EXIT_FAILURE);
    asked_to_end = 1;
}

static bool parent_is_gone(const struct worker_options *options)
{
    return options->parent != 0 && getppid() != (pid_t)options->parent;
}

static void catch_signals(const struct worker_options *options)
{
    struct sigaction end = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    if (options->parent != 0)
        prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (parent_is_gone(options)) /* before that call */
        _exit(EXIT_SUCCESS);
}

/* ---- the board ---- */

static void report(struct worker *worker, uint64_t now)
{
    const struct report_facts facts = {.state = worker->state,
                                       .step_started_ns = worker->step_started_ns,
                                       .engine = worker->load.engine,
                                       .unstarted = assignments_unstarted(&worker->assignments)};
    report_write(&worker->report, &facts, now, worker->has_work ? REPORT_NS : IDLE_NS);
}

static void report_if_due(struct worker *worker, uint64_t now)
{
    if (now >= worker->report.next_ns)
        report(worker, now);
}

static void enter_state(struct worker *worker, enum worker_state state)
{
    worker->state = state;
    report(worker, clock_ns());
}

/* ---- what the broker says ---- */

static bool is_ending(const struct worker *worker)
{
    return worker->state == WORKER_DRAINING || worker->state == WORKER_FAILED;
}

static void drain(struct worker *worker, const char *why)
{
    if (is_ending(worker))
        return;
    log_info("%s: finishing %s", why, amount_of(worker->assignments.n, "request").text);
    assignments_close(&worker->assignments, PROTO_DRAINING, "the worker is shutting down");
    enter_state(worker, WORKER_DRAINING);
    link_hurry(&worker->link);
}

/* Of a device that failed the ends are under way. */
static void hand_over(struct worker *worker)
{
    if (worker->state != WORKER_DRAINING)
        return;
    log_info("giving back %s", amount_of(worker->assignments.n, "request").text);
    assignments_give_back(&worker->assignments);
}

static void take(struct worker *worker, const struct message *message)
{
    switch (message->kind) {
    case MESSAGE_ASSIGN:
        assignments_take(&worker->assignments);
        break;
    case MESSAGE_CREDIT:
        assignments_credit(&worker->assignments, message);
        break;
    case MESSAGE_CANCEL:
        assignments_cancel(&worker->assignments, message);
        break;
    case MESSAGE_TOKENIZE:
    case MESSAGE_DETOKENIZE:
        tokenize_take(&worker->tokenize);
        break;
    case MESSAGE_TRACE:
        trace_take(&worker->trace, message, clock_ns());
        break;
    case MESSAGE_PROFILE:
        profiler_take(&worker->profiler, message, clock_ns());
        break;
    case MESSAGE_TRIM:
        trimmer_take(&worker->trimmer, message);
        break;
    case MESSAGE_ACK:
        window_ack(&worker->stream.window, message->ack.wseq);
        break;
    case MESSAGE_RESEND:
        stream_resend(&worker->stream, message->resend.wseq);
        break;
    case MESSAGE_DRAIN:
        drain(worker, "the broker requested it");
        if (message->drain.hand_over)
            hand_over(worker);
        break;
    default:
        break;
    }
}

static void tend_link(struct worker *worker, uint64_t now)
{
    struct engine_stats stats;
    if (!link_is_due(&worker->link, now))
        return;
    engine_stats(worker->load.engine, &stats);
    const struct link_load load = {.active = stats.active,
                                   .waiting = stats.waiting + assignments_unstarted(&worker->assignments),
                                   .kv_free = stats.blocks_free,
                                   .waiting_tokens = stats.waiting_tokens,
                                   .draining = is_ending(worker)};
    if (!link_tend(&worker->link, &load, now))
        return;
    log_info("ready: %s, %s, %s", worker->load.model->params.name,
             engine_backend_info(worker->load.engine)->device,
             load_describe_memory(&worker->load, (char[256]){0}, 256));
    enter_state(worker, is_ending(worker) ? worker->state : WORKER_READY);
}

/* Waits for news of the sockets and of the preparer. */
static void wait_for_news(struct worker *worker, int ms)
{
    struct pollfd items[] = {socket_news_item(&worker->link.news),
                             socket_news_item(&worker->stream.news),
                             {.fd = preparer_fd(worker->load.preparer), .events = POLLIN}};
    poll(items, 3, worker->link.news.look || worker->stream.news.look ? 0 : ms);
    socket_news_polled(&worker->link.news, &items[0]);
    socket_news_polled(&worker->stream.news, &items[1]);
}

/* Reads and answers; all that may be done inside a step. */
static void attend(struct worker *worker, uint64_t now)
{
    const struct message *message;
    for (int i = 0; i < MOST_AT_ONCE && (message = link_receive(&worker->link)); i++)
        take(worker, message);
    for (uint32_t n = preparer_deliver(worker->load.preparer); n > 0; n--)
        report_progress(&worker->report);
    assignments_expire(&worker->assignments, now);
    tokenize_expire(&worker->tokenize, now);
    trace_expire(&worker->trace, now);
    tend_link(worker, now);
}

/* ---- steps ---- */

/* The backend's hook: after each layer of a step, and while it loads. */
static bool on_progress(void *arg)
{
    struct worker *worker = arg;
    report_progress(&worker->report);
    if (!worker->in_step) {
        load_progress(&worker->load);
        return false;
    }
    uint64_t now = clock_ns();
    if (now >= worker->next_look_ns) {
        worker->next_look_ns = now + LOOK_NS;
        wait_for_news(worker, 0);
        attend(worker, now);
        publish_due(&worker->publisher, now, 0);
    }
    return engine_step_is_moot(worker->load.engine);
}

static void step(struct worker *worker, uint64_t now)
{
    struct error err = {0};
    worker->step_started_ns = now;
    report_if_due(worker, now);
    worker->next_look_ns = now + LOOK_NS;
    worker->in_step = true;
    int r = engine_step(worker->load.engine, &err);
    worker->in_step = false;
    uint64_t done = clock_ns();
    publish_due(&worker->publisher, done, done - now);
    wait_for_news(worker, 0);
    worker->has_work = r == 1;
    if (r >= 0)
        return;
    log_error("%s", err.text);
    worker->failure = r;
    assignments_abandon(&worker->assignments, PROTO_MODEL_ERROR, "the worker's device failed");
    enter_state(worker, WORKER_FAILED);
}

/* ---- the loop ---- */

/* Blocks until somebody says something, a prompt is prepared, or it is time to. */
static void wait_for_work(struct worker *worker, uint64_t now)
{
    if (worker->step_started_ns) {
        worker->step_started_ns = 0;
        worker->report.next_ns = 0;
    }
    publish_due(&worker->publisher, now, UINT64_MAX);
    report_if_due(worker, now);
    uint64_t due = link_due_ns(&worker->link);
    uint64_t wait = due > now ? due - now : 0;
    uint64_t most = assignments_unstarted(&worker->assignments) ? DEADLINE_NS : IDLE_NS;
    wait = wait > most ? most : wait;
    wait_for_news(worker, (int)((wait + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS));
}

/* A thread cannot be ended from outside, so a worker whose preparation hangs is of no more use. */
static void check_preparation(struct worker *worker, uint64_t now)
{
    if (preparer_pending(worker->load.preparer) == 0) /* no lock in the path of each step */
        return;
    uint64_t since = preparer_busy_since(worker->load.preparer);
    if (since == 0 || now < since + PREPARATION_NS)
        return;
    log_error("a prompt has been in preparation for %u s: ending with %s",
              (unsigned)(PREPARATION_NS / CLOCK_NS_PER_S), amount_of(worker->assignments.n, "request").text);
    enter_state(worker, WORKER_FAILED);
    _exit(EXIT_FAILURE);
}

/* Whether nothing is left to do but to end. */
static bool is_over(struct worker *worker, uint64_t now)
{
    if (worker->link.refusal.text[0])
        return true;
    if (asked_to_end)
        drain(worker, "told to end");
    if (asked_to_end && parent_is_gone(worker->options)) { /* nor does a broker stay that would take frames */
        log_warn("the pool was killed: ending with %s", amount_of(worker->assignments.n, "request").text);
        return true;
    }
    if (now > worker->link.heard_ns + worker->options->orphan_s * CLOCK_NS_PER_S) {
        log_warn("no message from the broker for %u s: ending with %s", worker->options->orphan_s,
                 amount_of(worker->assignments.n, "request").text);
        return true;
    }
    if (!is_ending(worker) || worker->assignments.n > 0 || preparer_pending(worker->load.preparer) > 0)
        return false;
    if (worker->has_work && worker->state != WORKER_FAILED) /* blocks that others may need are still copied */
        return false;
    if (worker->done_ns == 0)
        worker->done_ns = now;
    return window_kept(&worker->stream.window) == 0 || now - worker->done_ns > PATIENCE_NS;
}

static void run_loop(struct worker *worker)
{
    for (;;) {
        uint64_t now = clock_ns();
        /* To have stood still ourselves, since the last news, is no silence of the broker's. */
        worker->link.news.look |= now > worker->link.heard_ns + CLOCK_NS_PER_S;
        stream_read(&worker->stream);
        attend(worker, now);
        assignments_start(&worker->assignments);
        profiler_tend(&worker->profiler, now);
        if (trimmer_tend(&worker->trimmer))
            report_look_again(&worker->report);
        worker->has_work |= !engine_is_idle(worker->load.engine) && worker->state != WORKER_FAILED;
        check_preparation(worker, now);
        if (is_over(worker, now))
            return;
        if (worker->has_work && !window_is_full(&worker->stream.window))
            step(worker, now);
        else
            wait_for_work(worker, now);
    }
}

/* ---- start and end ---- */

/* What the worker says of itself. */
static struct message introduction(const struct worker *worker)
{
    const struct model *model = worker->load.model;
    struct engine_stats stats;
    engine_stats(worker->load.engine, &stats);
    struct message message = {.kind = MESSAGE_REGISTER};
    message.register_.proto = (struct version_range){PROTO_VERSION_MIN, PROTO_VERSION_MAX};
    message.register_.name = bytes_of_string(worker->options->name);
    message.register_.incarnation = worker->options->incarnation;
    message.register_.pid = (uint32_t)getpid();
    message.register_.slots = stats.slots;
    message.register_.stream = bytes_of_string(worker->stream.endpoint);
    message.register_.model = bytes_of_string(model->params.name);
    message.register_.digest = (struct bytes){model->digest, sizeof model->digest};
    message.register_.context = load_most_tokens(&worker->load);
    message.register_.chat = worker->load.encoder.chat != NULL;
    message.register_.tools = bytes_of_string(prompt_call_form(&worker->load.encoder));
    message.register_.thinks = worker->load.encoder.dialect.thoughts.known;
    message.register_.dialect = bytes_of_string(worker->load.encoder.dialect_text);
    message.register_.sampling = bytes_of_string(worker->load.sampling_text);
    message.register_.kv_blocks = stats.blocks_total;
    message.register_.max_prompt = load_most_tokens(&worker->load) - 1;
    const uint32_t n_embedding = engine_embedding(worker->load.engine);
    message.register_.embedding = n_embedding <= PROTO_MAX_EMBEDDING ? n_embedding : 0;
    message.register_.ranks = message.register_.embedding > 0 && model->params.pooling == POOLING_RANK;
    message.register_.device = bytes_of_string(engine_backend_info(worker->load.engine)->device);
    message.register_.device_number = worker->load.device_number;
    message.register_.device_uuid = bytes_of_string(worker->load.described.uuid);
    message.register_.device_driver = bytes_of_string(worker->load.described.driver);
    message.register_.device_capability = worker->load.described.capability;
    message.register_.arithmetic = bytes_of_string(worker->load.arithmetic);
    message.register_.choices = bytes_of_string(engine_backend_info(worker->load.engine)->choices);
    return message;
}

/* Everything that can be wrong with this machine at this moment. */
static int connect_pool(struct worker *worker, struct error *err)
{
    struct listener stream, link;
    worker->zmq = zmq_ctx_new();
    if (!worker->zmq)
        return error_set(err, -errno, "%s", zmq_strerror(errno));
    int r = listener_take(worker->options->stream_fd, &stream, err);
    if (r == 0)
        r = listener_take(worker->options->link_fd, &link, err);
    if (r == 0)
        r = stream_open(&worker->stream, worker->zmq, &stream, err);
    if (r < 0)
        return r;
    struct message self = introduction(worker);
    r = link_open(&worker->link, worker->zmq, &link, &worker->stream, &self, err);
    if (r < 0)
        return r;
    publisher_init(&worker->publisher, &worker->stream, &worker->link, worker->load.model->tokenizer,
                   worker->options->frame_us);
    tokenize_init(&worker->tokenize, &worker->link, worker->load.preparer, worker->load.encoder.tokenizer);
    assignments_init(&worker->assignments, &worker->link, worker->load.preparer, worker->load.engine,
                     &worker->publisher, &worker->load.encoder, &worker->load.sampling);
    trace_init(&worker->trace, &worker->link, worker->load.engine, worker->options->incarnation,
               assignments_topic_of);
    worker->assignments.trace = &worker->trace;
    profiler_init(&worker->profiler, &worker->link, worker->load.engine);
    worker->profiler.bandwidth = worker->load.described.bandwidth;
    trimmer_init(&worker->trimmer, &worker->link, worker->load.engine);
    return 0;
}

/* False: the preparer's thread hangs, and the process has to end as it is. */
static bool close_parts(struct worker *worker)
{
    if (!preparer_free(worker->load.preparer, JOIN_MS))
        return false;
    tokenize_deinit(&worker->tokenize);
    assignments_deinit(&worker->assignments);
    trace_close(&worker->trace);
    publisher_deinit(&worker->publisher);
    load_close(&worker->load);
    link_close(&worker->link);
    stream_close(&worker->stream);
    if (worker->zmq)
        zmq_ctx_term(worker->zmq);
    report_close(&worker->report);
    return true;
}

static int end(struct worker *worker, enum worker_state state, int status)
{
    enter_state(worker, state);
    if (!close_parts(worker))
        _exit(status);
    return status;
}

static int give_up(struct worker *worker, int status, const struct error *err)
{
    log_error("%s", err->text);
    return end(worker, WORKER_FAILED, status);
}

int worker_run(const struct worker_options *options)
{
    struct error err = {0};
    struct worker worker = {.options = options};
    worker.load = (struct load){.options = options,
                                .progress = on_progress,
                                .progress_arg = &worker,
                                .sink = assignments_event,
                                .sink_arg = &worker.assignments,
                                .differences = &worker.differences};
    worker.differences.topic_of = assignments_topic_of;
    catch_signals(options);
    truncation_catch(options->name, EXIT_FAILURE);
    if (report_open(&worker.report, options->board_fd, options->incarnation, &err) < 0)
        return give_up(&worker, EXIT_FAILURE, &err);
    if (load_check_names(options, &err) < 0)
        return give_up(&worker, PROGRAM_EXIT_USAGE, &err);
    enter_state(&worker, WORKER_LOADING);
    loading = 1;
    int r = load_run(&worker.load, &err);
    loading = 0;
    if (r < 0)
        return give_up(&worker, load_may_pass(r) ? EXIT_FAILURE : PROGRAM_EXIT_PERMANENT, &err);
    if (connect_pool(&worker, &err) < 0)
        return give_up(&worker, EXIT_FAILURE, &err);
    load_confine_calls(&worker.load);
    run_loop(&worker);
    if (worker.link.refusal.text[0])
        return give_up(&worker, PROGRAM_EXIT_PERMANENT, &worker.link.refusal);
    log_info("ended");
    bool failed = worker.state == WORKER_FAILED;
    if (!failed)
        return end(&worker, WORKER_ABSENT, EXIT_SUCCESS);
    /* Where the device is gone, the next process would not find it either. */
    return end(&worker, WORKER_FAILED, worker.failure == -ENODEV ? PROGRAM_EXIT_PERMANENT : EXIT_FAILURE);
}
