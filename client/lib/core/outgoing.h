/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_CORE_OUTGOING_H
#define CLIENT_LIB_CORE_OUTGOING_H

/* What a client says to its broker. Nothing here waits: 0, or -EAGAIN when too much is under way already,
 * -EINVAL or -EMSGSIZE with a reason when the message cannot be sent at all, another -errno of the socket's.
 * Whoever has a timer that asks again need not look. */

#include "client/lib/core/state.h"

/* Any message. */
int outgoing_message(struct quern *client, const struct message *message, struct error *err);
/* One that is encoded already. */
int outgoing_bytes(struct quern *client, const struct buffer *bytes, struct error *err);
/* The generate of a request, with its id and seed, if it is no longer than a message may be. */
int outgoing_generate(struct quern *client, const struct request *request, struct error *err);
/* The next part of a longer one; counts it in request->parts_sent. */
int outgoing_part(struct quern *client, struct request *request, struct error *err);
/* The broker drops larger messages without a word. 0 or -EMSGSIZE. */
int outgoing_check_size(const struct quern *client, size_t len, struct error *err);
/* The same of a generate, which may be longer than a message where the pool takes parts. */
int outgoing_check_generate(const struct quern *client, size_t len, struct error *err);
/* Whether a generate of so many bytes goes in parts. */
bool outgoing_in_parts(const struct quern *client, size_t len);

int outgoing_hello(struct quern *client);
int outgoing_join(struct quern *client); /* with the nonce that the welcome must repeat */
int outgoing_ping(
    struct quern *client); /* with what was taken, up to TAKEN_AT_ONCE, which is forgotten then */
int outgoing_bye(struct quern *client);
int outgoing_cancel(struct quern *client, const struct request *request, struct error *err);
int outgoing_attach(struct quern *client, const struct request *request, struct error *err);
int outgoing_replay(struct quern *client, const struct request *request); /* from what was delivered on */

#endif
