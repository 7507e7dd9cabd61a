/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SETUP_H
#define BROKER_SETUP_H

/* Putting a broker together, and taking it apart. */

#include "broker/broker.h"
#include "common/error.h"

/* Binds, and tells the supervisor of `options` that workers may come. On failure everything is undone. 0 or
 * -errno with the reason. */
int broker_init(struct broker *broker, const struct options *options, struct error *err);

/* Ends what is left, and frees everything. Workers are the supervisor's. */
void broker_deinit(struct broker *broker);

#endif
