/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_RELOAD_H
#define SUPERVISOR_RELOAD_H

/* The replacement of a pool's processes while it serves: the workers one by one, then the broker, then the
 * gateway, each by the program that stands at its path now. Another process takes over the work of one that
 * is replaced: a worker hands its requests to the others (a single one finishes first, within the time for
 * draining), a broker leaves everything to the next in shared memory, and a gateway finishes its answers
 * while the next one accepts connections from the same socket.
 *
 * The number of workers changes in the same way: surplus ones hand over and end before the others are
 * replaced, the next broker is told the number, and then new ones start. Scaling does only that. Draining
 * ends one worker, and undraining starts it again. One operation runs at a time.
 *
 * The supervisor is not replaced. A program that does not come up is taken back. The gateway is last, as it
 * is a client of what is behind it: newer clients of older brokers are the rarer pair. */

#include <stdbool.h>
#include <stdint.h>

#include "supervisor/control.h"
#include "supervisor/children/gateway.h"
#include "supervisor/places.h"

enum reload_stage { RELOAD_NONE, RELOAD_RETIRE, RELOAD_WORKERS, RELOAD_BROKER, RELOAD_GATEWAY, RELOAD_GROW };

struct reload { /* zeroed: none is under way */
    enum reload_stage stage;
    enum control_kind kind;
    bool failed;          /* the last one */
    uint32_t n;           /* the number of workers to have; for drain and undrain: the worker's number */
    uint64_t retired;     /* a bit for each place that was taken out for that */
    uint32_t first, end;  /* places that are waited for, to be empty or ready: [first, end) */
    uint32_t grow_from;   /* places from there on are new */
    bool gateway_too;     /* it was replaced */
    bool gateway_waits;   /* to be started: too many of those before it still answer */
    uint32_t index;       /* of the place whose worker is replaced */
    uint32_t incarnation; /* that it had before */
    uint64_t began_ns, next_report_ns;
    char text[CONTROL_TEXT_MAX]; /* what is being done */
};

/* Begins any operation but the replacement of the gateway alone; `n` as above. */
void reload_begin(struct reload *reload, struct places *places, enum control_kind kind, uint32_t n,
                  uint64_t now);

/* Begins, and ends, with the gateway, which there is. */
void reload_begin_gateway(struct reload *reload, struct gateway_child *gateway, uint64_t now);

/* Continues with workers and gateway as far as possible, and reports. Returns true once, when the broker and
 * the `n` places are next. */
bool reload_turn(struct reload *reload, struct places *places, struct gateway_child *gateway,
                 struct control *control, uint64_t now);

/* The next broker serves: it is the gateway's turn, if there is one. */
void reload_broker_serves(struct reload *reload, const struct places *places, struct gateway_child *gateway,
                          struct control *control, uint64_t now);

/* Of one that is under way: why nothing else is done now. */
const char *reload_says_busy(const struct reload *reload);

/* When it wants a turn at the latest; UINT64_MAX: none is under way. */
uint64_t reload_due(const struct reload *reload);

/* Takes back, after it failed, what was taken out for it. */
void reload_put_back(struct reload *reload, struct places *places, uint64_t now);

/* The end for a reason. What is replaced by then stays. */
void reload_failed(struct reload *reload, struct control *control, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
