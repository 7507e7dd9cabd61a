/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_CHAT_CONVERSATION_H
#define CLIENT_COMMAND_CHAT_CONVERSATION_H

/* The turns of a conversation, in the form that the next request sends, and as a file:
 *
 *     {"messages": [{"role": "user", "content": "Hi"},
 *                   {"role": "assistant", "content": "Hello.", "reasoning_content": "A greeting."}]}
 *
 * which is also the body of a request to /v1/chat/completions. */

#include <stddef.h>

#include <quern.h>

#include "common/bytes.h"
#include "common/error.h"

#define CONVERSATION_MAX_BYTES (64u << 20) /* of a file that is read */

struct conversation {
    struct quern_message *turns; /* [n]; owns their texts */
    size_t n, cap;
};

/* Adds a turn with copies of its texts; an empty thought counts as none. `role` is a literal. 0 or
 * -ENOMEM. */
int conversation_add(struct conversation *conversation, const char *role, struct bytes text,
                     struct bytes thought);

/* Replaces the system message at the beginning; "" removes it. 0 or -ENOMEM. */
int conversation_set_system(struct conversation *conversation, const char *text);

/* Forgets the turns from the n-th on. */
void conversation_forget_from(struct conversation *conversation, size_t n);

/* Writes the conversation to a file, all or nothing. -errno with a reason. */
int conversation_save(const struct conversation *conversation, const char *path, struct error *err);

/* Replaces the conversation by one from a file, which may be an export of the gateway's page. On failure it
 * is unchanged: -errno with a reason that names the message, such as one that calls a tool, or an unanswered
 * last one. */
int conversation_load(struct conversation *conversation, const char *path, struct error *err);

void conversation_deinit(struct conversation *conversation);

#endif
