/* SPDX-License-Identifier: MIT */
/* A table that is searched whole: the first numbers are for requests that name no model, by their kind, the
 * last ones for all that found no number of their own, by their kind and whether their model is known. What
 * was begun has had a worker with its model. */

#include "broker/choose/targets.h"

#include <string.h>

#define FIRST_NAMED REQUEST_KINDS
#define FIRST_OTHER (TARGETS_SHARED_UNKNOWN - REQUEST_KINDS)

#define NONE TARGETS_MAX

_Static_assert(TARGETS_UNKNOWN_MAX <= (FIRST_OTHER - FIRST_NAMED) / 2, "known ones always have as many");

static struct target target_of(const struct request *request)
{
    struct target target = {.kind = request->queued_kind, .begun = request->has_digest};
    if (request->has_digest)
        memcpy(target.digest, request->digest, sizeof target.digest);
    target.model_len = (uint32_t)request->model.len;
    if (target.model_len > 0)
        memcpy(target.model, request->model.data, target.model_len);
    return target;
}

static bool may_have_one(const struct targets *targets, const struct id128 *client)
{
    unsigned n = 0, of_client = 0;
    for (unsigned i = FIRST_NAMED; i < FIRST_OTHER; i++) {
        bool counts = targets->n[i] > 0 && targets->unknown[i];
        n += counts;
        of_client += counts && memcmp(&targets->client[i], client, sizeof *client) == 0;
    }
    return n < TARGETS_UNKNOWN_MAX && of_client < TARGETS_UNKNOWN_EACH;
}

/* The number of a target that has one; else NONE, and *ret_vacant is a free number, or NONE. */
static unsigned find(const struct targets *targets, const struct target *target, unsigned *ret_vacant)
{
    *ret_vacant = NONE;
    for (unsigned i = FIRST_OTHER; i-- > FIRST_NAMED;) {
        if (targets->n[i] == 0)
            *ret_vacant = i;
        else if (memcmp(&targets->items[i], target, sizeof *target) == 0)
            return i;
    }
    return NONE;
}

static unsigned number_of(struct targets *targets, const struct request *request)
{
    bool unknown = !request->model_known && !request->has_digest;
    unsigned vacant, shared = (unknown ? TARGETS_SHARED_UNKNOWN : FIRST_OTHER) + request->queued_kind;
    if (request->model.len == 0 && !request->has_digest)
        return request->queued_kind;
    if (request->model.len > PROTO_MAX_NAME_BYTES)
        return shared;
    const struct target target = target_of(request);
    unsigned number = find(targets, &target, &vacant);
    if (number != NONE) {
        targets->unknown[number] &= unknown;
        return number;
    }
    if (vacant == NONE || (unknown && !may_have_one(targets, request_client(request))))
        return shared;
    targets->items[vacant] = target;
    targets->unknown[vacant] = unknown;
    targets->client[vacant] = *request_client(request);
    return vacant;
}

unsigned targets_enter(struct targets *targets, const struct request *request)
{
    unsigned number = number_of(targets, request);
    targets->n[number]++;
    return number;
}

void targets_leave(struct targets *targets, unsigned number)
{
    targets->n[number]--;
}

void targets_know(struct targets *targets, struct bytes model)
{
    for (unsigned i = FIRST_NAMED; i < FIRST_OTHER; i++) {
        const struct target *target = &targets->items[i];
        if (targets->n[i] > 0 && bytes_equal(model, (struct bytes){target->model, target->model_len}))
            targets->unknown[i] = false;
    }
}
