/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_REQUEST_ENCODE_H
#define CLIENT_LIB_REQUEST_ENCODE_H

#include <quern.h>

#include "common/bytes.h"
#include "common/error.h"
#include "proto/message.h"

/* Appends the encoded generate to ret_wire and tells the seed it has. -EINVAL names what is out of range,
 * -EMSGSIZE what is beyond the pool's limits; -ENOMEM. What was appended until then is of no use. */
int request_encode(const struct limits *limits, const struct id128 *id, const struct quern_request *from,
                   struct buffer *ret_wire, uint64_t *ret_seed, struct error *err);

#endif
