/* SPDX-License-Identifier: MIT */
/* See intake_log.h. */

#include "broker/wire/intake_log.h"

#include <stdio.h>
#include <string.h>

#include "broker/wire/handshake.h"
#include "common/amount.h"
#include "common/clock.h"
#include "common/log.h"

static const char *describe(enum intake_reason reason, char *text, size_t size)
{
    switch (reason) {
    case INTAKE_NO_ZMTP:
        return "that did not speak ZMTP 3";
    case INTAKE_PARTS:
        snprintf(text, size, "with a message of more than %d parts", INTAKE_MAX_PARTS);
        return text;
    case INTAKE_CONNECTION_BYTES:
        snprintf(text, size, "with messages of more than %zu MiB under way",
                 INTAKE_MAX_CONNECTION_BYTES >> 20);
        return text;
    case INTAKE_ALL_BYTES:
        snprintf(text, size, "with the slowest messages, when all together exceeded %zu MiB",
                 INTAKE_MAX_BYTES >> 20);
        return text;
    case INTAKE_SUBSCRIPTIONS_BYTES:
        snprintf(text, size,
                 "with more subscriptions than %zu bytes, or than %zu of all and %llu more a second",
                 INTAKE_MAX_SUBSCRIBER_BYTES, INTAKE_MAX_SUBSCRIPTION_BYTES,
                 (unsigned long long)INTAKE_SUBSCRIPTION_BYTES_A_S);
        return text;
    case INTAKE_KEY_BYTES:
        snprintf(text, size,
                 "with more subscriptions than %zu bytes of one client's key, or than %llu more a second",
                 INTAKE_MAX_KEY_BYTES, (unsigned long long)INTAKE_KEY_BYTES_A_S);
        return text;
    case INTAKE_NO_KEY:
        snprintf(text, size, "with %d bytes and no subscription among them",
                 2 * INTAKE_SUBSCRIBER_CURVE_BYTES);
        return text;
    case INTAKE_NOT_LET_IN:
        snprintf(text, size, "with more than %d bytes before authentication", HANDSHAKE_MAX_BYTES);
        return text;
    case INTAKE_TIMED_PING:
        return "with a PING that has a time to live";
    case INTAKE_UNUSED:
        snprintf(text, size, "whose sessions were all silent for %d s", INTAKE_UNUSED_S);
        return text;
    default:
        return "";
    }
}

void intake_log_turn(struct intake_log *log, uint64_t now)
{
    uint64_t closed[INTAKE_REASONS], all = 0, more = 0;
    char line[1200] = "", text[160];
    intake_closed(closed);
    for (int i = INTAKE_OTHER + 1; i < INTAKE_REASONS; i++) {
        all += closed[i];
        more += closed[i] - log->said[i];
    }
    if (more == 0 || (log->said_ns > 0 && now - log->said_ns < CLOCK_NS_PER_S))
        return;
    for (int i = INTAKE_OTHER + 1; i < INTAKE_REASONS; i++) {
        size_t at = strlen(line);
        if (closed[i] != log->said[i])
            snprintf(line + at, sizeof line - at, "%s%llu %s", at ? "; " : "",
                     (unsigned long long)(closed[i] - log->said[i]),
                     describe((enum intake_reason)i, text, sizeof text));
    }
    log_warn("closed %s for violations (%llu in all): %s", amount_of(more, "connection").text,
             (unsigned long long)all, line);
    memcpy(log->said, closed, sizeof log->said);
    log->said_ns = now;
}
