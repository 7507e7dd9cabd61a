/* SPDX-License-Identifier: MIT */
/* The loop of a worker process.
 *
 * Read what the broker says, step the engine, publish what came of it, again; block only when there is
 * nothing to do, or when so many frames are unacknowledged that more must not be made. The progress hook
 * does the same reading in the middle of a step, so that a cancel ends even a long prefill within a layer.
 *
 *     LOADING ──▶ READY ──SIGTERM, drain, device failed──▶ DRAINING ──all done and acknowledged──▶ end
 *
 * A worker outlives its broker: what runs is finished, as far as the window holds it, and kept for a new
 * broker, which it looks for until `orphan_s` seconds have passed without a word. */

#include "worker/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zmq.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/program.h"

#define LOOK_NS     (2 * CLOCK_NS_PER_MS) /* between looks at the sockets inside a step */
#define REPORT_NS   CLOCK_NS_PER_MS       /* between reports to the board while working */
#define IDLE_NS     (250 * CLOCK_NS_PER_MS)
#define PATIENCE_NS (5 * CLOCK_NS_PER_S) /* for the last acknowledgements */

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

static void catch_signals(void)
{
    struct sigaction end = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
}

/* ---- inside a step ---- */

static bool on_progress(void *arg)
{
    struct worker *worker = arg;
    if (worker->slot)
        atomic_fetch_add_explicit(&worker->slot->layers, 1, memory_order_relaxed);
    if (!worker->in_step)
        return false; /* the backend tries itself out */
    uint64_t now = clock_ns();
    if (now >= worker->next_look_ns) {
        worker->next_look_ns = now + LOOK_NS;
        link_read(worker);
        link_tend(worker, now);
        publish_due(worker, now, 0);
    }
    return engine_step_is_moot(worker->engine);
}

/* ---- the loop ---- */

static void report_if_due(struct worker *worker, uint64_t now)
{
    if (now < worker->next_report_ns)
        return;
    report_write(worker, now);
    worker->next_report_ns = now + (worker->has_work ? REPORT_NS : IDLE_NS);
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
    publish_due(worker, done, done - now);
    worker->has_work = r == 1;
    if (r >= 0)
        return;
    log_error("%s", err.text);
    worker->failed = worker->draining = true;
    worker->state = WORKER_FAILED;
    report_write(worker, done);
}

/* Blocks until somebody says something, or until it is time to. */
static void wait_for_work(struct worker *worker, uint64_t now)
{
    if (worker->step_started_ns) {
        worker->step_started_ns = 0;
        worker->next_report_ns = 0;
    }
    publish_due(worker, now, UINT64_MAX);
    report_if_due(worker, now);
    uint64_t due = worker->registered ? worker->next_heartbeat_ns : worker->next_register_ns;
    uint64_t wait = due > now ? due - now : 0;
    wait = wait > IDLE_NS ? IDLE_NS : wait;
    zmq_pollitem_t items[] = {{worker->control, 0, ZMQ_POLLIN, 0}, {worker->stream.socket, 0, ZMQ_POLLIN, 0}};
    zmq_poll(items, 2, (long)((wait + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS));
}

static void drain(struct worker *worker, const char *why)
{
    if (worker->draining)
        return;
    log_info("%s: finishing %u requests", why, worker->n_requests);
    worker->draining = true;
    worker->state = WORKER_DRAINING;
    worker->next_report_ns = 0;
}

/* Whether nothing is left to do but to end. */
static bool is_over(struct worker *worker, uint64_t now)
{
    if (asked_to_end)
        drain(worker, "asked to end");
    if (now > worker->heard_ns + worker->options.orphan_s * CLOCK_NS_PER_S) {
        log_warn("no word from the broker for %u s: ending with %u requests", worker->options.orphan_s,
                 worker->n_requests);
        return true;
    }
    if (!worker->draining || worker->n_requests > 0)
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
        link_read(worker);
        link_tend(worker, now);
        worker->has_work |= worker->n_requests > 0 && !worker->failed;
        if (is_over(worker, now))
            return;
        if (worker->has_work && !window_is_full(&worker->stream.window))
            step(worker, now);
        else
            wait_for_work(worker, now);
    }
}

/* ---- start and end ---- */

static void open_chat(struct worker *worker)
{
    const struct model *model = worker->model;
    const struct tokenizer *tokenizer = model->tokenizer;
    if (model->chat_template.len == 0) {
        error_set(&worker->no_chat, 0, "the model has no chat template: send text or token ids");
        return;
    }
    int32_t bos = tokenizer_bos(tokenizer), eos = tokenizer_eos(tokenizer);
    const struct bytes none = {"", 0};
    int r = chat_template_new(
        model->chat_template, bos == TOKENIZER_NONE ? none : tokenizer_name(tokenizer, bos),
        eos == TOKENIZER_NONE ? none : tokenizer_name(tokenizer, eos), &worker->chat, &worker->no_chat);
    if (r < 0) {
        error_prefix(&worker->no_chat, r, "the model's chat template cannot be used");
        log_warn("%s", worker->no_chat.text);
    }
}

static int open_engine(struct worker *worker, struct error *err)
{
    const struct worker_options *options = &worker->options;
    const struct backend_ops *backend = backend_by_name(options->device);
    if (!backend)
        return error_set(err, -ENODEV, "there is no device \"%s\" in this build", options->device);
    if (options->context > worker->model->params.n_context)
        log_warn("a context of %u is more than the %u that the model was trained for", options->context,
                 worker->model->params.n_context);
    const struct engine_config config = {.model = worker->model,
                                         .backend = backend,
                                         .backend_config = {.n_slots = options->slots,
                                                            .n_context = options->context,
                                                            .n_blocks = options->kv_blocks,
                                                            .n_threads = options->threads,
                                                            .cpus = options->cpus,
                                                            .n_cpus = options->n_cpus,
                                                            .progress = on_progress,
                                                            .progress_arg = worker}};
    return engine_new(&config, publish_event, worker, &worker->engine, err);
}

/* A token stands for no more bytes than its name has, so a text has a least number of tokens, known before it
 * is split: which takes a second for some megabytes, while all others wait. */
static size_t most_prompt_bytes(const struct worker *worker)
{
    const struct tokenizer *tokenizer = worker->model->tokenizer;
    uint32_t context = engine_context(worker->engine), cache = engine_max_tokens_in_cache(worker->engine);
    size_t longest = 1;
    for (uint32_t id = 0; id < tokenizer_size(tokenizer); id++) {
        size_t len = tokenizer_name(tokenizer, (int32_t)id).len;
        longest = len > longest ? len : longest;
    }
    return longest * (context < cache ? context : cache);
}

/* Everything that can be wrong with the model or the device. */
static int load(struct worker *worker, struct error *err)
{
    int r = model_open(worker->options.model, true, &worker->model, err);
    if (r < 0)
        return r;
    open_chat(worker);
    r = open_engine(worker, err);
    if (r == 0)
        worker->most_prompt_bytes = most_prompt_bytes(worker);
    return r;
}

/* Everything that can be wrong with this machine at this moment. */
static int connect_pool(struct worker *worker, struct error *err)
{
    int r = message_decoder_new(&worker->decoder);
    if (r < 0)
        return error_set(err, r, "out of memory");
    worker->zmq = zmq_ctx_new();
    if (!worker->zmq)
        return error_set(err, -errno, "%s", zmq_strerror(errno));
    r = stream_open(&worker->stream, worker->zmq, worker->options.stream, err);
    return r < 0 ? r : link_open(worker, err);
}

static void free_worker(struct worker *worker)
{
    publish_forget(worker);
    engine_free(worker->engine);
    chat_template_free(worker->chat);
    model_free(worker->model);
    link_close(worker);
    stream_close(&worker->stream);
    if (worker->zmq)
        zmq_ctx_term(worker->zmq);
    message_decoder_free(worker->decoder);
    buffer_deinit(&worker->scratch);
    buffer_deinit(&worker->reason);
    report_close(worker);
    free(worker);
}

static int give_up(struct worker *worker, int status, const struct error *err)
{
    log_error("%s", err->text);
    worker->state = WORKER_FAILED;
    report_write(worker, clock_ns());
    free_worker(worker);
    return status;
}

int worker_run(const struct worker_options *options)
{
    struct error err = {0};
    struct worker *worker = calloc(1, sizeof *worker);
    if (!worker) {
        log_error("out of memory");
        return EXIT_FAILURE;
    }
    worker->options = *options;
    catch_signals();
    if (report_open(worker, &err) < 0)
        return give_up(worker, EXIT_FAILURE, &err);
    worker->state = WORKER_LOADING;
    report_write(worker, clock_ns());
    loading = 1;
    int r = load(worker, &err);
    loading = 0;
    if (r < 0)
        return give_up(worker, r == -ENOMEM ? EXIT_FAILURE : PROGRAM_EXIT_PERMANENT, &err);
    if (connect_pool(worker, &err) < 0)
        return give_up(worker, EXIT_FAILURE, &err);
    run_loop(worker);
    int status = worker->failed ? EXIT_FAILURE : EXIT_SUCCESS;
    worker->state = worker->failed ? WORKER_FAILED : WORKER_ABSENT;
    report_write(worker, clock_ns());
    log_info("ended");
    free_worker(worker);
    return status;
}
