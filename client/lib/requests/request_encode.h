/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_REQUESTS_REQUEST_ENCODE_H
#define CLIENT_LIB_REQUESTS_REQUEST_ENCODE_H

#include <quern.h>

#include "common/bytes.h"
#include "common/error.h"
#include "proto/message.h"

struct quern_encoded;

/* The generate without its id and seed. -EINVAL names what is out of range, -EMSGSIZE what is beyond the
 * pool's limits; -ENOMEM. */
int request_encode(const struct limits *limits, const struct quern_request *from,
                   struct quern_encoded **ret_encoded, struct error *err);

/* The messages of a request as the protocol has them: [n_messages], freed by the caller, whose texts are the
 * request's; NULL without memory. */
struct chat_message *request_messages(const struct quern_request *request);

#endif
