/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_CORE_OUTGOING_H
#define CLIENT_LIB_CORE_OUTGOING_H

/* A client's messages to its broker. Nothing here waits. 0; -EAGAIN: too much is already in flight; -EINVAL
 * or -EMSGSIZE with a reason: the message cannot be sent at all; or another -errno of the socket. Callers
 * that repeat the message by a timer may ignore the result. */

#include "client/lib/core/state.h"

/* Any message. */
int outgoing_message(struct quern *client, const struct message *message, struct error *err);
/* An encoded message. */
int outgoing_bytes(struct quern *client, const struct buffer *bytes, struct error *err);
/* The generate of a request, with its id and seed, if it fits one message. */
int outgoing_generate(struct quern *client, const struct request *request, struct error *err);
/* The next part of a longer one; counts it in request->parts_sent. */
int outgoing_part(struct quern *client, struct request *request, struct error *err);
/* Checks the size of a message: the broker drops larger ones silently. 0 or -EMSGSIZE. */
int outgoing_check_size(const struct quern *client, size_t len, struct error *err);
/* The same for a generate, which may be longer than a message if the pool accepts parts. */
int outgoing_check_generate(const struct quern *client, size_t len, struct error *err);
/* Whether a generate of this many bytes is sent in parts. */
bool outgoing_in_parts(const struct quern *client, size_t len);

int outgoing_hello(struct quern *client);
int outgoing_join(struct quern *client); /* with the nonce that the welcome must repeat */
int outgoing_ping(struct quern *client); /* reports up to TAKEN_AT_ONCE taken answers, and forgets them */
int outgoing_bye(struct quern *client);
int outgoing_cancel(struct quern *client, const struct request *request, struct error *err);
int outgoing_attach(struct quern *client, const struct request *request, struct error *err);
int outgoing_replay(struct quern *client,
                    const struct request *request); /* from the first undelivered id on */

#endif
