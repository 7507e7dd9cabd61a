/* SPDX-License-Identifier: MIT */
/* See orders.h. An order names the incarnation that it is about, since that may have ended before it came. */

#include "supervisor/orders.h"

#include <signal.h>

#include "common/log.h"

bool orders_take(struct places *places, const struct order *order, uint64_t now)
{
    switch (order->kind) {
    case ORDER_SERVING:
        return true;
    case ORDER_READY:
        places_ready(places, order->index, order->incarnation, now);
        break;
    case ORDER_KILL:
        places_kill(places, order->index, order->incarnation);
        break;
    case ORDER_STOP:
        places_stop(places, SIGTERM);
        break;
    default:
        log_error("unknown order of the broker: %u", order->kind);
    }
    return false;
}
