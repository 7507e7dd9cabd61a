/* SPDX-License-Identifier: MIT */
/* quern run: one prompt, one answer on stdout, as it is made.
 *
 * Reads as: options → prompt → pool → request. The answer and nothing else goes to stdout (run_output.c); a
 * failure to write it ends the run with status 1. The first Ctrl-C cancels the request and waits for its end,
 * which is status 130; a second one ends the program at once. */

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/terminal/answer.h"
#include "client/command/arguments.h"
#include "client/command/terminal/interrupt.h"
#include "client/command/pool/pool.h"
#include "client/command/terminal/prompt.h"
#include "client/command/request_arguments.h"
#include "client/command/terminal/run_output.h"
#include "client/command/verbs.h"
#include <quern.h>
#include "common/program/arguments.h"
#include "common/bytes.h"

struct run_options {
    struct request_arguments common;
    const char *words[2]; /* of the prompt, as prompt_read takes them */
    size_t n_words;
    bool raw;
    enum run_shape shape;
};

static bool is_dash(const char *word)
{
    return strcmp(word, "-") == 0;
}

/* A prompt, "-", or one of each. */
static void take_word(struct run_options *options, const char *word, struct argp_state *state)
{
    if (options->n_words > 0)
        argument_refuse_model(state, options->words[0]);
    if (options->n_words == 2 || (options->n_words == 1 && is_dash(word) == is_dash(options->words[0])))
        argp_error(state, "more than one prompt: put the prompt in quotes");
    options->words[options->n_words++] = word;
}

enum { KEY_RAW = 256, KEY_NO_SPECIAL, KEY_IDS, KEY_JSON, KEY_LOGPROBS };

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
    case KEY_NO_SPECIAL:
        options->common.request.special = false;
        return 0;
    case KEY_IDS:
    case KEY_JSON: {
        enum run_shape shape = key == KEY_IDS ? RUN_IDS : RUN_JSON;
        if (options->shape != RUN_TEXT && options->shape != shape)
            argp_error(state, "--ids and --json exclude each other");
        options->shape = shape;
        return 0;
    }
    case KEY_LOGPROBS:
        options->common.request.logprobs =
            1 + (uint32_t)argument_number(state, "--logprobs", arg, 0, PROTO_MAX_LOGPROBS);
        return 0;
    case ARGP_KEY_ARG:
        take_word(options, arg, state);
        return 0;
    case ARGP_KEY_END:
        if (options->common.request.logprobs > 0 && options->shape != RUN_JSON)
            argp_error(state, "--logprobs needs --json");
        if (options->n_words == 1 && !options->common.pool.model)
            argument_refuse_model(state, options->words[0]);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option known_options[] = {
    {"raw", KEY_RAW, NULL, 0, "Send the prompt without the model's chat template", 3},
    {"no-special", KEY_NO_SPECIAL, NULL, 0,
     "With --raw: treat control tokens in the prompt, such as <|im_start|>, as plain text", 3},
    {"ids", KEY_IDS, NULL, 0, "Print token ids instead of text", 3},
    {"json", KEY_JSON, NULL, 0, "Print one JSON object at the end", 3},
    {"logprobs", KEY_LOGPROBS, "N", 0,
     "With --json: log probabilities of each token and of the N most likely", 3},
    {0},
};

static int run_request(struct run_options *options, struct pool *pool, const struct buffer *prompt)
{
    struct quern *client = pool_client(pool);
    struct quern_request *request = &options->common.request;
    struct quern_message message = {.role = "user", .content = (const char *)prompt->data};
    struct run_output output;
    struct answer answer;
    struct error err = {0};
    if (!options->raw && request_has_chat_template(client)) {
        request->messages = &message;
        request->n_messages = 1;
    } else {
        request->text = (const char *)prompt->data;
        request->text_len = prompt->len - 1;
    }
    run_output_init(&output, options->shape);
    int r = answer_follow(client, request, run_output_take, &output, &answer, &err);
    run_output_deinit(&output);
    if (r < 0)
        return verb_fail(r, &err);
    if (options->shape == RUN_JSON && answer.reason == QUERN_LENGTH)
        return EXIT_SUCCESS; /* the object says it */
    return answer_report(&answer);
}

int verb_run(int argc, char **argv)
{
    struct run_options options = {0};
    request_arguments_init(&options.common);
    const struct argp_child children[] = {{&options.common.argp, 0, NULL, 0}, {0}};
    const struct argp argp = {
        .children = children,
        .options = known_options,
        .parser = parse,
        .args_doc = "[PROMPT] [-]",
        .doc = "Answers one prompt, given as an argument or on stdin, and prints the answer as it is "
               "generated. With both, the text on stdin follows the argument. If a limit cuts off the "
               "answer, a note on stderr says so.\v\"-\" stands for stdin. Without it, stdin is not added to "
               "the argument if another process may read it too, such as a script; a line on stderr says "
               "so.\nWithout --connect and --model: uses the running pool, or starts a private one with "
               "$QUERN_MODEL or the demo model. The model's chat template is applied if it has one."};
    struct buffer prompt = {0};
    struct error err = {0};
    struct pool *pool;
    arguments_parse(&argp, argc, argv, &options);
    int r = prompt_read(options.words, options.n_words, PROMPT_PATIENCE, &prompt, &err);
    if (r == 0) {
        interrupt_catch();
        r = pool_open(&options.common.pool, &pool, &err);
    }
    int status = EXIT_FAILURE;
    if (r == 0) {
        status = run_request(&options, pool, &prompt);
        pool_close(pool);
    } else {
        verb_fail(r, &err);
        status = r == -EINTR ? interrupt_status() : EXIT_FAILURE;
    }
    buffer_deinit(&prompt);
    request_arguments_deinit(&options.common);
    return status;
}
