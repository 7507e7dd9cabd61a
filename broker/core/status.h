/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_STATUS_H
#define BROKER_CORE_STATUS_H

/* The pool's status, read from the books without changing them. */

#include "broker/core/broker.h"

/* Whether this session may see what all clients do: it came through the run directory, without a key. */
bool status_may_see_all(const struct session *asker);
/* Whether it may know of this request: of any, or only of its own client's. */
bool status_may_see(const struct session *asker, const struct request *request);

/* Fills a status_ok that borrows from the broker and from `workers`. */
void status_fill(const struct broker *broker, uint64_t ref, struct worker_status workers[WORKER_MAX],
                 struct message *ret_message);

/* Lists unfinished requests for the status of this session, at most `most`, the oldest first: those of all
 * clients for a session in the run directory, else those of its own client. With a name, only those with that
 * request_id. 0 or -ENOMEM. Call status_requests_free after sending the message. */
struct status_requests {
    struct request_status *items; /* [n] */
    size_t n;
    char (*ids)[2 * sizeof(struct id128) + 1];
};
int status_requests(const struct broker *broker, const struct session *asker, uint32_t most,
                    struct bytes name, struct status_requests *ret_requests);
void status_requests_free(struct status_requests *requests);

/* Lists the models that the pool serves and returns their number. They borrow from the broker. */
size_t status_models(const struct broker *broker, struct model_info models[WORKER_MAX]);

#endif
