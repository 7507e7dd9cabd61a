/* SPDX-License-Identifier: MIT */
/* quern detokenize: ids on stdin → their text.
 *
 * The way back from quern tokenize, byte by byte: bytes that are no whole character come out as they are.
 * Opens the file's metadata and nothing of its weights. */

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/command/arguments.h"
#include "client/command/verbs.h"
#include "client/command/verbs/tokenizer_verb.h"
#include "common/program/arguments.h"
#include "common/number.h"
#include "common/utf8.h"

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

/* Ids parted by blanks or commas; the list is cut up on the way. */
static int read_ids(struct buffer *list, const struct tokenizer *tokenizer, struct ids *ids,
                    struct error *err)
{
    char *rest, *word;
    int r = buffer_append(list, "", 1);
    if (r == 0 && strlen((char *)list->data) + 1 < list->len)
        return error_set(err, -EINVAL, "stdin: a NUL byte among the ids");
    for (word = r == 0 ? strtok_r((char *)list->data, " ,\t\r\n", &rest) : NULL; word && r == 0;
         word = strtok_r(NULL, " ,\t\r\n", &rest)) {
        uint32_t id = 0;
        r = number_read_u32(word, 0, tokenizer_size(tokenizer) - 1, &id, err);
        if (r < 0)
            return error_prefix(err, r, "stdin: an id");
        r = ids_push(ids, (int32_t)id);
    }
    return r < 0 ? error_set(err, r, "stdin: %s", strerror(-r)) : 0;
}

static int print(const struct tokenizer *tokenizer, const struct ids *ids, bool special, struct error *err)
{
    struct buffer text = {0}, shown = {0};
    int r = tokenizer_decode(tokenizer, ids->data, ids->len, special, SIZE_MAX, &text);
    if (r == 0 && isatty(STDOUT_FILENO)) {
        r = utf8_append_shown(&shown, (struct bytes){text.data, text.len});
        buffer_deinit(&text);
        text = shown;
    }
    if (r < 0)
        error_set(err, r, "the text: %s", strerror(-r));
    else if (text.len > 0 && (fwrite(text.data, 1, text.len, stdout) != text.len || fflush(stdout) != 0))
        r = error_set(err, -errno, "stdout: %s", strerror(errno));
    buffer_deinit(&text);
    return r;
}

static int detokenize(const struct tokenizer *tokenizer, struct buffer *list, struct ids *ids,
                      const void *arg, struct error *err)
{
    const struct options *options = arg;
    int r = read_ids(list, tokenizer, ids, err);
    return r < 0 ? r : print(tokenizer, ids, options->special, err);
}

int verb_detokenize(int argc, char **argv)
{
    static const struct argp_option known[] = {
        {"special", 's', NULL, 0, "Include control tokens, by their names", 0},
        {NULL, 0, NULL, 0, NULL, 0},
    };
    static const struct argp argp = {
        known,
        parse,
        "MODEL",
        "Prints the text of the token ids on stdin, separated by blanks or commas. No newline is added.",
        NULL,
        NULL,
        NULL};
    struct options options = {0};
    struct error err = {0};
    arguments_parse(&argp, argc, argv, &options);
    int r = tokenizer_verb(options.path, "the list of ids", detokenize, &options, &err);
    return r < 0 ? verb_fail(r, &err) : EXIT_SUCCESS;
}
