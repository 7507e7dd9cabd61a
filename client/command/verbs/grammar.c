/* SPDX-License-Identifier: MIT */
/* quern grammar: reads a grammar, and holds texts against it, byte by byte as a worker does with an answer.
 */

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/command/verbs.h"
#include "common/bytes.h"
#include "common/program/arguments.h"
#include "common/utf8.h"
#include "text/grammar/grammar.h"

#define MOST_TEXT ((size_t)16 << 20)

enum { KEY_JSON_SCHEMA = 256, KEY_REGEX, KEY_GBNF };

struct options {
    const char *path;
    const char **checks; /* [n_checks] files */
    size_t n_checks;
    int kind; /* a key; 0: as the name of the file says */
};

static void set_kind(struct options *options, int kind, const struct argp_state *state)
{
    if (options->kind != 0 && options->kind != kind)
        argp_error(state, "--json-schema, --regex and --gbnf exclude one another");
    options->kind = kind;
}

/* The kind that a file's name says, or 0. */
static int kind_of(const char *path)
{
    static const struct {
        const char *ending;
        int kind;
    } endings[] = {{".json", KEY_JSON_SCHEMA}, {".gbnf", KEY_GBNF}, {".regex", KEY_REGEX}};
    size_t len = strlen(path);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(endings[i].ending);
        if (len > n && strcmp(path + len - n, endings[i].ending) == 0)
            return endings[i].kind;
    }
    return 0;
}

static int parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case KEY_JSON_SCHEMA:
    case KEY_REGEX:
    case KEY_GBNF:
        set_kind(options, key, state);
        return 0;
    case 'c':
        options->checks[options->n_checks++] = arg; /* there are fewer than arguments */
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0)
            argp_usage(state);
        options->path = arg;
        return 0;
    case ARGP_KEY_END:
        if (!options->path)
            argp_usage(state);
        if (options->kind == 0)
            options->kind = kind_of(options->path);
        if (options->kind == 0)
            argp_error(state, "%s: neither .json, .gbnf nor .regex; use --json-schema, --gbnf or --regex",
                       options->path);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* A whole file, or stdin for "-". */
static int read_file(const char *path, struct buffer *ret_text, struct error *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    int r = fd < 0 ? -errno : buffer_read(ret_text, fd, MOST_TEXT);
    if (fd >= 0 && !is_stdin)
        close(fd);
    return r < 0 ? error_set(err, r, "%s: %s", is_stdin ? "stdin" : path, strerror(-r)) : 0;
}

/* Without the newline at the end that editors put there. */
static struct bytes without_newline(struct bytes text)
{
    const char *data = text.data;
    size_t len = text.len;
    if (len > 0 && data[len - 1] == '\n')
        len -= len > 1 && data[len - 2] == '\r' ? 2 : 1;
    return (struct bytes){data, len};
}

static int make_grammar(const struct options *options, struct grammar **ret_grammar, struct error *err)
{
    struct buffer text = {0};
    int r = read_file(options->path, &text, err);
    if (r == 0) {
        struct bytes bytes = {text.data, text.len};
        enum grammar_kind kind = options->kind == KEY_JSON_SCHEMA ? GRAMMAR_SCHEMA
                                 : options->kind == KEY_GBNF      ? GRAMMAR_GBNF
                                                                  : GRAMMAR_REGEX;
        r = grammar_make(kind, kind == GRAMMAR_REGEX ? without_newline(bytes) : bytes, ret_grammar, err);
        if (r != 0)
            error_prefix(err, r, "%s", options->path);
    }
    buffer_deinit(&text);
    return r;
}

/* Where a byte stands, for people. */
static void print_place(struct bytes text, size_t at)
{
    const char *data = text.data;
    size_t line = 1, column = 1;
    char shown[40];
    for (size_t i = 0; i < at; i++) {
        column = data[i] == '\n' ? 1 : column + (((uint8_t)data[i] & 0xc0) != 0x80);
        line += data[i] == '\n';
    }
    size_t rest = text.len - at < 24 ? text.len - at : 24;
    printf("leaves the grammar at byte %zu (line %zu, column %zu): %s\n", at, line, column,
           utf8_printable((struct bytes){data + at, rest}, sizeof shown, shown));
}

/* Holds a text against the grammar and says what became of it. 0: accepted; 1: not; or an error. */
static int check_text(struct grammar *grammar, const char *path, struct bytes text, struct error *err)
{
    struct grammar_answer *answer;
    size_t at = 0;
    int r = grammar_answer_new(grammar, &answer, err);
    if (r != 0)
        return r;
    while (at < text.len && r == 0) {
        r = grammar_answer_take(answer, (struct bytes){(const char *)text.data + at, 1}, err);
        at += r == 0;
    }
    const bool all = at >= without_newline(text).len, accepted = all && grammar_answer_may_end(answer);
    grammar_answer_free(answer);
    if (r < 0)
        return r;
    printf("%s: ", path);
    if (all)
        puts(accepted ? "accepted" : "prefix");
    else if (strstr(err->text, "too complex"))
        printf("byte %zu: %s\n", at, err->text);
    else
        print_place(text, at);
    return accepted ? 0 : 1;
}

static int check_file(struct grammar *grammar, const char *path, struct error *err)
{
    struct buffer text = {0};
    int r = read_file(path, &text, err);
    if (r == 0)
        r = check_text(grammar, path, (struct bytes){text.data, text.len}, err);
    buffer_deinit(&text);
    return r;
}

static int run(const struct options *options)
{
    struct grammar *grammar = NULL;
    struct error err = {0};
    int r = make_grammar(options, &grammar, &err), status = EXIT_SUCCESS;
    if (r != 0)
        return verb_fail(r, &err);
    printf("%s: compiles\n", options->path);
    for (size_t i = 0; i < options->n_checks; i++) {
        r = check_file(grammar, options->checks[i], &err);
        if (r < 0)
            status = verb_fail(r, &err);
        else if (r > 0)
            status = EXIT_FAILURE;
    }
    grammar_free(grammar);
    return status;
}

int verb_grammar(int argc, char **argv)
{
    static const struct argp_option known[] = {
        {"json-schema", KEY_JSON_SCHEMA, NULL, 0, "FILE is a JSON Schema", 0},
        {"gbnf", KEY_GBNF, NULL, 0, "FILE is a GBNF grammar", 0},
        {"regex", KEY_REGEX, NULL, 0, "FILE is a regular expression", 0},
        {"check", 'c', "TEXTFILE", 0, "Say whether the grammar accepts this text; may be given several times",
         0},
        {0}};
    static const struct argp argp = {
        .options = known,
        .parser = parse,
        .args_doc = "FILE",
        .doc =
            "Compiles the grammar or JSON Schema in FILE as a worker would, and prints the error if it does "
            "not compile."
            "\vWithout an option, FILE's suffix determines its kind: .json, .gbnf or .regex. Each text is "
            "accepted, a prefix of an accepted one, or leaves the grammar at a byte; bytes count from 0. A "
            "newline at the end of a file is optional. - is stdin. The exit status is 0 if the grammar "
            "compiles and accepts every text."};
    struct options options = {.checks = calloc((size_t)argc, sizeof *options.checks)};
    struct error err = {0};
    if (!options.checks)
        return verb_fail(-ENOMEM, &err);
    arguments_parse(&argp, argc, argv, &options);
    int status = run(&options);
    free(options.checks);
    return status;
}
