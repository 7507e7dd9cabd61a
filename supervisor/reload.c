/* SPDX-License-Identifier: MIT */
/* Step by step:
 *
 *     NONE ──begin──▶ WORKERS: place 0 ──ready again──▶ … place n − 1 ──▶ BROKER ──the next one serves──▶
 * NONE └────────a place failed, or its old program was taken back──────────▶ NONE
 *
 * Looked at are the places' records alone, so it does not matter what happens to a process on the way: one
 * that was killed in the meantime comes back from the new program too. */

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

bool reload_turn(struct reload *reload, struct places *places, struct control *control, uint64_t now)
{
    while (reload->stage == RELOAD_WORKERS) {
        const struct place_record *record = &places->places[reload->index].record;
        bool another = record->incarnation != reload->incarnation;
        report(reload, control, now);
        if (places_took_back(places)) {
            reload_failed(reload, control, "%.400s; the program before is started again", record->reason);
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
    return false;
}

uint64_t reload_due(const struct reload *reload)
{
    return reload->stage == RELOAD_NONE ? UINT64_MAX : reload->next_report_ns;
}

void reload_done(struct reload *reload, const struct places *places, struct control *control, uint64_t now)
{
    reload->stage = RELOAD_NONE;
    say(reload, "%u worker%s and the broker were replaced in %.1f s", places->n, places->n == 1 ? "" : "s",
        (double)(now - reload->began_ns) / (double)CLOCK_NS_PER_S);
    control_report(control, CONTROL_DONE, reload->text);
}

void reload_failed(struct reload *reload, struct control *control, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(reload->text, sizeof reload->text, format, args);
    va_end(args);
    reload->stage = RELOAD_NONE;
    log_error("reload: it failed: %s", reload->text);
    control_report(control, CONTROL_FAILED, reload->text);
}
