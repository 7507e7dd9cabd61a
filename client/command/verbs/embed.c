/* SPDX-License-Identifier: MIT */
/* quern embed: a text, or token ids → its embedding, a number a line on stdout, or one JSON object, or
 * floats.
 *
 * The text is the argument, or stdin up to its end; nothing is added to it but the model's own special
 * tokens, and nothing to ids. Numbers are written so that they read back as the same floats. The first
 * Ctrl-C cancels, as in quern run. */

#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/command/arguments.h"
#include "client/command/terminal/answer.h"
#include "client/command/terminal/interrupt.h"
#include "client/command/terminal/io.h"
#include "client/command/pool/pool_arguments.h"
#include "client/command/verbs.h"
#include <quern.h>
#include "common/program/arguments.h"
#include "common/bytes.h"

#define MAX_TEXT (4u << 20)

enum { KEY_JSON = 256, KEY_SPECIAL, KEY_RAW };

struct embed_options {
    struct pool_options pool;
    const char *text; /* NULL or "-": stdin */
    bool special, json, raw;
    struct ids ids; /* instead of a text */
};

static int parse(int key, char *arg, struct argp_state *state)
{
    struct embed_options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->pool;
        return 0;
    case KEY_JSON:
        options->json = true;
        return 0;
    case KEY_SPECIAL:
        options->special = true;
        return 0;
    case KEY_RAW:
        options->raw = true;
        return 0;
    case 't':
        argument_ids(state, arg, &options->ids);
        return 0;
    case ARGP_KEY_END:
        if (options->json && options->raw)
            argp_error(state, "--json and --raw exclude one another");
        if (options->ids.len > 0 && (options->text || options->special))
            argp_error(state, "--tokens and a text exclude each other");
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0)
            argp_error(state, "more than one text: put the text in quotes");
        options->text = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option known_options[] = {
    {"json", KEY_JSON, NULL, 0, "Print one JSON object instead: the embedding and prompt_tokens", 1},
    {"raw", KEY_RAW, NULL, 0, "Write 32-bit floats, little-endian, instead", 1},
    {"tokens", 't', "ID,ID,...", 0, "The input ids, instead of a text; none are added", 1},
    {"special", KEY_SPECIAL, NULL, 0, "Parse control tokens in the text", 1},
    {0},
};

/* The text: the argument, or stdin for "-" and where nobody could have typed one. */
static int read_text(const struct embed_options *options, struct buffer *ret_text, struct error *err)
{
    int r;
    if (options->text && strcmp(options->text, "-") != 0)
        r = buffer_append(ret_text, options->text, strlen(options->text));
    else if (!options->text && isatty(STDIN_FILENO))
        return error_set(err, -EINVAL, "no text: give one as an argument or on stdin");
    else
        r = io_read_stdin(ret_text, MAX_TEXT, "the text", err);
    return r == 0 && ret_text->len == 0 ? error_set(err, -EINVAL, "the text is empty") : r;
}

/* ---- what comes of it ---- */

static int write_lines(const struct quern_output *output)
{
    struct buffer lines = {0};
    int r = 0;
    for (size_t i = 0; i < output->n_embedding && r == 0; i++) {
        char line[32];
        int n = snprintf(line, sizeof line, "%.*g\n", IO_FLOAT_DIGITS, (double)output->embedding[i]);
        r = buffer_append(&lines, line, (size_t)n);
    }
    if (r == 0)
        r = io_write(lines.data, lines.len);
    buffer_deinit(&lines);
    return r;
}

static int write_raw(const struct quern_output *output)
{
    return io_write(output->embedding, output->n_embedding * sizeof *output->embedding);
}

static int write_json(const struct quern_output *output)
{
    json_t *numbers = json_array();
    for (size_t i = 0; i < output->n_embedding; i++)
        json_array_append_new(numbers, json_real((double)output->embedding[i]));
    return io_write_json(
        json_pack("{s:o, s:i}", "embedding", numbers, "prompt_tokens", (int)output->end->prompt_tokens));
}

static int take(void *arg, const struct quern_output *output)
{
    const struct embed_options *options = arg;
    if (!output->embedding)
        return 0; /* how it ended is said on stderr */
    if (options->raw)
        return write_raw(output);
    return options->json ? write_json(output) : write_lines(output);
}

static int embed(struct embed_options *options, struct quern *client, const struct buffer *text)
{
    struct quern_request request;
    struct answer answer;
    struct error err = {0};
    quern_request_init(&request);
    if (options->ids.len > 0) {
        request.ids = options->ids.data;
        request.n_ids = options->ids.len;
    } else {
        request.text = (const char *)text->data;
        request.text_len = text->len;
    }
    request.special = options->special;
    request.embed = true;
    int r = answer_follow(client, &request, take, options, &answer, &err);
    return r < 0 ? verb_fail(r, &err) : answer_report(&answer);
}

int verb_embed(int argc, char **argv)
{
    static const struct argp_child children[] = {{&pool_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .children = children,
        .options = known_options,
        .parser = parse,
        .args_doc = "[TEXT]",
        .doc = "Prints the embedding of a text, given as an argument or on stdin: the mean of the model's "
               "final states, normalized to length one, one number per line.\vWithout --connect and --model: "
               "uses the running pool, or starts a private one with $QUERN_MODEL or the demo model. A "
               "newline at the end is part of the text."};
    struct embed_options options = {0};
    struct buffer text = {0};
    struct error err = {0};
    struct pool *pool;
    arguments_parse(&argp, argc, argv, &options);
    int r = options.ids.len > 0 ? 0 : read_text(&options, &text, &err);
    if (r == 0) {
        interrupt_catch();
        r = pool_open(&options.pool, &pool, &err);
    }
    int status = EXIT_FAILURE;
    if (r == 0) {
        status = embed(&options, pool_client(pool), &text);
        pool_close(pool);
    } else {
        verb_fail(r, &err);
        status = r == -EINTR ? interrupt_status() : EXIT_FAILURE;
    }
    buffer_deinit(&text);
    ids_deinit(&options.ids);
    return status;
}
