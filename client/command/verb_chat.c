/* SPDX-License-Identifier: MIT */
/* quern chat: a conversation on a terminal.
 *
 * The whole conversation goes to the pool with each turn; the model's chat template makes a prompt of it
 * there. What the model said becomes part of it as it was printed, a stopped answer up to where it was
 * stopped. Ctrl-C stops an answer, never the program; Ctrl-D or /exit ends it. Lines are edited with libedit
 * where stdin is a terminal; else each line of stdin is a turn. While the user thinks, the session with the
 * pool is kept alive from inside the line editor. */

#include <argp.h>
#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "client/command/output.h"
#include "client/command/pool.h"
#include "client/command/request_arguments.h"
#include "client/command/verbs.h"
#include "client/lib/quern.h"
#include "common/bytes.h"
#include "common/log.h"

#define KEEP_ALIVE_MS 500
#define HISTORY_LINES 1000

struct chat_options {
    struct request_arguments common;
    const char *system;
};

struct chat {
    const struct chat_options *options;
    struct quern *client;
    struct quern_message *turns; /* [n_turns]; their texts are ours */
    size_t n_turns, cap_turns;
    EditLine *editor; /* NULL: stdin is no terminal */
    History *history;
    struct buffer answer;
    bool over, cancelled, write_failed;
    enum quern_reason reason;
    char failure[600];
};

/* ---- the conversation ---- */

static void forget_from(struct chat *chat, size_t n)
{
    while (chat->n_turns > n)
        free((char *)chat->turns[--chat->n_turns].content);
}

static int add_turn(struct chat *chat, const char *role, const char *text, size_t len)
{
    if (chat->n_turns == chat->cap_turns) {
        size_t larger = chat->cap_turns * 2 + 16;
        struct quern_message *moved = realloc(chat->turns, larger * sizeof *moved);
        if (!moved)
            return -ENOMEM;
        chat->turns = moved;
        chat->cap_turns = larger;
    }
    char *copy = strndup(text, len);
    if (!copy)
        return -ENOMEM;
    chat->turns[chat->n_turns++] = (struct quern_message){role, copy};
    return 0;
}

/* To its first state: nothing, or the system's message. */
static int reset(struct chat *chat)
{
    const char *system = chat->options->system;
    forget_from(chat, 0);
    return system ? add_turn(chat, "system", system, strlen(system)) : 0;
}

/* ---- an answer ---- */

static void write_out(struct chat *chat, const char *data, size_t len)
{
    if (!chat->write_failed && len > 0)
        chat->write_failed = output_write(data, len) < 0;
}

static void on_output(void *arg, const struct quern_output *output)
{
    struct chat *chat = arg;
    /* What was under way when the user had enough is neither shown nor remembered. */
    if (!chat->cancelled && !pool_interrupted()) {
        write_out(chat, output->text, output->text_len);
        if (buffer_append(&chat->answer, output->text, output->text_len) < 0)
            chat->write_failed = true;
    }
    if (!output->end)
        return;
    chat->over = true;
    chat->reason = output->end->reason;
    if (chat->reason == QUERN_ERROR)
        snprintf(chat->failure, sizeof chat->failure, "%s: %s", output->end->error, output->end->text);
}

/* Sends the conversation and prints the answer. 0, or -errno when the pool cannot be talked to. */
static int answer(struct chat *chat, struct error *err)
{
    struct quern_request request = chat->options->common.request;
    struct quern_error said = {0};
    struct quern_id id;
    request.messages = chat->turns;
    request.n_messages = chat->n_turns;
    chat->answer.len = 0;
    chat->over = chat->cancelled = false;
    int r = quern_generate(chat->client, &request, on_output, chat, &id, &said);
    if (r == -EINVAL || r == -EMSGSIZE) {
        /* Something about this turn; the conversation can go on without it. */
        chat->reason = QUERN_ERROR;
        snprintf(chat->failure, sizeof chat->failure, "%s", said.text);
        return 0;
    }
    while (r >= 0 && !chat->over) {
        r = quern_dispatch(chat->client, 100, &said);
        if ((pool_interrupted() || chat->write_failed) && !chat->cancelled) {
            chat->cancelled = true;
            quern_cancel(chat->client, id, NULL);
        }
    }
    if (r < 0 && !chat->over)
        return error_set(err, r, "%s", said.text);
    write_out(chat, "\n", 1);
    if (pool_interrupted() == SIGINT)
        pool_forget_interrupt();
    return 0;
}

/* One turn: the user's text, then the model's. */
static int take_turn(struct chat *chat, const char *text, struct error *err)
{
    size_t before = chat->n_turns;
    int r = add_turn(chat, "user", text, strlen(text));
    if (r == 0)
        r = answer(chat, err);
    if (r < 0)
        return r;
    if (chat->reason == QUERN_ERROR) {
        log_error("%s", chat->failure);
        if (before > 0 && strncmp(chat->failure, "too_long", 8) == 0)
            fprintf(stderr, "(/reset begins a new conversation)\n");
        forget_from(chat, before);
        return 0;
    }
    return add_turn(chat, "assistant", (const char *)chat->answer.data, chat->answer.len);
}

/* ---- lines ---- */

/* libedit's source of characters: waits for one, and keeps the session alive meanwhile. 1, 0 at the end, -1
 * when a signal came. */
static int read_character(EditLine *editor, wchar_t *ret_character)
{
    struct chat *chat;
    mbstate_t state = {0};
    el_get(editor, EL_CLIENTDATA, &chat);
    for (;;) {
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        char byte;
        int ready = poll(&input, 1, KEEP_ALIVE_MS);
        if (pool_interrupted())
            return -1;
        quern_dispatch(chat->client, 0, NULL);
        if (ready <= 0)
            continue;
        ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return 0;
        size_t used = mbrtowc(ret_character, &byte, 1, &state);
        if (used == (size_t)-2)
            continue; /* in the middle of a character */
        if (used == (size_t)-1) {
            memset(&state, 0, sizeof state);
            continue;
        }
        return 1;
    }
}

static char *prompt_text(EditLine *editor)
{
    static char text[] = "> ";
    (void)editor;
    return text;
}

static void open_editor(struct chat *chat)
{
    HistEvent event;
    if (!isatty(STDIN_FILENO))
        return;
    setlocale(LC_CTYPE, "");
    chat->editor = el_init("quern", stdin, stdout, stderr);
    if (!chat->editor)
        return;
    chat->history = history_init();
    el_set(chat->editor, EL_CLIENTDATA, chat);
    el_set(chat->editor, EL_PROMPT, prompt_text);
    el_set(chat->editor, EL_EDITOR, "emacs");
    el_set(chat->editor, EL_SIGNAL, 0);
    el_set(chat->editor, EL_GETCFN, read_character);
    if (chat->history) {
        history(chat->history, &event, H_SETSIZE, HISTORY_LINES);
        el_set(chat->editor, EL_HIST, history, chat->history);
    }
}

static void close_editor(struct chat *chat)
{
    if (chat->history)
        history_end(chat->history);
    if (chat->editor)
        el_end(chat->editor);
}

/* The next line without its newline, valid until the next call; NULL at the end. */
static const char *read_line(struct chat *chat, char **line, size_t *size)
{
    if (!chat->editor) {
        ssize_t n = getline(line, size, stdin);
        if (n < 0)
            return NULL;
        (*line)[strcspn(*line, "\r\n")] = 0;
        return *line;
    }
    for (;;) {
        int n;
        HistEvent event;
        const char *got = el_gets(chat->editor, &n);
        if (!got && pool_interrupted() == SIGINT) {
            /* The line is given up, the program is not. */
            pool_forget_interrupt();
            el_reset(chat->editor);
            fputs("\n(Ctrl-D or /exit ends the conversation)\n", stderr);
            continue;
        }
        if (!got || n <= 0)
            return NULL;
        if (chat->history && got[0] != '\n')
            history(chat->history, &event, H_ENTER, got);
        free(*line);
        *line = strndup(got, strcspn(got, "\r\n"));
        return *line;
    }
}

static int converse(struct chat *chat, struct error *err)
{
    char *line = NULL;
    size_t size = 0;
    const char *text;
    int r = reset(chat);
    if (chat->editor)
        fputs("/reset begins a new conversation, /exit or Ctrl-D ends; Ctrl-C stops an answer\n", stderr);
    while (r == 0 && !chat->write_failed && (text = read_line(chat, &line, &size))) {
        if (strcmp(text, "/exit") == 0)
            break;
        if (strcmp(text, "/reset") == 0)
            r = reset(chat);
        else if (text[strspn(text, " \t")])
            r = take_turn(chat, text, err);
        if (pool_interrupted())
            break;
    }
    free(line);
    return r;
}

/* ---- the verb ---- */

enum { KEY_SYSTEM = 256, LONGEST_ANSWER = 1024 };

static int parse(int key, char *arg, struct argp_state *state)
{
    struct chat_options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->common;
        return 0;
    case KEY_SYSTEM:
        options->system = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* An answer may take up to a quarter of the context, so that a conversation has room; -n says otherwise. */
static uint32_t answer_limit(const struct quern *client)
{
    size_t n;
    const struct quern_model *models = quern_models(client, &n);
    uint32_t quarter = n > 0 ? models[0].context / 4 : LONGEST_ANSWER;
    return quarter < 1 ? 1 : quarter < LONGEST_ANSWER ? quarter : LONGEST_ANSWER;
}

static int chat_with(struct chat_options *options, struct pool *pool)
{
    struct chat chat = {.options = options, .client = pool_client(pool)};
    if (options->common.request.max_tokens == 0)
        options->common.request.max_tokens = answer_limit(chat.client);
    struct error err = {0};
    int r;
    if (!request_has_chat_template(chat.client)) {
        r = error_set(&err, -EINVAL, "the model has no chat template; quern run --raw continues any text");
    } else {
        open_editor(&chat);
        r = converse(&chat, &err);
        close_editor(&chat);
    }
    forget_from(&chat, 0);
    free(chat.turns);
    buffer_deinit(&chat.answer);
    if (r < 0)
        return verb_fail(r, &err);
    if (pool_interrupted())
        return 128 + pool_interrupted();
    return chat.write_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int verb_chat(int argc, char **argv)
{
    static const struct argp_child children[] = {{&request_argp, 0, NULL, 0}, {0}};
    static const struct argp_option known[] = {
        {"system", KEY_SYSTEM, "TEXT", 0, "What the model is told before the conversation", 0}, {0}};
    static const struct argp argp = {
        .children = children,
        .options = known,
        .parser = parse,
        .doc =
            "A conversation: each line is a turn. /reset begins anew, /exit or Ctrl-D ends, Ctrl-C stops an "
            "answer.\vWith neither --connect nor --model: talks to the pool that runs, or starts a private "
            "one with $QUERN_MODEL or the model that is shipped."};
    struct chat_options options = {0};
    struct error err = {0};
    struct pool *pool;
    quern_request_init(&options.common.request);
    options.common.request.max_tokens = 0; /* not said */
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    pool_catch_signals();
    int r = pool_open(&options.common.pool, &pool, &err);
    if (r < 0) {
        verb_fail(r, &err);
        return r == -EINTR ? 128 + pool_interrupted() : EXIT_FAILURE;
    }
    int status = chat_with(&options, pool);
    pool_close(pool);
    return status;
}
