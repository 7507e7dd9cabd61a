/* SPDX-License-Identifier: MIT */
/* Step by step:
 *
 *     NONE ──begin──▶ WORKERS: place 0 ──ready again──▶ … place n − 1 ──▶ BROKER ──the next one serves──▶
 *     GATEWAY, if HTTP is served ──the next one is ready──▶ NONE
 *     NONE ──begin, with the gateway alone──▶ GATEWAY
 *     any of them ──it does not come up──▶ NONE
 *
 * Of workers the places' records alone are looked at, so it does not matter what happens to a process on the
 * way: one that was killed in the meantime comes back from the new program too. */

#include "supervisor/reload.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"

#define GRACE_NS (15 * CLOCK_NS_PER_S) /* beyond the time for draining: to hand over, and to end */

static void say(struct reload *reload, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct reload *reload, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(reload->text, sizeof reload->text, format, args);
    va_end(args);
    log_info("reload: %s", reload->text);
    reload->next_report_ns = 0;
}

static void replace_worker(struct reload *reload, struct places *places, uint64_t now)
{
    uint64_t patience = places->options->drain_seconds * CLOCK_NS_PER_S + GRACE_NS;
    reload->incarnation = places->places[reload->index].record.incarnation;
    say(reload, "worker-%u is replaced (%u of %u)", reload->index, reload->index + 1, places->n);
    places_replace(places, reload->index, patience, now);
}

void reload_begin(struct reload *reload, struct places *places, uint64_t now)
{
    *reload = (struct reload){.stage = RELOAD_WORKERS, .began_ns = now};
    places_try_anew(places);
    replace_worker(reload, places, now);
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
    if (reload->gateway_alone)
        say(reload, "the gateway was replaced in %.1f s", seconds);
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

void reload_begin_gateway(struct reload *reload, struct gateway_child *gateway, uint64_t now)
{
    *reload = (struct reload){.gateway_alone = true, .began_ns = now};
    replace_gateway(reload, gateway, now);
}

void reload_broker_serves(struct reload *reload, const struct places *places, struct gateway_child *gateway,
                          struct control *control, uint64_t now)
{
    if (gateway->listen_fd < 0)
        done(reload, places, false, control, now);
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
        done(reload, places, true, control, now);
    else if (gateway->trial == GATEWAY_TRIAL_FAILED && gateway->next.pid == 0)
        reload_failed(reload, control, "the new gateway does not serve: %.400s; %s", gateway->reason,
                      gateway->current.serves ? "keeping the old one"
                                              : "the old one is gone and is restarted");
    else
        report(reload, control, now);
}

bool reload_turn(struct reload *reload, struct places *places, struct gateway_child *gateway,
                 struct control *control, uint64_t now)
{
    while (reload->stage == RELOAD_WORKERS) {
        const struct place_record *record = &places->places[reload->index].record;
        bool another = record->incarnation != reload->incarnation;
        report(reload, control, now);
        if (places_took_back(places)) {
            reload_failed(reload, control, "worker-%u: %.400s; restarting the old program", reload->index,
                          record->reason);
        } else if (record->state == PLACE_FAILED && another) {
            reload_failed(reload, control, "worker-%u failed for good: %.400s", reload->index,
                          record->reason);
        } else if (record->state != PLACE_READY || !another) {
            return false;
        } else if (++reload->index < places->n) {
            replace_worker(reload, places, now);
        } else {
            reload->stage = RELOAD_BROKER;
            places_prove(places);
            say(reload, "the broker is replaced");
            report(reload, control, now);
            return true;
        }
    }
    if (reload->stage == RELOAD_BROKER)
        report(reload, control, now);
    if (reload->stage == RELOAD_GATEWAY)
        gateway_turn(reload, places, gateway, control, now);
    return false;
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
    reload->stage = RELOAD_NONE;
    log_error("reload failed: %s", reload->text);
    control_report(control, CONTROL_FAILED, reload->text);
}
