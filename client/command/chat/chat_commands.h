/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_CHAT_CHAT_COMMANDS_H
#define CLIENT_COMMAND_CHAT_CHAT_COMMANDS_H

/* The commands of `quern chat`: turns that begin with a slash and a word. They change the conversation and
 * the parameters of its requests, and report on stderr what they did. */

#include <quern.h>

#include "client/command/chat/conversation.h"
#include "common/error.h"

struct chat_state {
    struct conversation conversation;
    struct quern_request *request; /* its parameters are sent with every turn */
    const char *system;            /* of a new conversation; NULL: none */
    char *own_system;              /* set by a command; `system` then points to it; NULL: none */
    const char *model;             /* its name */
};

enum chat_command_result {
    CHAT_SAID, /* not a command: a turn for the model */
    CHAT_DONE,
    CHAT_LEAVE,
};

/* Executes a turn if it is a command. 0, or -ENOMEM with a reason. A command that fails otherwise has printed
 * the reason. */
int chat_command(struct chat_state *chat, const char *text, enum chat_command_result *ret_result,
                 struct error *err);

/* Begins a new conversation. 0 or -ENOMEM. */
int chat_state_reset(struct chat_state *chat);

void chat_state_deinit(struct chat_state *chat);

#endif
