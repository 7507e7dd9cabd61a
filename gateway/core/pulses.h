/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_CORE_PULSES_H
#define GATEWAY_CORE_PULSES_H

/* Timers of silent streams: the head is due a moment after the pool has accepted the request, and then a ping
 * every few seconds, so that neither the client nor a proxy considers the stream dead.
 *
 * All waits of a kind are equally long, so each kind is a list in the order of due times, and a new wait is
 * appended. */

#include <stdint.h>

enum pulse_kind { PULSE_HEAD, PULSE_PING, PULSE_KINDS };

#define PULSES_HEAD_MS 50 /* a rejection by the worker within this time still gets its HTTP status */

typedef void pulse_fn(void *arg);

struct pulse {    /* of one stream; zeroed: not waiting */
    pulse_fn *fn; /* NULL: not waiting */
    void *arg;
    enum pulse_kind kind;
    uint64_t due_ns;
    struct pulse *prev, *next;
};

struct pulses {                         /* zeroed except for wait_ns: none waits */
    uint64_t wait_ns[PULSE_KINDS];      /* 0: that kind is off */
    struct pulse *waiting[PULSE_KINDS]; /* utlist, in the order of due times */
};

/* Starts a wait, replacing an earlier one of this pulse; `fn` is called once, unless the kind is off. */
void pulse_wait(struct pulses *pulses, struct pulse *pulse, enum pulse_kind kind, pulse_fn *fn, void *arg,
                uint64_t now);

/* Ends the pulse's wait. */
void pulse_stop(struct pulses *pulses, struct pulse *pulse);

/* Calls the functions of due pulses; they may start new waits. */
void pulses_run(struct pulses *pulses, uint64_t now);

/* Milliseconds until the next pulse is due, at most `most`; -1: forever. */
int pulses_left_ms(const struct pulses *pulses, uint64_t now, int most);

#endif
