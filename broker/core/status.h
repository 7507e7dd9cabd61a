/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_STATUS_H
#define BROKER_CORE_STATUS_H

/* How the pool is: read from the books, changing nothing. */

#include "broker/core/broker.h"

/* Fills a status_ok that borrows from the broker and from `workers`. */
void status_fill(const struct broker *broker, uint64_t ref, struct worker_status workers[WORKER_MAX],
                 struct message *ret_message);

/* The models that the pool serves; their number. They borrow from the broker. */
size_t status_models(const struct broker *broker, struct model_info models[WORKER_MAX]);

#endif
