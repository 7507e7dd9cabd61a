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
 * broker, which it looks for until `orphan_s` seconds have passed without a word. It does not outlive its
 * supervisor, its parent. */

#include "worker/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zmq.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/program.h"
#include "worker/assign.h"
#include "worker/convert/quantize.h"
#include "worker/engine/backends.h"
#include "worker/engine/engine.h"
#include "worker/engine/kv_type.h"
#include "worker/engine/weight_store.h"
#include "worker/gguf/truncation.h"
#include "worker/link.h"
#include "worker/model/model.h"
#include "worker/prepare.h"
#include "worker/prompt.h"
#include "worker/publish.h"
#include "worker/report.h"
#include "worker/sandbox.h"
#include "worker/stream.h"
#include "worker/tokenize.h"

#define LOOK_NS        (2 * CLOCK_NS_PER_MS) /* between looks at the sockets inside a step */
#define REPORT_NS      CLOCK_NS_PER_MS       /* between reports to the board while working */
#define IDLE_NS        (250 * CLOCK_NS_PER_MS)
#define DEADLINE_NS    (10 * CLOCK_NS_PER_MS) /* between looks at the deadlines of prompts in preparation */
#define PATIENCE_NS    (5 * CLOCK_NS_PER_S)   /* for the last acknowledgements, or without a pool */
#define PREPARATION_NS (60 * CLOCK_NS_PER_S)  /* of one prompt: beyond, its thread hangs */
#define JOIN_MS        2000                   /* for the end of that thread */
#define MOST_AT_ONCE   64 /* messages of one look, so that a flood does not stop the steps */

struct worker {
    const struct worker_options *options;
    struct model *model;
    struct prompt_encoder encoder;
    struct preparer *preparer;
    struct backend_choice backend;
    struct weight_store *weights; /* NULL: none are shared */
    struct sandbox sandbox;
    bool confined; /* it is to be */
    struct engine *engine;
    size_t shared_bytes; /* of the pool's prefix store */
    void *zmq;
    struct stream stream;
    struct link link;
    struct publisher publisher;
    struct assignments assignments;
    struct tokenize tokenize;
    struct report report;

    enum worker_state state;
    bool has_work;            /* the engine has something to do */
    bool in_step;             /* inside engine_step */
    uint64_t next_look_ns;    /* then: when to look at the sockets again */
    uint64_t step_started_ns; /* of the running step; 0: idle */
    uint64_t alone_ns;        /* since when nobody is there who started us; 0: somebody is */
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
                                       .engine = worker->engine,
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
    log_info("%s: finishing %u requests", why, worker->assignments.n);
    assignments_close(&worker->assignments, PROTO_DRAINING, "the worker is shutting down");
    enter_state(worker, WORKER_DRAINING);
    link_hurry(&worker->link);
}

/* Of a device that failed the ends are under way. */
static void hand_over(struct worker *worker)
{
    if (worker->state != WORKER_DRAINING)
        return;
    log_info("giving back %u requests", worker->assignments.n);
    assignments_give_back(&worker->assignments);
}

static void take(struct worker *worker, const struct message *message)
{
    switch (message->kind) {
    case MESSAGE_ASSIGN:
        assignments_take(&worker->assignments);
        break;
    case MESSAGE_CANCEL:
        assignments_cancel(&worker->assignments, message);
        break;
    case MESSAGE_TOKENIZE:
        tokenize_take(&worker->tokenize);
        break;
    case MESSAGE_ACK:
        window_ack(&worker->stream.window, message->ack.wseq);
        break;
    case MESSAGE_RESEND:
        stream_resend(&worker->stream, message->resend.wseq);
        break;
    case MESSAGE_DRAIN:
        drain(worker, "the broker asked for it");
        if (message->drain.hand_over)
            hand_over(worker);
        break;
    default:
        break;
    }
}

static double mib_of(uint64_t bytes)
{
    return (double)bytes / (1 << 20);
}

/* Bytes of the pool's prefix store; 0: there is none. */
static size_t store_bytes(const struct worker_options *options)
{
    struct stat stat;
    return options->prefix_store_fd >= 0 && fstat(options->prefix_store_fd, &stat) == 0 ? (size_t)stat.st_size
                                                                                        : 0;
}

/* What memory the KV cache has, what that is enough for, and what the workers have together. */
static const char *describe_memory(const struct worker *worker, char *text, size_t size)
{
    const struct backend_info *info = engine_backend_info(worker->engine);
    uint32_t context = engine_context(worker->engine), most = engine_max_tokens_in_cache(worker->engine);
    uint32_t n = info->groups[0].n_blocks / backend_blocks_for(context);
    uint64_t bytes = 0;
    for (uint32_t g = 0; g < info->n_groups; g++)
        bytes += (uint64_t)info->groups[g].n_blocks * info->groups[g].block_bytes;
    size_t weights = worker->weights ? weight_store_bytes(worker->weights) : 0;
    int used = snprintf(text, size, "KV cache of %.4g MiB: %u sequence%s of %u tokens", mib_of(bytes),
                        n > 1 ? n : 1, n > 1 ? "s" : "", most < context ? most : context);
    if (weights > 0)
        used += snprintf(text + used, size - (size_t)used, "; shared weights of %.4g MiB", mib_of(weights));
    if (worker->shared_bytes > 0)
        snprintf(text + used, size - (size_t)used, "; prefix store of %.4g MiB",
                 mib_of(worker->shared_bytes));
    return text;
}

static void tend_link(struct worker *worker, uint64_t now)
{
    struct engine_stats stats;
    if (!link_is_due(&worker->link, now))
        return;
    engine_stats(worker->engine, &stats);
    const struct link_load load = {.active = stats.active,
                                   .waiting = stats.waiting + assignments_unstarted(&worker->assignments),
                                   .kv_free = stats.blocks_free,
                                   .waiting_tokens = stats.waiting_tokens,
                                   .draining = is_ending(worker)};
    if (!link_tend(&worker->link, &load, now))
        return;
    log_info("ready: %s, %s, %s", worker->model->params.name, engine_backend_info(worker->engine)->device,
             describe_memory(worker, (char[256]){0}, 256));
    enter_state(worker, is_ending(worker) ? worker->state : WORKER_READY);
}

/* Reads and answers; all that may be done inside a step. */
static void attend(struct worker *worker, uint64_t now)
{
    const struct message *message;
    for (int i = 0; i < MOST_AT_ONCE && (message = link_receive(&worker->link)); i++)
        take(worker, message);
    for (uint32_t n = preparer_deliver(worker->preparer); n > 0; n--)
        report_progress(&worker->report);
    assignments_expire(&worker->assignments, now);
    tokenize_expire(&worker->tokenize, now);
    tend_link(worker, now);
}

/* ---- steps ---- */

/* The backend's hook: after each layer of a step, and while it loads. */
static bool on_progress(void *arg)
{
    struct worker *worker = arg;
    report_progress(&worker->report);
    if (!worker->in_step) {
        if (worker->weights)
            weight_store_progress(worker->weights);
        return false;
    }
    uint64_t now = clock_ns();
    if (now >= worker->next_look_ns) {
        worker->next_look_ns = now + LOOK_NS;
        attend(worker, now);
        publish_due(&worker->publisher, now, 0);
    }
    return engine_step_is_moot(worker->engine);
}

static void step(struct worker *worker, uint64_t now)
{
    struct error err = {0};
    worker->step_started_ns = now;
    report_if_due(worker, now);
    worker->next_look_ns = now + LOOK_NS;
    worker->in_step = true;
    int r = engine_step(worker->engine, &err);
    worker->in_step = false;
    uint64_t done = clock_ns();
    publish_due(&worker->publisher, done, done - now);
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
    zmq_pollitem_t items[] = {{worker->link.socket, 0, ZMQ_POLLIN, 0},
                              {worker->stream.socket, 0, ZMQ_POLLIN, 0},
                              {NULL, preparer_fd(worker->preparer), ZMQ_POLLIN, 0}};
    zmq_poll(items, 3, (long)((wait + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS));
}

/* A thread cannot be ended from outside, so a worker whose preparation hangs is of no more use. */
static void check_preparation(struct worker *worker, uint64_t now)
{
    if (preparer_pending(worker->preparer) == 0) /* no lock in the path of each step */
        return;
    uint64_t since = preparer_busy_since(worker->preparer);
    if (since == 0 || now < since + PREPARATION_NS)
        return;
    log_error("a prompt has been in preparation for %u s: ending with %u requests",
              (unsigned)(PREPARATION_NS / CLOCK_NS_PER_S), worker->assignments.n);
    enter_state(worker, WORKER_FAILED);
    _exit(EXIT_FAILURE);
}

/* Whether nothing is left to do but to end. */
static bool is_over(struct worker *worker, uint64_t now)
{
    if (asked_to_end)
        drain(worker, "asked to end");
    if (asked_to_end && worker->alone_ns == 0 && parent_is_gone(worker->options))
        worker->alone_ns = now;
    if (worker->alone_ns != 0 && now - worker->alone_ns > PATIENCE_NS) {
        log_warn("the pool was killed: ending with %u requests", worker->assignments.n);
        return true;
    }
    if (now > worker->link.heard_ns + worker->options->orphan_s * CLOCK_NS_PER_S) {
        log_warn("no word from the broker for %u s: ending with %u requests", worker->options->orphan_s,
                 worker->assignments.n);
        return true;
    }
    if (!is_ending(worker) || worker->assignments.n > 0 || preparer_pending(worker->preparer) > 0)
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
        stream_read(&worker->stream);
        attend(worker, now);
        assignments_start(&worker->assignments);
        worker->has_work |= worker->assignments.n_running > 0 && worker->state != WORKER_FAILED;
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

static void log_choice(const struct worker *worker)
{
    if (worker->backend.note.text[0])
        log_warn("%s", worker->backend.note.text);
}

static int choose_backend(struct worker *worker, struct error *err)
{
    int r = backend_choose(worker->options->device, worker->model, &worker->backend, err);
    if (r == 0)
        log_choice(worker);
    return r;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Weights that another worker has packed, or is packing. A device has its own: for a worker that is alone on
 * this machine what it leaves in the host's memory would be for nobody. */
static void open_weights(struct worker *worker)
{
    const struct backend_ops *ops = worker->backend.ops;
    if (!ops->self_contained && worker->options->local_workers < 2)
        return;
    struct weight_store_file file = {.packing = ops->weight_packing ? ops->weight_packing() : 0};
    struct error err;
    if (!ops->weight_packing || !gguf_file_key(worker->model->gguf, file.key, &file.settled))
        return;
    if (weight_store_open(&file, on_progress, worker, &worker->weights, &err) < 0)
        log_warn("%s: it packs weights for itself alone", err.text);
}

/* Of the whole file, unless who packed it has read that. */
static int find_digest(struct worker *worker, struct error *err)
{
    struct model *model = worker->model;
    const uint8_t *known = worker->weights ? weight_store_digest(worker->weights) : NULL;
    int r = 0;
    if (known)
        memcpy(model->digest, known, sizeof model->digest);
    else
        r = model_read_digest(model, worker->options->threads, on_progress, worker, err);
    if (r == 0 && worker->weights)
        weight_store_know(worker->weights, model->digest);
    return r;
}

/* For another backend, which packs in another way. */
static void reopen_weights(struct worker *worker)
{
    worker->weights = weight_store_free(worker->weights);
    open_weights(worker);
    if (worker->weights)
        weight_store_know(worker->weights, worker->model->digest);
}

/* What was packed is of use to others only if the file was sound all the time. */
static int finish_weights(struct worker *worker, struct error *err)
{
    struct error sealing;
    int r = gguf_check_unchanged(worker->model->gguf, err);
    if (r < 0 || !worker->weights)
        return r;
    if (weight_store_publish(worker->weights, on_progress, worker, &sealing) < 0)
        log_warn("%s", sealing.text);
    const char *whose = weight_store_is_found(worker->weights) ? "another worker's" : "shared with others";
    log_debug("weights: %zu bytes, %s", weight_store_bytes(worker->weights), whose);
    return 0;
}

/* Before there are other threads: from here on only what is open already, and a little more, is in reach. */
static void confine_files(struct worker *worker)
{
    const char *broker = worker->options->broker, *stream = worker->options->stream;
    struct sandbox *sandbox = &worker->sandbox;
    struct error err;
    worker->confined = worker->backend.ops->self_contained && !worker->options->no_sandbox;
    sandbox->network = !begins(broker, "ipc://") || !begins(stream, "ipc://");
    sandbox->abstract = begins(broker, "ipc://@") || begins(stream, "ipc://@");
    const char *slash = strrchr(stream, '/');
    if (begins(stream, "ipc:///") && slash > stream + 6)
        snprintf(sandbox->socket_folder, sizeof sandbox->socket_folder, "%.*s", (int)(slash - stream - 6),
                 stream + 6);
    int r = worker->confined ? sandbox_confine_files(sandbox, &err) : 0;
    if (r < 0)
        log_debug("files are not confined: %s", err.text);
    worker->confined &= r != -EBUSY; /* "auto" has asked a driver: its threads call what they like */
}

/* When everything is open. */
static void confine_calls(struct worker *worker)
{
    struct error err;
    if (worker->confined && sandbox_confine_calls(&worker->sandbox, worker->options->name, &err) < 0)
        log_warn("system calls are not confined: %s", err.text);
}

static int open_engine(struct worker *worker, struct error *err)
{
    const struct worker_options *options = worker->options;
    if (options->context > worker->model->params.n_context)
        log_warn("a context of %u is more than the %u that the model was trained for", options->context,
                 worker->model->params.n_context);
    uint32_t n_sharers,
        device = backend_share(&worker->backend, options->board_slot, options->local_workers, &n_sharers);
    enum backend_kv_type kv_type = BACKEND_KV_DEFAULT;
    int r = options->kv_type ? kv_type_by_name(options->kv_type, &kv_type, err) : 0;
    if (r < 0)
        return r;
    const struct engine_config config = {
        .model = worker->model,
        .backend = worker->backend.ops,
        .most_cached = options->cached_blocks,
        .backend_config = {
            .n_slots = options->slots,
            .n_context = options->context,
            .n_blocks = options->kv_blocks,
            .invariant = options->invariant,
            .kv_type = kv_type,
            .n_sharers = n_sharers,
            .shared_bytes = worker->shared_bytes,
            .weights = worker->weights,
            .devices = &device,
            .n_devices = worker->backend.n_devices > 0,
            .cpu = {.n_threads = options->threads, .cpus = options->cpus, .n_cpus = options->n_cpus},
            .progress = on_progress,
            .progress_arg = worker}};
    return engine_new(&config, assignments_event, &worker->assignments, &worker->engine, err);
}

/* Without it the worker is as good, and forgets more. */
static void share_prefixes(struct worker *worker)
{
    struct error err;
    int fd = worker->options->prefix_store_fd;
    if (fd < 0)
        return;
    if (worker->options->cached_blocks > 0 && engine_share_prefixes(worker->engine, fd, &err) < 0)
        log_warn("%s", err.text);
    close(fd);
}

/* Most tokens of a sequence, its output included. */
static uint32_t most_tokens(const struct worker *worker)
{
    uint32_t context = engine_context(worker->engine), cache = engine_max_tokens_in_cache(worker->engine);
    return context < cache ? context : cache;
}

static void after_tensor(void *arg, const struct quantize_step *step)
{
    on_progress(arg);
}

/* The model, its weights made smaller if that is asked for. */
static int open_model(struct worker *worker, struct error *err)
{
    const struct worker_options *options = worker->options;
    const struct quantize_options quantize = {.n_threads = options->threads};
    const struct mixture *mixture = options->quantize ? mixture_by_name(options->quantize) : NULL;
    struct gguf *gguf;
    if (options->quantize && !mixture)
        return error_set(err, -EINVAL, "--quantize: there is no type \"%s\"", options->quantize);
    int r = model_open_files(options->model, &gguf, err);
    if (r < 0)
        return r;
    r = mixture ? quantize_in_memory(gguf, mixture, &quantize, after_tensor, worker, err) : 0;
    if (r < 0) {
        gguf_free(gguf);
        return error_prefix(err, r, "%s", options->model);
    }
    return model_take_gguf(gguf, options->model, true, &worker->model, err);
}

/* Everything that can be wrong with the model or the device. */
static int load(struct worker *worker, struct error *err)
{
    int r = open_model(worker, err);
    if (r < 0)
        return r;
    prompt_encoder_init(&worker->encoder, worker->model);
    if (worker->model->chat_template.len > 0 && !worker->encoder.chat)
        log_warn("%s", worker->encoder.no_chat.text);
    r = choose_backend(worker, err);
    if (r < 0)
        return r;
    open_weights(worker); /* while others can be seen */
    confine_files(worker);
    r = find_digest(worker, err);
    if (r < 0)
        return r;
    /* Before the engine, which keeps the thread that opens it on one core. */
    r = preparer_new(&worker->encoder, true, &worker->preparer, err);
    if (r < 0)
        return r;
    r = open_engine(worker, err);
    if (r < 0 && backend_fall_back(&worker->backend, err)) {
        log_choice(worker);
        reopen_weights(worker);
        r = open_engine(worker, err);
    }
    if (r == 0) { /* the store of weights has been told the file's own digest */
        model_mark_stretched(worker->model, engine_context(worker->engine));
        share_prefixes(worker);
    }
    if (r == 0)
        r = finish_weights(worker, err);
    if (r < 0)
        return r;
    model_let_go(worker->model);
    prompt_encoder_bound(&worker->encoder, most_tokens(worker));
    return 0;
}

/* What the worker says of itself. */
static struct message introduction(const struct worker *worker)
{
    const struct model *model = worker->model;
    struct engine_stats stats;
    engine_stats(worker->engine, &stats);
    struct message message = {.kind = MESSAGE_REGISTER};
    message.register_.proto = (struct version_range){PROTO_VERSION_MIN, PROTO_VERSION_MAX};
    message.register_.name = bytes_of_string(worker->options->name);
    message.register_.incarnation = worker->options->incarnation;
    message.register_.pid = (uint32_t)getpid();
    message.register_.slots = stats.slots;
    message.register_.stream = bytes_of_string(worker->stream.endpoint);
    message.register_.model = bytes_of_string(model->params.name);
    message.register_.digest = (struct bytes){model->digest, sizeof model->digest};
    message.register_.context = engine_context(worker->engine);
    message.register_.chat = worker->encoder.chat != NULL;
    message.register_.kv_blocks = stats.blocks_total;
    message.register_.max_prompt = most_tokens(worker) - 1;
    message.register_.device = bytes_of_string(engine_backend_info(worker->engine)->device);
    return message;
}

/* Everything that can be wrong with this machine at this moment. */
static int connect_pool(struct worker *worker, struct error *err)
{
    worker->zmq = zmq_ctx_new();
    if (!worker->zmq)
        return error_set(err, -errno, "%s", zmq_strerror(errno));
    int r = stream_open(&worker->stream, worker->zmq, worker->options->stream, err);
    if (r < 0)
        return r;
    struct message self = introduction(worker);
    r = link_open(&worker->link, worker->zmq, worker->options->broker, &worker->stream, &self, err);
    if (r < 0)
        return r;
    publisher_init(&worker->publisher, &worker->stream, &worker->link, worker->options->frame_us);
    tokenize_init(&worker->tokenize, &worker->link, worker->preparer);
    assignments_init(&worker->assignments, &worker->link, worker->preparer, worker->engine,
                     &worker->publisher);
    return 0;
}

/* False: the preparer's thread hangs, and the process has to end as it is. */
static bool close_parts(struct worker *worker)
{
    if (!preparer_free(worker->preparer, JOIN_MS))
        return false;
    tokenize_deinit(&worker->tokenize);
    assignments_deinit(&worker->assignments);
    engine_free(worker->engine);
    weight_store_free(worker->weights);
    prompt_encoder_deinit(&worker->encoder);
    model_free(worker->model);
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

/* May the next process load what this one could not? There may be memory by then, the file at rest, and the
 * device well again that failed or stood still; who starts it again bounds how often. What was refused (a
 * model, or a device that computes wrongly) is refused again. */
static bool may_pass(int r)
{
    return r == -ENOMEM || r == -ESTALE || r == -EIO || r == -ETIMEDOUT;
}

int worker_run(const struct worker_options *options)
{
    struct error err = {0};
    struct worker worker = {.options = options, .shared_bytes = store_bytes(options)};
    catch_signals(options);
    truncation_catch(options->name, EXIT_FAILURE);
    if (report_open(&worker.report, options->board_fd, options->board_slot, options->incarnation, &err) < 0)
        return give_up(&worker, EXIT_FAILURE, &err);
    enter_state(&worker, WORKER_LOADING);
    loading = 1;
    int r = load(&worker, &err);
    loading = 0;
    if (r < 0)
        return give_up(&worker, may_pass(r) ? EXIT_FAILURE : PROGRAM_EXIT_PERMANENT, &err);
    if (connect_pool(&worker, &err) < 0)
        return give_up(&worker, EXIT_FAILURE, &err);
    confine_calls(&worker);
    run_loop(&worker);
    log_info("ended");
    bool failed = worker.state == WORKER_FAILED;
    if (!failed)
        return end(&worker, WORKER_ABSENT, EXIT_SUCCESS);
    /* Where the device is gone, the next process would not find it either. */
    return end(&worker, WORKER_FAILED, worker.failure == -ENODEV ? PROGRAM_EXIT_PERMANENT : EXIT_FAILURE);
}
