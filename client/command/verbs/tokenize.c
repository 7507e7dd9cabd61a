/* SPDX-License-Identifier: MIT */
/* quern tokenize: text on stdin → ids on one line.
 *
 * Opens the file's metadata and nothing of its weights, so that files with a vocabulary only will do. The
 * text is taken as it is, a newline at its end included. Options and defaults are those of the gateway's
 * /tokenize. */

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/arguments.h"
#include "client/command/verbs.h"
#include "client/command/verbs/tokenizer_verb.h"
#include "common/program/arguments.h"
#include "common/utf8.h"

struct options {
    const char *path;
    bool add_special, no_parse, pieces;
};

enum { KEY_NO_PARSE = 256, KEY_PIECES };

static int parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case 's':
        options->add_special = true;
        return 0;
    case KEY_NO_PARSE:
        options->no_parse = true;
        return 0;
    case KEY_PIECES:
        options->pieces = true;
        return 0;
    default:
        return argument_model(key, arg, state, &options->path);
    }
}

/* In quotes. What is not a whole character, or would end the line, is written as an escape of JSON or as
 * \xHH. */
static void print_piece(struct bytes piece)
{
    const uint8_t *bytes = piece.data;
    putchar('"');
    for (size_t i = 0; i < piece.len;) {
        size_t whole = utf8_valid((struct bytes){bytes + i, piece.len - i});
        for (const size_t end = i + whole; i < end; i++)
            if (bytes[i] == '"' || bytes[i] == '\\')
                printf("\\%c", bytes[i]);
            else if (bytes[i] == '\n')
                fputs("\\n", stdout);
            else if (bytes[i] < 0x20 || bytes[i] == 0x7f)
                printf("\\x%02x", bytes[i]);
            else
                putchar(bytes[i]);
        if (i < piece.len)
            printf("\\x%02x", bytes[i++]);
    }
    putchar('"');
}

static void print_ids(const struct tokenizer *tokenizer, const struct ids *ids, bool pieces)
{
    for (size_t i = 0; i < ids->len; i++) {
        printf("%s%d", i == 0 ? "" : pieces ? "\n" : " ", ids->data[i]);
        struct bytes piece = tokenizer_piece(tokenizer, ids->data[i], false);
        if (pieces) {
            putchar('\t');
            print_piece(piece.len > 0 ? piece : tokenizer_name(tokenizer, ids->data[i]));
        }
    }
    putchar('\n');
}

static int tokenize(const struct tokenizer *tokenizer, struct buffer *text, struct ids *ids, const void *arg,
                    struct error *err)
{
    const struct options *options = arg;
    unsigned flags = (options->add_special ? TOKENIZER_ADD_SPECIAL : 0) |
                     (options->no_parse ? 0 : TOKENIZER_PARSE_SPECIAL);
    int r = tokenizer_encode(tokenizer, (struct bytes){text->data, text->len}, flags, ids);
    if (r < 0)
        return error_set(err, r, r == -EILSEQ ? "stdin: the text is not UTF-8" : "stdin: %s", strerror(-r));
    print_ids(tokenizer, ids, options->pieces);
    return fflush(stdout) == 0 ? 0 : error_set(err, -errno, "stdout: %s", strerror(errno));
}

int verb_tokenize(int argc, char **argv)
{
    static const struct argp_option known[] = {
        {"add-special", 's', NULL, 0, "Add BOS and EOS if the model's file says so", 0},
        {"special", 0, NULL, OPTION_ALIAS, NULL, 0},
        {"no-parse-special", KEY_NO_PARSE, NULL, 0, "Treat control tokens in the text as plain text", 0},
        {"with-pieces", KEY_PIECES, NULL, 0, "Print a line for each id, with its text", 0},
        {NULL, 0, NULL, 0, NULL, 0},
    };
    static const struct argp argp = {
        known,
        parse,
        "MODEL",
        "Prints the token ids of the text on stdin, on one line. A newline at the end is part of the text. "
        "Control tokens written in the text, such as <|im_end|>, become their ids.",
        NULL,
        NULL,
        NULL};
    struct options options = {0};
    struct error err = {0};
    arguments_parse(&argp, argc, argv, &options);
    int r = tokenizer_verb(options.path, "the text", tokenize, &options, &err);
    return r < 0 ? verb_fail(r, &err) : EXIT_SUCCESS;
}
