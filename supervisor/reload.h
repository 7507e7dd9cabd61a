/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_RELOAD_H
#define SUPERVISOR_RELOAD_H

/* The replacement of a pool's processes while it serves: the workers one by one, then the broker, then the
 * gateway, each by the program that stands at its path now. Nobody misses a process that is replaced, since
 * another one can do its work meanwhile: a worker hands what it runs over to the others (alone, it finishes
 * first, as far as the time for draining goes), a broker leaves everything in shared memory to the next, and
 * a gateway goes on with what it answers while the next one takes new connections from the same socket.
 *
 * The supervisor is not replaced. A program that does not come up is taken back. The gateway is last, as it
 * is a client of what is behind it: newer clients of older brokers are the rarer pair. */

#include <stdbool.h>
#include <stdint.h>

#include "supervisor/control.h"
#include "supervisor/children/gateway.h"
#include "supervisor/places.h"

enum reload_stage { RELOAD_NONE, RELOAD_WORKERS, RELOAD_BROKER, RELOAD_GATEWAY };

struct reload { /* zeroed: none is under way */
    enum reload_stage stage;
    bool gateway_alone;
    bool gateway_waits;   /* to be started: too many of those before it still answer */
    uint32_t index;       /* of the place whose worker is replaced */
    uint32_t incarnation; /* that it had before */
    uint64_t began_ns, next_report_ns;
    char text[CONTROL_TEXT_MAX]; /* what is being done */
};

/* Begins, with the workers. */
void reload_begin(struct reload *reload, struct places *places, uint64_t now);

/* Begins, and ends, with the gateway, which there is. */
void reload_begin_gateway(struct reload *reload, struct gateway_child *gateway, uint64_t now);

/* Goes on with workers and gateway as far as that is possible now, and reports. True, once: it is the
 * broker's turn. */
bool reload_turn(struct reload *reload, struct places *places, struct gateway_child *gateway,
                 struct control *control, uint64_t now);

/* The next broker serves: it is the gateway's turn, if there is one. */
void reload_broker_serves(struct reload *reload, const struct places *places, struct gateway_child *gateway,
                          struct control *control, uint64_t now);

/* When it wants a turn at the latest; UINT64_MAX: none is under way. */
uint64_t reload_due(const struct reload *reload);

/* The end for a reason. What is replaced by then stays. */
void reload_failed(struct reload *reload, struct control *control, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
