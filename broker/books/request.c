/* SPDX-License-Identifier: MIT */
/* What a request can say of itself. */

#include "broker/books/request.h"

#include "proto/prompts/space.h"

#include <stdio.h>
#include <string.h>

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

struct request_label request_label(const struct request *request)
{
    struct request_label label;
    const uint8_t *id = request->home.id.bytes;
    snprintf(label.text, sizeof label.text, "%02x%02x%02x%02x%s%.*s", id[0], id[1], id[2], id[3],
             request->name.len > 0 ? " " : "", (int)request->name.len,
             request->name.len > 0 ? (const char *)request->name.data : "");
    return label;
}

bool request_same_body(const struct request *request, const void *body, size_t len)
{
    struct hash128 hash = hash128(body, len, 0);
    if (hash.low != request->body_hash.low || hash.high != request->body_hash.high)
        return false;
    /* Without the body, after the end, the hash alone decides: a client could only deceive itself. */
    return request->state == REQUEST_ENDED || bytes_equal((struct bytes){body, len}, request->body);
}

struct tenancy tenancy_of(struct bytes name, const struct id128 *client, bool near, uint64_t secret)
{
    struct tenancy tenancy = {.named = name.len > 0, .alone = name.len > 0 && near};
    if (!tenancy.named)
        return tenancy;
    uint64_t seed = near ? secret : hash64(client, sizeof *client, secret);
    const struct hash128 hash = hash128(name.data, name.len, seed);
    memcpy(&tenancy.id, &hash, sizeof tenancy.id);
    return tenancy;
}

void request_set_cache_space(const struct request *request, bool shared, char text[PROTO_MAX_SPACE_BYTES + 1],
                             struct generation *generation)
{
    char base[PROMPT_SPACE_BYTES];
    prompt_space_base(shared, request->keyed ? &request->client : NULL, request->near, base);
    prompt_space_set(base, text, generation);
}

int64_t request_due(const struct request *request)
{
    uint64_t ns = request->arrived_ns + REQUEST_PRESSING_NS;
    if (request->deadline_ns < ns)
        ns = request->deadline_ns;
    return (int64_t)ns - request->priority * REQUEST_CLASS_NS;
}

bool request_presses_more(const struct request *a, const struct request *b)
{
    int64_t x = request_due(a), y = request_due(b);
    return x != y ? x < y : a->queue_order < b->queue_order;
}

uint64_t request_overhead(void)
{
    /* The struct, its share of the hash table's buckets, the buffer of its end message. */
    return sizeof(struct request) + 64 + 512;
}
