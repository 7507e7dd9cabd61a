/* SPDX-License-Identifier: MIT */
/* quern tokenize: text on stdin → ids on one line.
 *
 * Opens the file's metadata and nothing of its weights, so that files with a vocabulary only will do. The
 * text is taken as it is, a newline at its end included. */

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/arguments.h"
#include "client/command/terminal/io.h"
#include "client/command/verbs.h"
#include "common/program/arguments.h"
#include "model/model.h"
#include "text/tokenizer/tokenizer.h"

struct options {
    const char *path;
    bool special;
};

static int parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case 's':
        options->special = true;
        return 0;
    default:
        return argument_model(key, arg, state, &options->path);
    }
}

static int tokenize(const struct options *options, struct error *err)
{
    struct gguf *gguf = NULL;
    struct tokenizer *tokenizer = NULL;
    struct buffer text = {0};
    struct ids ids = {0};
    int r = model_open_files(options->path, &gguf, err);
    if (r == 0) {
        r = tokenizer_new(gguf, &tokenizer, err);
        if (r < 0)
            error_prefix(err, r, "%s", options->path);
    }
    if (r == 0)
        r = io_read_stdin(&text, TOKENIZER_MAX_TEXT, "the text", err);
    if (r == 0) {
        r = tokenizer_encode(tokenizer, (struct bytes){text.data, text.len},
                             options->special ? TOKENIZER_ADD_SPECIAL | TOKENIZER_PARSE_SPECIAL : 0, &ids);
        if (r < 0)
            error_set(err, r, r == -EILSEQ ? "stdin: the text is not UTF-8" : "stdin: %s", strerror(-r));
    }
    if (r == 0) {
        for (size_t i = 0; i < ids.len; i++)
            printf("%s%d", i > 0 ? " " : "", ids.data[i]);
        putchar('\n');
        if (fflush(stdout) != 0)
            r = error_set(err, -errno, "stdout: %s", strerror(errno));
    }
    ids_deinit(&ids);
    buffer_deinit(&text);
    tokenizer_free(tokenizer);
    gguf_free(gguf);
    return r;
}

int verb_tokenize(int argc, char **argv)
{
    static const struct argp_option known[] = {
        {"special", 's', NULL, 0,
         "Add BOS and EOS as the model file asks, and parse control tokens in the text", 0},
        {NULL, 0, NULL, 0, NULL, 0},
    };
    static const struct argp argp = {
        known,
        parse,
        "MODEL",
        "Prints the token ids of the text on stdin, on one line. A newline at its end is part of it.",
        NULL,
        NULL,
        NULL};
    struct options options = {0};
    struct error err = {0};
    arguments_parse(&argp, argc, argv, &options);
    int r = tokenize(&options, &err);
    return r < 0 ? verb_fail(r, &err) : EXIT_SUCCESS;
}
