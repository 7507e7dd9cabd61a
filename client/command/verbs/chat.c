/* SPDX-License-Identifier: MIT */
/* quern chat: a conversation on a terminal.
 *
 * The whole conversation goes to the pool with each turn; the model's chat template makes a prompt of it
 * there. What the model said becomes part of it as it was printed, a stopped answer up to where it was
 * stopped. Ctrl-C stops an answer, never the program; Ctrl-D or /exit ends it. Each line is a turn, and what
 * is pasted, quoted or continued one of several lines (turn.h, line_editor.h); a slash and a word are a
 * command (chat_commands.h). While the user thinks, the session with the pool is kept alive. */

#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/command/arguments.h"
#include "client/command/chat/chat_commands.h"
#include "client/command/terminal/answer.h"
#include "client/command/terminal/interrupt.h"
#include "client/command/terminal/io.h"
#include "client/command/terminal/line_editor.h"
#include "client/command/pool/pool.h"
#include "client/command/request_arguments.h"
#include "client/command/status_view.h"
#include "client/command/terminal/thoughts.h"
#include "client/command/terminal/turn.h"
#include "client/command/terminal/wrap.h"
#include "client/command/verbs.h"
#include <quern.h>
#include "common/program/arguments.h"
#include "common/bytes.h"
#include "common/utf8.h"

struct chat_options {
    struct request_arguments common;
    const char *system;
};

struct chat {
    struct chat_state state;
    struct quern *client;
    struct line_editor *editor;
    struct buffer answer, thought;
    struct thoughts thoughts;
    struct wrap wrap; /* of the answer on a terminal */
    int status;       /* of a conversation that cannot go on; 0 */
};

/* ---- a turn ---- */

/* As a terminal gets it: without what it would obey, and broken between words. */
static int show(void *arg, const char *text, size_t len)
{
    struct chat *chat = arg;
    struct buffer clean = {0}, broken = {0};
    if (chat->wrap.columns == 0)
        return io_write_text(text, len);
    int r = utf8_append_shown(&clean, (struct bytes){text, len});
    if (r == 0)
        r = wrap_append(&chat->wrap, (struct bytes){clean.data, clean.len}, &broken);
    if (r == 0)
        r = io_write(broken.data, broken.len);
    buffer_deinit(&clean);
    buffer_deinit(&broken);
    return r;
}

/* What was under way when the user had enough is neither shown nor remembered. */
static int take_piece(void *arg, const struct quern_output *piece)
{
    struct chat *chat = arg;
    if (interrupt_signal())
        return 0;
    const int r = thoughts_take(&chat->thoughts, piece);
    return r == -EINTR ? 0 : r;
}

/* The answer to the conversation, printed and added to it; a turn that is refused is forgotten. `before` is
 * where it began. */
static int take_answer(struct chat *chat, size_t before, struct error *err)
{
    struct conversation *conversation = &chat->state.conversation;
    struct quern_request request = *chat->state.request;
    struct answer answer;
    request.messages = conversation->turns;
    request.n_messages = conversation->n;
    request.marks = chat->thoughts.known;
    chat->answer.len = chat->thought.len = 0;
    wrap_begin(&chat->wrap, io_redraws(STDOUT_FILENO) ? status_columns() : 0);
    line_editor_quiet(chat->editor, true);
    int r = thoughts_begin(&chat->thoughts, &request, show, chat, &chat->answer, &chat->thought);
    if (r == 0)
        r = answer_follow(chat->client, &request, take_piece, chat, &answer, err);
    const int unwritten = thoughts_end(&chat->thoughts);
    line_editor_quiet(chat->editor, false);
    if (r < 0)
        return r;
    if (unwritten < 0 && unwritten != -EINTR && answer.unwritten == 0)
        answer.unwritten = unwritten;
    bool failed = answer.reason == QUERN_ERROR;
    if (answer.unwritten == 0 && (!failed || chat->answer.len > 0))
        answer.unwritten = io_write("\n", 1);
    if (answer.interrupted && interrupt_signal() == SIGINT) {
        interrupt_forget();
        answer.reason = QUERN_STOP; /* as the user wished */
        answer.interrupted = false;
    }
    int status = answer_report(&answer);
    if (answer.unwritten < 0 || answer.interrupted)
        chat->status = status;
    if (failed) {
        if (before > 0 && strcmp(answer.error, "too_long") == 0)
            fputs("(/reset begins a new conversation)\n", stderr);
        conversation_forget_from(conversation, before);
        return 0;
    }
    return conversation_add(conversation, "assistant", (struct bytes){chat->answer.data, chat->answer.len},
                            (struct bytes){chat->thought.data, chat->thought.len});
}

static int take_turn(struct chat *chat, const char *text, struct error *err)
{
    const size_t before = chat->state.conversation.n;
    int r = conversation_add(&chat->state.conversation, "user", bytes_of_string(text), (struct bytes){0});
    return r < 0 ? r : take_answer(chat, before, err);
}

/* Does what the turn asks for; false: to end. */
static bool obey(struct chat *chat, const struct turn *turn, int *ret_r, struct error *err)
{
    const char *text = (const char *)turn->text.data;
    enum chat_command_result result = CHAT_SAID;
    if (!turn->quoted)
        *ret_r = chat_command(&chat->state, text, &result, err);
    if (result == CHAT_SAID && text[strspn(text, " \t\r\n")])
        *ret_r = take_turn(chat, text, err);
    return result != CHAT_LEAVE;
}

/* What the conversation is with, and how to find out more. */
static void greet(const struct chat *chat)
{
    fprintf(stderr, "%s\n/help lists commands; /exit or Ctrl-D ends, Ctrl-C stops an answer\n",
            chat->state.model);
}

static int converse(struct chat *chat, struct line_editor *editor, struct error *err)
{
    struct turn turn = {0};
    int r = chat_state_reset(&chat->state);
    if (line_editor_interactive(editor))
        greet(chat);
    while (r == 0 && chat->status == 0) {
        int got = turn_read(&turn, editor, err);
        if (got <= 0) {
            r = got;
            if (line_editor_interactive(editor)) /* the shell's prompt begins a line */
                io_write("\n", 1);
            break;
        }
        if (!obey(chat, &turn, &r, err))
            break;
    }
    if (interrupt_signal() && chat->status == 0)
        chat->status = interrupt_status();
    turn_deinit(&turn);
    return r;
}

static void keep_alive(void *arg)
{
    struct chat *chat = arg;
    quern_dispatch(chat->client, 0, NULL);
}

/* ---- the verb ---- */

enum { KEY_SYSTEM = 256 };

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
    case ARGP_KEY_ARG:
        argument_refuse_model(state, arg);
        return ARGP_ERR_UNKNOWN;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The name of the model that answers. */
static const char *model_of(struct quern *client, const struct quern_request *request)
{
    size_t n;
    const struct quern_model *models = quern_models(client, &n);
    return request->model ? request->model : n > 0 ? models[0].name : "";
}

static int chat_with(struct chat_options *options, struct pool *pool)
{
    struct quern *client = pool_client(pool);
    struct quern_request *request = &options->common.request;
    struct chat chat = {.client = client, .state = {.request = request, .system = options->system}};
    /* A copy: the client's list changes with the pool. */
    char *model = strdup(model_of(client, request));
    struct line_editor *editor = NULL;
    struct error err = {0};
    int r;
    if (!request_has_chat_template(chat.client))
        r = error_set(&err, -EINVAL, "the model has no chat template; quern run --raw continues any text");
    else
        r = line_editor_new(keep_alive, &chat, &editor, &err);
    chat.state.model = model ? model : "";
    thoughts_init(&chat.thoughts, chat.client);
    chat.editor = editor;
    if (r == 0)
        r = converse(&chat, editor, &err);
    thoughts_deinit(&chat.thoughts);
    line_editor_free(editor);
    chat_state_deinit(&chat.state);
    free(model);
    buffer_deinit(&chat.answer);
    buffer_deinit(&chat.thought);
    wrap_deinit(&chat.wrap);
    return r < 0 ? verb_fail(r, &err) : chat.status;
}

int verb_chat(int argc, char **argv)
{
    struct chat_options options = {0};
    request_arguments_init(&options.common);
    const struct argp_child children[] = {{&options.common.argp, 0, NULL, 0}, {0}};
    static const struct argp_option known[] = {
        {"system", KEY_SYSTEM, "TEXT", 0, "System message of the conversation", 0}, {0}};
    const struct argp argp = {
        .children = children,
        .options = known,
        .parser = parse,
        .doc = "Holds a conversation. Each line is a turn; so are lines enclosed in \"\"\", lines joined by "
               "a backslash at their end, and pasted text. Commands begin with a slash: /set NAME VALUE, "
               "/show, /save FILE, /load FILE, /reset, /help, /exit. Ctrl-C stops an answer, Ctrl-D "
               "ends.\vWithout --connect and --model: uses the running pool, or starts a private one with "
               "$QUERN_MODEL or the demo model."};
    struct error err = {0};
    struct pool *pool;
    options.common.request.max_tokens = 0; /* not said */
    request_arguments_describe(&options.common, "max_tokens",
                               "Max tokens of an answer (default: to the end of the context)");
    arguments_parse(&argp, argc, argv, &options);
    interrupt_catch();
    int r = pool_open(&options.common.pool, &pool, &err);
    int status = EXIT_FAILURE;
    if (r == 0) {
        status = chat_with(&options, pool);
        pool_close(pool);
    } else {
        verb_fail(r, &err);
        status = r == -EINTR ? interrupt_status() : EXIT_FAILURE;
    }
    request_arguments_deinit(&options.common);
    return status;
}
