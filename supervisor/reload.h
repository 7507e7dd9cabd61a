/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_RELOAD_H
#define SUPERVISOR_RELOAD_H

/* Replaces a pool's processes while it serves: the workers one by one, then the broker, then the gateway,
 * each with the program now at its path. A replaced process hands over its work. A worker hands its requests
 * to the others (a single worker finishes them first, within the drain time); a broker leaves everything to
 * the next one in shared memory. A gateway finishes its answers while the next one accepts connections from
 * the same socket.
 *
 * The number of workers changes in the same way: surplus workers hand over and end before the others are
 * replaced, the next broker is told the number, and then new workers start. Scaling does only that. Draining
 * ends one worker, and undraining starts it again. One operation runs at a time.
 *
 * The supervisor is not replaced. A program that does not start is rolled back. The gateway is last, because
 * it is a client of the others: this avoids a newer client with an older broker. */

#include <stdbool.h>
#include <stdint.h>

#include "supervisor/control.h"
#include "supervisor/children/gateway.h"
#include "supervisor/places.h"

enum reload_stage {
    RELOAD_NONE,
    RELOAD_CHECK, /* new settings are checked: nothing has begun */
    RELOAD_RETIRE,
    RELOAD_WORKERS,
    RELOAD_BROKER,
    RELOAD_GATEWAY,
    RELOAD_GROW
};

struct reload { /* zeroed: none is in progress */
    enum reload_stage stage;
    enum control_kind kind;
    bool failed;          /* the last operation */
    bool restores;        /* restores the settings from before a failed operation */
    uint32_t n;           /* the wanted number of workers; for drain and undrain the worker's number */
    uint64_t retired;     /* a bit for each place taken out to reach that number */
    uint32_t first, end;  /* wait until the places [first, end) are empty or ready */
    uint32_t grow_from;   /* places from this number on are new */
    bool gateway_too;     /* the gateway was replaced */
    bool gateway_waits;   /* the gateway cannot start yet: too many earlier gateways still answer */
    uint32_t index;       /* of the place whose worker is replaced */
    uint32_t incarnation; /* its incarnation before */
    uint64_t began_ns, next_report_ns;
    char text[CONTROL_TEXT_MAX]; /* the current progress report */
};

/* Begins any operation except the replacement of the gateway alone; `n` as in struct reload. */
void reload_begin(struct reload *reload, struct places *places, enum control_kind kind, uint32_t n,
                  uint64_t now);

/* New settings are being checked; reload_begin follows, or reload_refused. */
void reload_begin_check(struct reload *reload, uint64_t now);

/* The settings were rejected for this reason: nothing was changed. */
void reload_refused(struct reload *reload, struct control *control, const char *reason);

/* Begins the replacement of the gateway alone; the pool must have one. */
void reload_begin_gateway(struct reload *reload, struct gateway_child *gateway, uint64_t now);

/* Continues with workers and gateway as far as possible, and reports. Returns true once, when the broker and
 * the `n` places are next. */
bool reload_turn(struct reload *reload, struct places *places, struct gateway_child *gateway,
                 struct control *control, uint64_t now);

/* The next broker serves: continues with the gateway, if there is one. */
void reload_broker_serves(struct reload *reload, const struct places *places, struct gateway_child *gateway,
                          struct control *control, uint64_t now);

/* The reason with which other requests are rejected while an operation is in progress. */
const char *reload_says_busy(const struct reload *reload);

/* When to call reload_turn at the latest; UINT64_MAX: none is in progress. */
uint64_t reload_due(const struct reload *reload);

/* After a failure: puts back the places that were taken out. */
void reload_put_back(struct reload *reload, struct places *places, uint64_t now);

/* Ends the operation with this reason. Processes that were already replaced stay. */
void reload_failed(struct reload *reload, struct control *control, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
