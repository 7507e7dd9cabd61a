/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_REQUESTS_REQUEST_ENCODE_H
#define CLIENT_LIB_REQUESTS_REQUEST_ENCODE_H

#include <quern.h>

#include "common/bytes.h"
#include "common/error.h"
#include "proto/message.h"

struct quern_encoded;

/* Encodes the generate without its id and seed. 0; -EINVAL with the value out of range; -EMSGSIZE with the
 * pool's limit that is exceeded; -ENOMEM. */
int request_encode(const struct limits *limits, const struct quern_request *from,
                   struct quern_encoded **ret_encoded, struct error *err);

/* The same for an encoded request, with the output received so far. */
int request_encode_resumed(const struct limits *limits, const struct quern_encoded *from,
                           const struct quern_resume *resume, struct quern_encoded **ret_encoded,
                           struct error *err);

/* The messages of a request in the protocol's form: [n_messages], which the caller frees; texts are borrowed
 * from the request. NULL: out of memory. */
struct chat_message *request_messages(const struct quern_request *request);

#endif
