/* SPDX-License-Identifier: MIT */
/* See chat_commands.h. One table of commands, with their help; a few have a second name, which users know
 * from other programs. */

#include "client/command/chat/chat_commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/amount.h"
#include "common/utf8.h"

#define BLANKS " \t\r\n"

typedef int command_run(struct chat_state *chat, char *rest, struct error *err);

struct command {
    const char *name, *other, *argument, *help;
    command_run *run; /* NULL: it ends the program */
};

int chat_state_reset(struct chat_state *chat)
{
    conversation_forget_from(&chat->conversation, 0);
    return chat->system ? conversation_set_system(&chat->conversation, chat->system) : 0;
}

void chat_state_deinit(struct chat_state *chat)
{
    conversation_deinit(&chat->conversation);
    free(chat->own_system);
}

/* The next word of a text, which is cut out of it; "": there is none. */
static char *next_word(char **rest)
{
    char *word = *rest + strspn(*rest, BLANKS);
    char *end = word + strcspn(word, BLANKS);
    *rest = *end ? end + 1 : end;
    *end = 0;
    return word;
}

/* The text without blanks around it. */
static char *trimmed(char *text)
{
    text += strspn(text, BLANKS);
    size_t len = strlen(text);
    while (len > 0 && strchr(BLANKS, text[len - 1]))
        text[--len] = 0;
    return text;
}

/* Says what failed. It may quote a file, so nothing of it drives the terminal. */
static void tell_failure(const char *what, const struct error *err)
{
    char shown[sizeof err->text];
    fprintf(stderr, "(%s: %s)\n", what, utf8_printable(bytes_of_string(err->text), sizeof shown, shown));
}

/* ---- /set and /show ---- */

static int set_system(struct chat_state *chat, const char *text)
{
    char *copy = strdup(text);
    int r = copy ? conversation_set_system(&chat->conversation, text) : -ENOMEM;
    if (r < 0) {
        free(copy);
        return r;
    }
    free(chat->own_system);
    chat->own_system = copy;
    chat->system = copy;
    fprintf(stderr, text[0] ? "(the system message is set)\n" : "(there is no system message)\n");
    return 0;
}

/* The i-th parameter that users may set; false beyond the last. */
static bool parameter_at(size_t i, struct quern_parameter *ret_parameter)
{
    for (size_t j = 0; quern_parameter(j, ret_parameter); j++)
        if (ret_parameter->letter && i-- == 0)
            return true;
    return false;
}

static bool find_parameter(const char *name, struct quern_parameter *ret_parameter)
{
    for (size_t i = 0; parameter_at(i, ret_parameter); i++)
        if (strcmp(ret_parameter->name, name) == 0)
            return true;
    return false;
}

static void list_parameters(const struct quern_request *request)
{
    struct quern_parameter parameter;
    char value[QUERN_VALUE_BYTES];
    for (size_t i = 0; parameter_at(i, &parameter); i++) {
        quern_request_get(request, parameter.name, value);
        fprintf(stderr, "  %-20s %-8s %s\n", parameter.name, value, parameter.help);
    }
    fputs("  system                        the system message\n", stderr);
}

/* As options are written, and as Ollama calls them. */
static void name_parameter(char *name)
{
    for (char *c = name; *c; c++)
        *c = *c == '-' ? '_' : *c;
}

static int run_set(struct chat_state *chat, char *rest, struct error *err)
{
    struct quern_parameter parameter;
    struct quern_error said;
    char *name = next_word(&rest);
    if (strcmp(name, "parameter") == 0) /* Ollama's way */
        name = next_word(&rest);
    if (name[0] == 0) {
        list_parameters(chat->request);
        return 0;
    }
    char *value = trimmed(rest);
    if (strcmp(name, "system") == 0)
        return set_system(chat, value) < 0 ? error_set(err, -ENOMEM, "out of memory") : 0;
    name_parameter(name);
    if (!find_parameter(name, &parameter))
        fprintf(stderr, "(%.80s: unknown parameter; /set lists them)\n", name);
    else if (value[0] == 0)
        fprintf(stderr, "(/set %s needs a value; \"default\" restores the pool's)\n", name);
    else if (quern_request_set(chat->request, name, strcmp(value, "default") == 0 ? NULL : value, &said) < 0)
        fprintf(stderr, "(%s)\n", said.text);
    else
        fprintf(stderr, "(%s is %s)\n", name, value);
    return 0;
}

static int run_show(struct chat_state *chat, char *rest, struct error *err)
{
    const struct conversation *conversation = &chat->conversation;
    const bool has_system = conversation->n > 0 && strcmp(conversation->turns[0].role, "system") == 0;
    struct quern_parameter parameter;
    struct quern_request defaults;
    char value[QUERN_VALUE_BYTES], usual[QUERN_VALUE_BYTES], system[1024];
    quern_request_init(&defaults);
    fprintf(stderr, "  model: %s\n", chat->model);
    if (has_system)
        fprintf(stderr, "  system: %s\n",
                utf8_printable(bytes_of_string(conversation->turns[0].content), sizeof system, system));
    fprintf(stderr, "  messages: %zu\n", conversation->n - has_system);
    for (size_t i = 0; parameter_at(i, &parameter); i++) {
        quern_request_get(chat->request, parameter.name, value);
        quern_request_get(&defaults, parameter.name, usual);
        if (strcmp(value, usual) != 0)
            fprintf(stderr, "  %s: %s\n", parameter.name, value);
    }
    return 0;
}

/* ---- /save and /load ---- */

static int run_save(struct chat_state *chat, char *rest, struct error *err)
{
    const char *path = trimmed(rest);
    struct error said = {0};
    if (path[0] == 0)
        fputs("(/save needs the name of a file)\n", stderr);
    else if (conversation_save(&chat->conversation, path, &said) < 0)
        tell_failure("not saved", &said);
    else
        fprintf(stderr, "(%s saved to %s)\n", amount_of(chat->conversation.n, "message").text, path);
    return 0;
}

static int run_load(struct chat_state *chat, char *rest, struct error *err)
{
    const char *path = trimmed(rest);
    struct error said = {0};
    if (path[0] == 0)
        fputs("(/load needs the name of a file)\n", stderr);
    else if (conversation_load(&chat->conversation, path, &said) < 0)
        tell_failure("not loaded", &said);
    else
        fprintf(stderr, "(%s loaded from %s)\n", amount_of(chat->conversation.n, "message").text, path);
    return 0;
}

/* ---- the table ---- */

static int run_reset(struct chat_state *chat, char *rest, struct error *err)
{
    return chat_state_reset(chat) < 0 ? error_set(err, -ENOMEM, "out of memory") : 0;
}

static command_run run_help;

static const struct command commands[] = {
    {"set", NULL, " NAME VALUE",
     "sets a parameter of the next answers, or \"system\"; without arguments, lists them", run_set},
    {"show", NULL, "", "shows the model, the system message and the parameters set", run_show},
    {"save", NULL, " FILE", "writes the conversation to a file, as JSON", run_save},
    {"load", NULL, " FILE", "continues the conversation in such a file", run_load},
    {"reset", "clear", "", "begins a new conversation", run_reset},
    {"help", "?", "", "shows this", run_help},
    {"exit", "bye", "", "ends, as Ctrl-D does", NULL},
};
#define N_COMMANDS (sizeof commands / sizeof *commands)

static int run_help(struct chat_state *chat, char *rest, struct error *err)
{
    for (size_t i = 0; i < N_COMMANDS; i++) {
        char usage[32];
        snprintf(usage, sizeof usage, "/%s%s", commands[i].name, commands[i].argument);
        fprintf(stderr, "  %-16s %s\n", usage, commands[i].help);
    }
    fputs("Ctrl-C stops an answer. A line that ends with \\ continues on the next one; \"\"\" opens and "
          "closes a\nturn of several lines.\n",
          stderr);
    return 0;
}

/* The length of a slash and a word, or 0. A path ("/usr/bin") is none, nor a word that fills the first of
 * several lines: those may be pasted. */
static size_t command_length(const char *text)
{
    size_t n = text[0] == '/' ? strspn(text + 1, "abcdefghijklmnopqrstuvwxyz") : 0;
    if (text[0] == '/' && text[1] == '?')
        n = 1;
    return n > 0 && (text[1 + n] == 0 || text[1 + n] == ' ' || text[1 + n] == '\t') ? 1 + n : 0;
}

static const struct command *find(const char *name, size_t len)
{
    for (size_t i = 0; i < N_COMMANDS; i++) {
        const struct command *command = &commands[i];
        if ((strlen(command->name) == len && memcmp(command->name, name, len) == 0) ||
            (command->other && strlen(command->other) == len && memcmp(command->other, name, len) == 0))
            return command;
    }
    return NULL;
}

int chat_command(struct chat_state *chat, const char *text, enum chat_command_result *ret_result,
                 struct error *err)
{
    const size_t len = command_length(text);
    if (len == 0) {
        *ret_result = CHAT_SAID;
        return 0;
    }
    const struct command *command = find(text + 1, len - 1);
    *ret_result = command && !command->run ? CHAT_LEAVE : CHAT_DONE;
    if (!command)
        fprintf(stderr, "(unknown command %.*s; /help lists them)\n", (int)len, text);
    if (!command || !command->run)
        return 0;
    char *rest = strdup(text + len);
    int r = rest ? command->run(chat, rest, err) : error_set(err, -ENOMEM, "out of memory");
    free(rest);
    return r;
}
