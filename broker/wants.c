/* SPDX-License-Identifier: MIT */
/* A table that is searched from its beginning: the first numbers are for requests that name no model, by
 * their kind, the last ones for all that found no number of their own, by their kind. */

#include "broker/wants.h"

#include <string.h>

#define FIRST_NAMED REQUEST_KINDS
#define FIRST_OTHER (WANTS_MAX - REQUEST_KINDS)

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

static unsigned number_of(struct wants *wants, const struct request *request)
{
    unsigned vacant = FIRST_OTHER + request->queued_kind;
    if (request->model.len == 0 && !request->has_digest)
        return request->queued_kind;
    if (request->model.len > PROTO_MAX_NAME_BYTES)
        return vacant;
    const struct want want = want_of(request);
    for (unsigned i = FIRST_OTHER; i-- > FIRST_NAMED;) {
        if (wants->n[i] == 0)
            vacant = i;
        else if (memcmp(&wants->items[i], &want, sizeof want) == 0)
            return i;
    }
    wants->items[vacant] = want;
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
