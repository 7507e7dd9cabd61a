/* SPDX-License-Identifier: MIT */
/* What a request can say of itself. */

#include "broker/request.h"

static const char *const state_names[] = {
    [REQUEST_QUEUED] = "queued",
    [REQUEST_RUNNING] = "running",
    [REQUEST_CANCELLING] = "cancelling",
    [REQUEST_ENDED] = "ended",
};

const char *request_state_name(enum request_state state)
{
    return state < REQUEST_STATE_COUNT ? state_names[state] : "unknown";
}

bool request_same_body(const struct request *request, const void *body, size_t len)
{
    struct hash128 hash = hash128(body, len, 0);
    if (hash.low != request->body_hash.low || hash.high != request->body_hash.high)
        return false;
    /* Without the body, after the end, the hash alone decides: a client could only deceive itself. */
    return request->state == REQUEST_ENDED || bytes_equal((struct bytes){body, len}, request->body);
}

uint64_t request_overhead(void)
{
    /* The struct, its share of the hash table's buckets, the buffer of its end message. */
    return sizeof(struct request) + 64 + 512;
}
