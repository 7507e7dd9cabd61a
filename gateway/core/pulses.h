/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_CORE_PULSES_H
#define GATEWAY_CORE_PULSES_H

/* What is due when a stream has said nothing for a while: its head, a moment after the pool has accepted the
 * request, and then a ping every few seconds, so that neither the client nor a proxy takes it for dead.
 *
 * All waits of a kind are equally long. So each kind is a list in the order of what is due, and to wait anew
 * is to go to its end. */

#include <stdint.h>

enum pulse_kind { PULSE_HEAD, PULSE_PING, PULSE_KINDS };

#define PULSES_HEAD_MS 50 /* in which what a worker refuses still has a status of its own */

typedef void pulse_fn(void *arg);

struct pulse {    /* of one stream; zeroed: nothing is due */
    pulse_fn *fn; /* NULL: it waits for nothing */
    void *arg;
    enum pulse_kind kind;
    uint64_t due_ns;
    struct pulse *prev, *next;
};

struct pulses {                         /* zeroed but for the waits: nobody waits */
    uint64_t wait_ns[PULSE_KINDS];      /* 0: that kind is off */
    struct pulse *waiting[PULSE_KINDS]; /* utlist, what is due first first */
};

/* From now on it waits for this, and for nothing else; its function is called once, unless the kind is off.
 */
void pulse_wait(struct pulses *pulses, struct pulse *pulse, enum pulse_kind kind, pulse_fn *fn, void *arg,
                uint64_t now);

/* It waits for nothing. */
void pulse_stop(struct pulses *pulses, struct pulse *pulse);

/* Calls the functions of those that are due, which may wait anew. */
void pulses_run(struct pulses *pulses, uint64_t now);

/* How many milliseconds until something is due, but at most `most`; -1: without a limit. */
int pulses_left_ms(const struct pulses *pulses, uint64_t now, int most);

#endif
