/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_CHAT_CHAT_COMMANDS_H
#define CLIENT_COMMAND_CHAT_CHAT_COMMANDS_H

/* The turns of `quern chat` that are commands: a slash and a word, whatever follows. They change the
 * conversation and what goes with its requests, and tell on stderr what they did. */

#include <quern.h>

#include "client/command/chat/conversation.h"
#include "common/error.h"

struct chat_state {
    struct conversation conversation;
    struct quern_request *request; /* its parameters go with every turn */
    const char *system;            /* of a new conversation; NULL: none */
    char *own_system;              /* that a command set, which `system` then is; NULL */
    const char *model;             /* its name */
};

enum chat_command_result {
    CHAT_SAID, /* it is no command, and meant for the model */
    CHAT_DONE,
    CHAT_LEAVE,
};

/* Does what a turn asks for. 0; or -ENOMEM with a reason. A command that fails otherwise has said why. */
int chat_command(struct chat_state *chat, const char *text, enum chat_command_result *ret_result,
                 struct error *err);

/* Begins a new conversation. 0 or -ENOMEM. */
int chat_state_reset(struct chat_state *chat);

void chat_state_deinit(struct chat_state *chat);

#endif
