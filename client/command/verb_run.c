/* SPDX-License-Identifier: MIT */
/* quern run: one prompt, one answer on stdout, as it is made.
 *
 * Reads as: options → prompt → pool → request → output. The answer and nothing else goes to stdout; a failure
 * to write it ends the run with status 1. The first Ctrl-C cancels the request and waits for its end, which
 * is status 130; a second one ends the program at once. */

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/command/arguments.h"
#include "client/command/output.h"
#include "client/command/pool.h"
#include "client/command/request_arguments.h"
#include "client/command/verbs.h"
#include "client/lib/quern.h"
#include "common/bytes.h"
#include "common/clock.h"
#include "common/log.h"

#define MAX_PROMPT     (4u << 20)
#define CANCEL_WAIT_NS (3 * CLOCK_NS_PER_S)

struct run_options {
    struct request_arguments common;
    const char *prompt; /* NULL or "-": stdin */
    bool raw, ids, json;
};

struct run {
    const struct run_options *options;
    struct quern *client;
    struct quern_id id;
    bool over, write_failed, wrote_id, cancelled;
    char last; /* byte written */
    enum quern_reason reason;
    char failure[600];
    json_t *json, *json_ids, *json_logprobs; /* --json */
    struct buffer text;
};

/* ---- options ---- */

enum { KEY_RAW = 256, KEY_IDS, KEY_JSON, KEY_LOGPROBS };

static int parse(int key, char *arg, struct argp_state *state)
{
    struct run_options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->common;
        return 0;
    case KEY_RAW:
        options->raw = true;
        return 0;
    case KEY_IDS:
        options->ids = true;
        return 0;
    case KEY_JSON:
        options->json = true;
        return 0;
    case KEY_LOGPROBS:
        options->common.request.logprobs = 1 + (uint32_t)argument_number(state, "--logprobs", arg, 0, 20);
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0)
            argp_error(state, "one prompt, please: put it in quotes");
        options->prompt = arg;
        return 0;
    case ARGP_KEY_END:
        if (options->ids && options->json)
            argp_error(state, "--ids and --json exclude each other");
        if (options->common.request.logprobs > 0 && !options->json)
            argp_error(state, "--logprobs needs --json");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option known_options[] = {
    {"raw", KEY_RAW, NULL, 0, "Send the prompt as it is, without the model's chat template", 3},
    {"ids", KEY_IDS, NULL, 0, "Print token ids instead of text", 3},
    {"json", KEY_JSON, NULL, 0, "Print one JSON object at the end", 3},
    {"logprobs", KEY_LOGPROBS, "N", 0, "With --json: log probabilities of each token and its N likeliest", 3},
    {0},
};

/* ---- prompt ---- */

static int read_stdin(struct buffer *ret_text, struct error *err)
{
    size_t n = 1;
    while (n > 0) {
        if (ret_text->len > MAX_PROMPT)
            return error_set(err, -E2BIG, "the prompt is longer than %u bytes", MAX_PROMPT);
        if (buffer_reserve(ret_text, 65536) < 0)
            return error_set(err, -ENOMEM, "out of memory");
        n = fread(ret_text->data + ret_text->len, 1, 65536, stdin);
        ret_text->len += n;
    }
    return ferror(stdin) ? error_set(err, -EIO, "stdin: %s", strerror(errno)) : 0;
}

/* The prompt: the argument, or stdin for "-" and where nobody could have typed one. Zero-terminated. */
static int read_prompt(const struct run_options *options, struct buffer *ret_text, struct error *err)
{
    int r;
    if (options->prompt && strcmp(options->prompt, "-") != 0)
        r = buffer_append(ret_text, options->prompt, strlen(options->prompt));
    else if (!options->prompt && isatty(STDIN_FILENO))
        return error_set(err, -EINVAL, "no prompt: give one as an argument or on stdin");
    else
        r = read_stdin(ret_text, err);
    if (r == 0 && ret_text->len == 0)
        return error_set(err, -EINVAL, "the prompt is empty");
    const uint8_t *zero = r == 0 ? memchr(ret_text->data, 0, ret_text->len) : NULL;
    if (zero)
        return error_set(err, -EINVAL, "the prompt has a zero byte at %td", zero - ret_text->data);
    if (r == 0)
        r = buffer_append(ret_text, "", 1);
    return r;
}

/* ---- output ---- */

static void write_out(struct run *run, const char *data, size_t len)
{
    if (len == 0 || run->write_failed)
        return;
    run->write_failed = output_write(data, len) < 0;
    run->last = data[len - 1];
}

static void write_ids(struct run *run, const struct quern_output *output)
{
    for (size_t i = 0; i < output->n_ids; i++) {
        char text[16];
        int n = snprintf(text, sizeof text, "%s%" PRId32, run->wrote_id ? " " : "", output->ids[i]);
        write_out(run, text, (size_t)n);
        run->wrote_id = true;
    }
    if (output->end)
        write_out(run, "\n", 1);
}

static json_t *json_logprob(const struct quern_logprob *logprob)
{
    /* JSON has no infinity. */
    return json_pack("{s:i, s:f}", "id", (int)logprob->id, "logprob",
                     isfinite(logprob->logprob) ? (double)logprob->logprob : -1e30);
}

static void gather_json(struct run *run, const struct quern_output *output)
{
    for (size_t i = 0; i < output->n_ids; i++)
        json_array_append_new(run->json_ids, json_integer(output->ids[i]));
    for (size_t i = 0; output->logprobs && i < output->n_ids; i++) {
        json_t *row = json_array();
        for (size_t j = 0; j < output->n_logprobs; j++)
            json_array_append_new(row, json_logprob(&output->logprobs[i * output->n_logprobs + j]));
        json_array_append_new(run->json_logprobs, row);
    }
    if (buffer_append(&run->text, output->text, output->text_len) < 0)
        run->write_failed = true;
}

static void write_json(struct run *run, const struct quern_end *end)
{
    json_t *json = run->json;
    const char *text = run->text.len > 0 ? (const char *)run->text.data : "";
    json_object_set_new(json, "text", json_stringn(text, run->text.len));
    json_object_set(json, "ids", run->json_ids);
    if (json_array_size(run->json_logprobs) > 0)
        json_object_set(json, "logprobs", run->json_logprobs);
    json_object_set_new(json, "reason", json_string(quern_reason_name(end->reason)));
    if (end->reason == QUERN_ERROR)
        json_object_set_new(json, "error", json_pack("{s:s, s:s}", "name", end->error, "text", end->text));
    /* As text: a seed has 64 bits, and most readers of JSON keep 53. */
    char seed[24];
    snprintf(seed, sizeof seed, "%" PRIu64, end->seed);
    json_object_set_new(json, "seed", json_string(seed));
    json_object_set_new(json, "usage",
                        json_pack("{s:i, s:i, s:i}", "prompt_tokens", (int)end->prompt_tokens,
                                  "cached_tokens", (int)end->cached_tokens, "output_tokens",
                                  (int)end->output_tokens));
    json_object_set_new(json, "timing",
                        json_pack("{s:f, s:f, s:f}", "queue_ms", end->queue_ms, "prefill_ms", end->prefill_ms,
                                  "decode_ms", end->decode_ms));
    char *line = json_dumps(json, JSON_REAL_PRECISION(9));
    if (line) {
        write_out(run, line, strlen(line));
        write_out(run, "\n", 1);
    } else {
        run->write_failed = true;
    }
    free(line);
}

static void on_output(void *arg, const struct quern_output *output)
{
    struct run *run = arg;
    if (run->options->json)
        gather_json(run, output);
    else if (run->cancelled || pool_interrupted())
        ; /* what was under way when the user had enough */
    else if (run->options->ids)
        write_ids(run, output);
    else
        write_out(run, output->text, output->text_len);
    if (!output->end)
        return;
    run->over = true;
    run->reason = output->end->reason;
    if (output->end->reason == QUERN_ERROR)
        snprintf(run->failure, sizeof run->failure, "%s: %s", output->end->error, output->end->text);
    if (run->options->json)
        write_json(run, output->end);
    else if (!run->options->ids && run->last != '\n' && isatty(STDOUT_FILENO))
        write_out(run, "\n", 1);
}

/* ---- the run ---- */

static int dispatch_until_over(struct run *run, struct error *err)
{
    uint64_t cancelled_ns = 0;
    while (!run->over) {
        struct quern_error said = {0};
        int r = quern_dispatch(run->client, 100, &said);
        if (r < 0 && !run->over)
            return error_set(err, r, "%s", said.text);
        if ((pool_interrupted() || run->write_failed) && !run->cancelled) {
            run->cancelled = true;
            cancelled_ns = clock_ns();
            quern_cancel(run->client, run->id, NULL);
        }
        if (run->cancelled && clock_ns() - cancelled_ns > CANCEL_WAIT_NS)
            return error_set(err, -ETIMEDOUT, "the pool did not end the request");
    }
    return 0;
}

static int exit_status(const struct run *run)
{
    if (pool_interrupted() && run->cancelled) {
        log_error("interrupted");
        return 128 + pool_interrupted();
    }
    if (run->reason == QUERN_ERROR)
        log_error("%s", run->failure);
    if (run->reason == QUERN_DEADLINE)
        log_error("the deadline passed");
    if (run->reason == QUERN_CANCELLED && !run->cancelled)
        log_error("the pool cancelled the request: it had not heard of this program for too long");
    bool failed = run->write_failed || run->reason == QUERN_ERROR || run->reason == QUERN_DEADLINE ||
                  run->reason == QUERN_CANCELLED;
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run_request(struct run_options *options, struct pool *pool, const struct buffer *prompt)
{
    struct run run = {.options = options, .client = pool_client(pool)};
    struct quern_message message = {"user", (const char *)prompt->data};
    struct quern_error said = {0};
    struct error err = {0};
    if (!options->raw && request_has_chat_template(run.client)) {
        options->common.request.messages = &message;
        options->common.request.n_messages = 1;
    } else {
        options->common.request.text = (const char *)prompt->data;
        options->common.request.text_len = prompt->len - 1;
    }
    run.json = json_object();
    run.json_ids = json_array();
    run.json_logprobs = json_array();
    int r = quern_generate(run.client, &options->common.request, on_output, &run, &run.id, &said);
    if (r < 0)
        error_set(&err, r, "%s", said.text);
    else
        r = dispatch_until_over(&run, &err);
    int status = r < 0 && !run.cancelled ? verb_fail(r, &err) : exit_status(&run);
    json_decref(run.json);
    json_decref(run.json_ids);
    json_decref(run.json_logprobs);
    buffer_deinit(&run.text);
    return status;
}

int verb_run(int argc, char **argv)
{
    static const struct argp_child children[] = {{&request_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .children = children,
        .options = known_options,
        .parser = parse,
        .args_doc = "[PROMPT]",
        .doc =
            "Answers one prompt, given as an argument or on stdin, and prints the answer as it is made."
            "\vWith neither --connect nor --model: asks the pool that runs, or starts a private one with "
            "$QUERN_MODEL or the model that is shipped. The model's chat template is applied if it has one."};
    struct run_options options = {0};
    struct buffer prompt = {0};
    struct error err = {0};
    struct pool *pool;
    quern_request_init(&options.common.request);
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    int r = read_prompt(&options, &prompt, &err);
    if (r == 0) {
        pool_catch_signals();
        r = pool_open(&options.common.pool, &pool, &err);
    }
    int status = EXIT_FAILURE;
    if (r == 0) {
        status = run_request(&options, pool, &prompt);
        pool_close(pool);
    } else {
        verb_fail(r, &err);
        status = r == -EINTR ? 128 + pool_interrupted() : EXIT_FAILURE;
    }
    buffer_deinit(&prompt);
    return status;
}
