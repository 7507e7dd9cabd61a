/* SPDX-License-Identifier: MIT */
/* Step by step:
 *
 *     NONE ──begin──▶ RETIRE, if there are to be fewer ──they have ended──▶
 *     WORKERS: place 0 ──ready again──▶ … place n − 1 ──▶ BROKER ──the next one serves──▶
 *     GATEWAY, if HTTP is served ──the next one is ready──▶ GROW, if there are to be more ──ready──▶ NONE
 *     NONE ──new settings──▶ CHECK ──they are good──▶ as above     CHECK ──they are not──▶ NONE
 *     NONE ──begin, with the gateway alone──▶ GATEWAY
 *     NONE ──scale──▶ RETIRE or not ──▶ BROKER ──▶ GROW or not ──▶ NONE
 *     NONE ──drain──▶ RETIRE ──▶ NONE      NONE ──undrain──▶ GROW ──▶ NONE
 *     any of them ──it does not come up──▶ NONE
 *
 * Of workers the places' records alone are looked at, so it does not matter what happens to a process on the
 * way: one that was killed in the meantime comes back from the new program too. */

#include "supervisor/reload.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"

#define GRACE_NS (15 * CLOCK_NS_PER_S) /* beyond the time for draining: to hand over, and to end */

_Static_assert(SUPERVISION_PLACES_MAX <= 64, "a bit for each");

static const char *name_of(enum control_kind kind)
{
    return kind == CONTROL_SCALE     ? "scale"
           : kind == CONTROL_DRAIN   ? "drain"
           : kind == CONTROL_UNDRAIN ? "undrain"
                                     : "reload";
}

static void say(struct reload *reload, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct reload *reload, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(reload->text, sizeof reload->text, format, args);
    va_end(args);
    log_info("%s: %s", name_of(reload->kind), reload->text);
    reload->next_report_ns = 0;
}

static uint64_t patience(const struct places *places)
{
    return places->options->drain_seconds * CLOCK_NS_PER_S + GRACE_NS;
}

static void take_out(struct reload *reload, struct places *places, uint32_t first, uint32_t end, uint64_t now)
{
    reload->stage = RELOAD_RETIRE;
    reload->first = first;
    reload->end = end;
    for (uint32_t i = first; i < end; i++) {
        if (places->places[i].drained)
            continue;
        reload->retired |= 1ull << i;
        places_take_out(places, i, patience(places), now);
    }
    if (end - first == 1)
        say(reload, "worker-%u hands over and ends", first);
    else
        say(reload, "worker-%u to worker-%u hand over and end", first, end - 1);
}

static void replace_worker(struct reload *reload, struct places *places, uint64_t now)
{
    reload->incarnation = places->places[reload->index].record.incarnation;
    say(reload, "worker-%u is replaced (%u of %u)", reload->index, reload->index + 1, places->n);
    places_replace(places, reload->index, patience(places), now);
}

/* The next place whose worker is replaced, from this one on; false: there is none. */
static bool replace_next(struct reload *reload, struct places *places, uint32_t from, uint64_t now)
{
    reload->stage = RELOAD_WORKERS;
    for (reload->index = from; reload->index < places->n; reload->index++)
        if (!places->places[reload->index].drained) {
            replace_worker(reload, places, now);
            return true;
        }
    return false;
}

static void await_ready(struct reload *reload, uint32_t first, uint32_t end)
{
    reload->stage = RELOAD_GROW;
    reload->first = first;
    reload->end = end;
    if (end - first == 1)
        say(reload, "worker-%u is started", first);
    else
        say(reload, "worker-%u to worker-%u are started", first, end - 1);
}

static bool replaces_workers(const struct reload *reload)
{
    return reload->kind == CONTROL_RELOAD || reload->kind == CONTROL_RELOAD_CONFIG;
}

void reload_begin(struct reload *reload, struct places *places, enum control_kind kind, uint32_t n,
                  uint64_t now)
{
    *reload = (struct reload){.kind = kind, .n = n, .began_ns = now, .first = places->n, .end = n};
    if (replaces_workers(reload))
        places_try_anew(places);
    if (kind == CONTROL_DRAIN) {
        take_out(reload, places, n, n + 1, now);
    } else if (kind == CONTROL_UNDRAIN) {
        places_put_back(places, n, now);
        await_ready(reload, n, n + 1);
    } else if (n < places->n) {
        take_out(reload, places, n, places->n, now);
    } else if (kind == CONTROL_SCALE || !replace_next(reload, places, 0, now)) {
        reload->stage = RELOAD_WORKERS; /* none is left to be replaced */
        reload->index = places->n;
    }
}

void reload_put_back(struct reload *reload, struct places *places, uint64_t now)
{
    for (uint32_t i = 0; i < places->n; i++)
        if (reload->retired >> i & 1 && places->places[i].drained && places->places[i].record.pid == 0)
            places_put_back(places, i, now);
        else if (reload->retired >> i & 1)
            places->places[i].drained = false; /* the next one is started when it has ended */
    reload->retired = 0;
}

static void report(struct reload *reload, struct control *control, uint64_t now)
{
    if (now < reload->next_report_ns)
        return;
    reload->next_report_ns = now + CONTROL_EVERY_MS * CLOCK_NS_PER_MS;
    control_report(control, CONTROL_PROGRESS, reload->text);
}

static void done(struct reload *reload, const struct places *places, bool gateway, struct control *control,
                 uint64_t now)
{
    double seconds = (double)(now - reload->began_ns) / (double)CLOCK_NS_PER_S;
    reload->stage = RELOAD_NONE;
    reload->failed = false;
    if (reload->kind == CONTROL_RELOAD_GATEWAY)
        say(reload, "the gateway was replaced in %.1f s", seconds);
    else if (reload->kind == CONTROL_DRAIN)
        say(reload, "worker-%u is drained, after %.1f s; quern undrain worker-%u starts it again", reload->n,
            seconds, reload->n);
    else if (reload->kind == CONTROL_UNDRAIN)
        say(reload, "worker-%u serves again, after %.1f s", reload->n, seconds);
    else if (reload->kind == CONTROL_SCALE)
        say(reload, "the pool has %u worker%s, after %.1f s", places->n, places->n == 1 ? "" : "s", seconds);
    else
        say(reload, "%u worker%s%s were replaced in %.1f s", places->n, places->n == 1 ? "" : "s",
            gateway ? ", the broker and the gateway" : " and the broker", seconds);
    control_report(control, CONTROL_DONE, reload->text);
}

static void replace_gateway(struct reload *reload, struct gateway_child *gateway, uint64_t now)
{
    reload->stage = RELOAD_GATEWAY;
    gateway_child_replace(gateway, now);
    reload->gateway_waits = gateway->trial == GATEWAY_TRIAL_WAITS;
    if (reload->gateway_waits)
        say(reload, "gateways of earlier reloads still have streams to finish");
    else
        say(reload, "the gateway is replaced");
}

void reload_begin_check(struct reload *reload, uint64_t now)
{
    *reload = (struct reload){.kind = CONTROL_RELOAD_CONFIG, .stage = RELOAD_CHECK, .began_ns = now};
    say(reload, "the settings are checked");
}

void reload_refused(struct reload *reload, struct control *control, const char *reason)
{
    reload->stage = RELOAD_NONE;
    snprintf(reload->text, sizeof reload->text, "nothing was changed: %s", reason);
    log_error("%s: %s", name_of(reload->kind), reload->text);
    control_report(control, CONTROL_FAILED, reload->text);
}

void reload_begin_gateway(struct reload *reload, struct gateway_child *gateway, uint64_t now)
{
    *reload = (struct reload){.kind = CONTROL_RELOAD_GATEWAY, .began_ns = now};
    replace_gateway(reload, gateway, now);
}

/* Broker and gateway are what they are to be: new workers are waited for, if there are any. */
static void grow(struct reload *reload, const struct places *places, bool gateway, struct control *control,
                 uint64_t now)
{
    if (reload->grow_from < places->n && reload->kind != CONTROL_RELOAD_GATEWAY) {
        await_ready(reload, reload->grow_from, places->n);
        reload->gateway_too = gateway;
    } else {
        done(reload, places, gateway, control, now);
    }
}

void reload_broker_serves(struct reload *reload, const struct places *places, struct gateway_child *gateway,
                          struct control *control, uint64_t now)
{
    if (gateway->listen_fd < 0 || reload->kind == CONTROL_SCALE)
        grow(reload, places, false, control, now);
    else
        replace_gateway(reload, gateway, now);
}

static void gateway_turn(struct reload *reload, const struct places *places,
                         const struct gateway_child *gateway, struct control *control, uint64_t now)
{
    if (reload->gateway_waits && gateway->trial != GATEWAY_TRIAL_WAITS) {
        reload->gateway_waits = false;
        say(reload, "the gateway is replaced");
    }
    if (gateway->trial == GATEWAY_TRIAL_PASSED)
        grow(reload, places, true, control, now);
    else if (gateway->trial == GATEWAY_TRIAL_FAILED && gateway->next.pid == 0)
        reload_failed(reload, control, "the new gateway does not serve: %.400s; %s", gateway->reason,
                      gateway->current.serves ? "keeping the old one"
                                              : "the old one is gone and is restarted");
    else
        report(reload, control, now);
}

/* True when all that are waited for have ended. */
static bool have_gone(const struct reload *reload, const struct places *places)
{
    for (uint32_t i = reload->first; i < reload->end; i++)
        if (places->places[i].record.pid != 0 || places->places[i].record.state != PLACE_GONE)
            return false;
    return true;
}

/* The first that is waited for and is not ready; NULL: all of them are. One that is drained meanwhile is not
 * waited for. */
static const struct place *first_to_come(const struct reload *reload, const struct places *places)
{
    for (uint32_t i = reload->first; i < reload->end; i++)
        if (!places->places[i].drained && places->places[i].record.state != PLACE_READY)
            return &places->places[i];
    return NULL;
}

/* Workers are all that they are to be: it is the broker's turn. */
static bool turn_to_broker(struct reload *reload, struct places *places, struct control *control,
                           uint64_t now)
{
    reload->stage = RELOAD_BROKER;
    reload->grow_from = places->n;
    if (replaces_workers(reload))
        places_prove(places);
    say(reload, "the broker is replaced");
    report(reload, control, now);
    return true;
}

/* True: it is the broker's turn. */
static bool workers_turn(struct reload *reload, struct places *places, struct control *control, uint64_t now)
{
    while (reload->index < places->n) {
        const struct place *place = &places->places[reload->index];
        const struct place_record *record = &place->record;
        bool another = record->incarnation != reload->incarnation;
        report(reload, control, now);
        if (places_took_back(places)) {
            reload_failed(reload, control, "worker-%u: %.350s%s", reload->index, record->reason,
                          reload->kind == CONTROL_RELOAD ? "; restarting the old program" : "");
            return false;
        }
        if (record->state == PLACE_FAILED && another) {
            reload_failed(reload, control, "worker-%u failed for good: %.400s", reload->index,
                          record->reason);
            return false;
        }
        if (record->state != PLACE_READY || !another)
            return false;
        replace_next(reload, places, reload->index + 1, now);
    }
    return turn_to_broker(reload, places, control, now);
}

/* True: it is the broker's turn. */
static bool retire_turn(struct reload *reload, struct places *places, struct control *control, uint64_t now)
{
    report(reload, control, now);
    if (!have_gone(reload, places))
        return false;
    if (reload->kind == CONTROL_DRAIN) {
        done(reload, places, false, control, now);
        return false;
    }
    if (reload->kind == CONTROL_SCALE || !replace_next(reload, places, 0, now))
        return turn_to_broker(reload, places, control, now);
    return false;
}

static void grow_turn(struct reload *reload, const struct places *places, struct control *control,
                      uint64_t now)
{
    const struct place *place = first_to_come(reload, places);
    if (!place)
        done(reload, places, reload->gateway_too, control, now);
    else if (place->record.state == PLACE_FAILED)
        reload_failed(reload, control, "worker-%u failed for good: %.400s", place->record.index,
                      place->record.reason);
    else
        report(reload, control, now);
}

bool reload_turn(struct reload *reload, struct places *places, struct gateway_child *gateway,
                 struct control *control, uint64_t now)
{
    if (reload->stage == RELOAD_RETIRE && retire_turn(reload, places, control, now))
        return true;
    if (reload->stage == RELOAD_WORKERS && workers_turn(reload, places, control, now))
        return true;
    if (reload->stage == RELOAD_CHECK || reload->stage == RELOAD_BROKER)
        report(reload, control, now);
    if (reload->stage == RELOAD_GATEWAY)
        gateway_turn(reload, places, gateway, control, now);
    if (reload->stage == RELOAD_GROW)
        grow_turn(reload, places, control, now);
    return false;
}

const char *reload_says_busy(const struct reload *reload)
{
    if (reload->restores)
        return "the settings from before a failed reload are being restored; try again when that is done";
    return reload->kind == CONTROL_SCALE     ? "the number of workers is being changed"
           : reload->kind == CONTROL_DRAIN   ? "a worker is being drained"
           : reload->kind == CONTROL_UNDRAIN ? "a drained worker is being started"
                                             : "a reload is already running";
}

uint64_t reload_due(const struct reload *reload)
{
    return reload->stage == RELOAD_NONE ? UINT64_MAX : reload->next_report_ns;
}

void reload_failed(struct reload *reload, struct control *control, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(reload->text, sizeof reload->text, format, args);
    va_end(args);
    if (reload->kind == CONTROL_RELOAD_CONFIG) {
        const size_t len = strlen(reload->text);
        snprintf(reload->text + len, sizeof reload->text - len, "; restoring the old settings");
    }
    reload->stage = RELOAD_NONE;
    reload->failed = true;
    log_error("%s failed: %s", name_of(reload->kind), reload->text);
    control_report(control, CONTROL_FAILED, reload->text);
}
