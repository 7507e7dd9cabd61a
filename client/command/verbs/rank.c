/* SPDX-License-Identifier: MIT */
/* quern rank: how well texts answer a query, by a model that ranks; the best first.
 *
 * Each document is a request of its own, a few at a time. Nothing is printed until all have ended, and
 * nothing if one of them fails. The first Ctrl-C cancels all. */

#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/command/arguments.h"
#include "client/command/pool/pool_arguments.h"
#include "client/command/terminal/interrupt.h"
#include "client/command/terminal/io.h"
#include "client/command/verbs.h"
#include <quern.h>
#include "common/bytes.h"
#include "common/clock.h"
#include "common/program/arguments.h"
#include "common/program/program.h"
#include "common/utf8.h"

#define MOST_AT_ONCE   32
#define MAX_FILE       (64u << 20)
#define DISPATCH_MS    100
#define CANCEL_WAIT_NS (10 * CLOCK_NS_PER_S)

enum { KEY_JSON = 256, KEY_TOP_N };

struct document {
    struct ranking *ranking;
    const char *text;
    float score;
    struct quern_id id;
    bool running;
};

struct ranking {
    struct pool_options pool;
    const char *query;
    char **words; /* documents that are arguments */
    size_t n_words;
    const char *path; /* of more of them, a line each; "-": stdin; NULL: none */
    uint32_t top_n;   /* 0: all */
    bool json;

    struct quern *client;
    struct buffer file;
    struct document *documents; /* [n] */
    size_t n, sent, running;
    uint64_t prompt_tokens;
    bool failed; /* which was said; no more are sent */
};

static int parse(int key, char *arg, struct argp_state *state)
{
    struct ranking *ranking = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &ranking->pool;
        return 0;
    case KEY_JSON:
        ranking->json = true;
        return 0;
    case KEY_TOP_N:
        ranking->top_n = (uint32_t)argument_number(state, "--top-n", arg, 1, INT32_MAX);
        return 0;
    case 'f':
        ranking->path = arg;
        return 0;
    case ARGP_KEY_ARGS:
        ranking->query = state->argv[state->next];
        ranking->words = state->argv + state->next + 1;
        ranking->n_words = (size_t)(state->argc - state->next - 1);
        return 0;
    case ARGP_KEY_END:
        if (!ranking->query)
            argp_error(state, "no query");
        if (ranking->n_words == 0 && !ranking->path)
            argp_error(state, "no documents: give them as arguments, or in a file with -f");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option known_options[] = {
    {"file", 'f', "FILE", 0, "Documents, one on each line, after those of the arguments; -: stdin", 1},
    {"top-n", KEY_TOP_N, "N", 0, "Print the N best (default: all)", 1},
    {"json", KEY_JSON, NULL, 0, "Print one JSON object instead: results and prompt_tokens", 1},
    {0},
};

/* ---- documents ---- */

static int add_document(struct ranking *ranking, const char *text, const char *where, size_t number,
                        struct error *err)
{
    if (text[0] == 0)
        return error_set(err, -EINVAL, "%.200s %zu is empty", where, number);
    ranking->documents[ranking->n++] = (struct document){.ranking = ranking, .text = text};
    return 0;
}

/* Those of the file, whose lines become texts. */
static int add_lines(struct ranking *ranking, struct error *err)
{
    char *line = (char *)ranking->file.data, *end = line + ranking->file.len;
    char where[256];
    int r = 0;
    if (!ranking->path)
        return 0;
    snprintf(where, sizeof where, "%s: line", strcmp(ranking->path, "-") == 0 ? "stdin" : ranking->path);
    for (size_t number = 1; line < end && r == 0; number++) {
        char *behind = memchr(line, '\n', (size_t)(end - line));
        behind = behind ? behind : end;
        *behind = 0;
        if (strlen(line) < (size_t)(behind - line))
            return error_set(err, -EINVAL, "%s %zu contains a zero byte", where, number);
        if (behind > line && behind[-1] == '\r')
            behind[-1] = 0;
        r = add_document(ranking, line, where, number, err);
        line = behind + 1;
    }
    return r;
}

static int read_documents(struct ranking *ranking, struct error *err)
{
    struct buffer *file = &ranking->file;
    size_t n = ranking->n_words;
    int r = 0;
    if (ranking->path && strcmp(ranking->path, "-") == 0)
        r = io_read_stdin(file, MAX_FILE, "the list of documents", err);
    else if (ranking->path)
        r = io_read_file(ranking->path, MAX_FILE, file, err);
    if (r == 0 && file->len > 0 && buffer_append(file, "", 1) == 0) /* room for the last line's end */
        file->len--;
    else if (r == 0 && file->len > 0)
        r = error_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < file->len; i++)
        n += file->data[i] == '\n' || i + 1 == file->len;
    ranking->documents = r == 0 ? calloc(n + 1, sizeof *ranking->documents) : NULL;
    if (r == 0 && !ranking->documents)
        r = error_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < ranking->n_words && r == 0; i++)
        r = add_document(ranking, ranking->words[i], "document", i, err);
    if (r == 0)
        r = add_lines(ranking, err);
    if (r == 0 && ranking->n == 0)
        r = error_set(err, -EINVAL, "%s has no documents", ranking->path);
    return r;
}

/* ---- scores ---- */

static void cancel_all(struct ranking *ranking)
{
    for (size_t i = 0; i < ranking->sent; i++)
        if (ranking->documents[i].running)
            quern_cancel(ranking->client, ranking->documents[i].id, NULL);
}

/* Says why there will be no answer, once. */
static void fail(struct ranking *ranking, const struct document *document, const char *error,
                 const char *text)
{
    if (ranking->failed)
        return;
    ranking->failed = true;
    if (!interrupt_signal())
        program_error("document %zu: %s%s%s", (size_t)(document - ranking->documents), error,
                      error[0] ? ": " : "", text);
    cancel_all(ranking);
}

static void on_output(void *arg, const struct quern_output *output)
{
    struct document *document = arg;
    struct ranking *ranking = document->ranking;
    if (!output->end)
        return;
    document->running = false;
    ranking->running--;
    ranking->prompt_tokens += output->end->prompt_tokens;
    if (output->embedding && output->n_embedding > 0)
        document->score = output->embedding[0];
    else
        fail(ranking, document, output->end->error,
             output->end->text[0] ? output->end->text : quern_reason_name(output->end->reason));
}

/* Sends what may be under way. 0; or -errno with a reason if the pool is lost. */
static int send_some(struct ranking *ranking, struct error *err)
{
    while (!ranking->failed && ranking->sent < ranking->n && ranking->running < MOST_AT_ONCE) {
        struct document *document = &ranking->documents[ranking->sent];
        struct quern_request request;
        struct quern_error said = {0};
        quern_request_init(&request);
        request.text = ranking->query;
        request.text_len = strlen(ranking->query);
        request.document = document->text;
        request.special = false;
        request.embed = true;
        int r = quern_generate(ranking->client, &request, on_output, document, &document->id, &said);
        if (r == -EAGAIN)
            return 0; /* later */
        if (r == -EINVAL || r == -EMSGSIZE)
            fail(ranking, document, "", said.text);
        else if (r < 0)
            return error_set(err, r, "%s", said.text);
        else {
            document->running = true;
            ranking->sent++;
            ranking->running++;
        }
    }
    return 0;
}

/* Until all have ended. 0; or -errno with a reason if the pool is lost. */
static int follow(struct ranking *ranking, struct error *err)
{
    uint64_t cancelled_ns = 0;
    int r = send_some(ranking, err);
    while (r == 0 && (ranking->running > 0 || (!ranking->failed && ranking->sent < ranking->n))) {
        struct quern_error said = {0};
        int made = quern_dispatch(ranking->client, DISPATCH_MS, &said);
        if (made < 0)
            return error_set(err, made, "%s", said.text);
        if (!cancelled_ns && (interrupt_signal() || ranking->failed)) {
            cancelled_ns = clock_ns();
            ranking->failed = true;
            cancel_all(ranking);
        }
        if (cancelled_ns && clock_ns() - cancelled_ns > CANCEL_WAIT_NS)
            return error_set(err, -ETIMEDOUT, "the pool did not end the requests");
        r = send_some(ranking, err);
    }
    return r;
}

/* ---- what comes of it ---- */

/* The best first; of equal ones, the one that was named first. */
static int compare(const void *a, const void *b)
{
    const struct document *x = *(const struct document *const *)a, *y = *(const struct document *const *)b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* "0.98	2	The text", on one line whatever it holds. */
static int write_line(const struct ranking *ranking, const struct document *document)
{
    struct buffer line = {0};
    char head[64];
    int n = snprintf(head, sizeof head, "%.*g\t%zu\t", IO_FLOAT_DIGITS, (double)document->score,
                     (size_t)(document - ranking->documents));
    int r = buffer_append(&line, head, (size_t)n);
    if (r == 0)
        r = buffer_append(&line, document->text, strlen(document->text));
    for (size_t i = (size_t)n; r == 0 && i < line.len; i++)
        if (line.data[i] == '\n' || line.data[i] == '\r')
            line.data[i] = ' ';
    if (r == 0)
        r = buffer_append(&line, "\n", 1);
    if (r == 0)
        r = io_write_text((const char *)line.data, line.len);
    buffer_deinit(&line);
    return r;
}

static int write_json(const struct ranking *ranking, struct document *const *best, size_t n)
{
    json_t *results = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(
            results, json_pack("{s:I, s:f, s:s}", "index", (json_int_t)(best[i] - ranking->documents),
                               "relevance_score", (double)best[i]->score, "document", best[i]->text));
    return io_write_json(
        json_pack("{s:o, s:I}", "results", results, "prompt_tokens", (json_int_t)ranking->prompt_tokens));
}

static int print(const struct ranking *ranking)
{
    const size_t most = ranking->top_n > 0 && ranking->top_n < ranking->n ? ranking->top_n : ranking->n;
    struct document **best = calloc(ranking->n, sizeof(struct document *));
    int r = best ? 0 : -ENOMEM;
    for (size_t i = 0; i < ranking->n && r == 0; i++)
        best[i] = &ranking->documents[i];
    if (r == 0)
        qsort(best, ranking->n, sizeof *best, compare);
    if (r == 0 && ranking->json)
        r = write_json(ranking, best, most);
    for (size_t i = 0; i < most && r == 0 && !ranking->json; i++)
        r = write_line(ranking, best[i]);
    free(best);
    return r;
}

static int rank(struct ranking *ranking)
{
    struct error err = {0};
    int r = follow(ranking, &err);
    if (r < 0)
        return verb_fail(r, &err);
    if (interrupt_signal()) {
        program_error("interrupted");
        return interrupt_status();
    }
    if (ranking->failed)
        return EXIT_FAILURE;
    r = print(ranking);
    if (r == -EPIPE)
        return IO_EXIT_PIPE;
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int verb_rank(int argc, char **argv)
{
    static const struct argp_child children[] = {{&pool_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .children = children,
        .options = known_options,
        .parser = parse,
        .args_doc = "QUERY [DOCUMENT...]",
        .doc = "Ranks documents by how well they answer a query, and prints the best first: the score, the "
               "document's number, counted from 0, and its text, separated by tabs.\vWithout --connect and "
               "--model: uses the running pool, or starts a private one with $QUERN_MODEL or the demo model, "
               "which cannot rank. Newlines in a document are printed as blanks."};
    struct ranking ranking = {0};
    struct error err = {0};
    struct pool *pool;
    arguments_parse(&argp, argc, argv, &ranking);
    int status = EXIT_FAILURE, r = read_documents(&ranking, &err);
    if (r == 0) {
        interrupt_catch();
        r = pool_open(&ranking.pool, &pool, &err);
    }
    if (r == 0) {
        ranking.client = pool_client(pool);
        status = rank(&ranking);
        pool_close(pool);
    } else {
        verb_fail(r, &err);
        status = r == -EINTR ? interrupt_status() : EXIT_FAILURE;
    }
    free(ranking.documents);
    buffer_deinit(&ranking.file);
    return status;
}
