/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_LOOP_H
#define CLIENT_LIB_LOOP_H

#include "client/lib/core/state.h"

/* Waits at most this long for messages, handles them, and runs the timers. 0, -EINTR, or the code of a
 * broken session. */
int loop_round(struct quern *client, int wait_ms);

/* -EBUSY with a reason inside a callback, which must not wait; otherwise 0. */
int loop_refuse_inside(const struct quern *client, struct quern_error *ret_err);

#endif
