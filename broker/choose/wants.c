/* SPDX-License-Identifier: MIT */
/* A table that is searched whole: the first numbers are for requests that name no model, by their kind, the
 * last ones for all that found no number of their own, by their kind and whether their model is known. What
 * was begun has had a worker with its model. */

#include "broker/choose/wants.h"

#include <string.h>

#define FIRST_NAMED REQUEST_KINDS
#define FIRST_OTHER (WANTS_SHARED_UNKNOWN - REQUEST_KINDS)

#define NONE WANTS_MAX

_Static_assert(WANTS_UNKNOWN_MAX <= (FIRST_OTHER - FIRST_NAMED) / 2, "known ones always have as many");

static struct want want_of(const struct request *request)
{
    struct want want = {.kind = request->queued_kind, .begun = request->has_digest};
    if (request->has_digest)
        memcpy(want.digest, request->digest, sizeof want.digest);
    want.model_len = (uint32_t)request->model.len;
    if (want.model_len > 0)
        memcpy(want.model, request->model.data, want.model_len);
    return want;
}

static bool may_have_one(const struct wants *wants, const struct id128 *client)
{
    unsigned n = 0, of_client = 0;
    for (unsigned i = FIRST_NAMED; i < FIRST_OTHER; i++) {
        bool counts = wants->n[i] > 0 && wants->unknown[i];
        n += counts;
        of_client += counts && memcmp(&wants->client[i], client, sizeof *client) == 0;
    }
    return n < WANTS_UNKNOWN_MAX && of_client < WANTS_UNKNOWN_EACH;
}

/* The number of a want that has one; else NONE, and *ret_vacant is one to give, or NONE. */
static unsigned find(const struct wants *wants, const struct want *want, unsigned *ret_vacant)
{
    *ret_vacant = NONE;
    for (unsigned i = FIRST_OTHER; i-- > FIRST_NAMED;) {
        if (wants->n[i] == 0)
            *ret_vacant = i;
        else if (memcmp(&wants->items[i], want, sizeof *want) == 0)
            return i;
    }
    return NONE;
}

static unsigned number_of(struct wants *wants, const struct request *request)
{
    bool unknown = !request->model_known && !request->has_digest;
    unsigned vacant, shared = (unknown ? WANTS_SHARED_UNKNOWN : FIRST_OTHER) + request->queued_kind;
    if (request->model.len == 0 && !request->has_digest)
        return request->queued_kind;
    if (request->model.len > PROTO_MAX_NAME_BYTES)
        return shared;
    const struct want want = want_of(request);
    unsigned number = find(wants, &want, &vacant);
    if (number != NONE) {
        wants->unknown[number] &= unknown;
        return number;
    }
    if (vacant == NONE || (unknown && !may_have_one(wants, request_client(request))))
        return shared;
    wants->items[vacant] = want;
    wants->unknown[vacant] = unknown;
    wants->client[vacant] = *request_client(request);
    return vacant;
}

unsigned wants_enter(struct wants *wants, const struct request *request)
{
    unsigned number = number_of(wants, request);
    wants->n[number]++;
    return number;
}

void wants_leave(struct wants *wants, unsigned number)
{
    wants->n[number]--;
}

void wants_know(struct wants *wants, struct bytes model)
{
    for (unsigned i = FIRST_NAMED; i < FIRST_OTHER; i++) {
        const struct want *want = &wants->items[i];
        if (wants->n[i] > 0 && bytes_equal(model, (struct bytes){want->model, want->model_len}))
            wants->unknown[i] = false;
    }
}
