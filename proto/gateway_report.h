/* SPDX-License-Identifier: MIT */
#ifndef PROTO_GATEWAY_REPORT_H
#define PROTO_GATEWAY_REPORT_H

/* A gateway's reports to the supervisor that started it: records on an inherited socket (--report-fd; the
 * functions of proto/supervision.h send and receive them). The first says that the gateway serves and has a
 * pool, or why it cannot. SIGUSR1 tells a serving gateway to leave: it stops accepting connections, reports
 * that, answers requests on existing connections, and exits with the last of them.
 *
 * A gateway of another version that reports nothing exits or is terminated. A gateway that closes its end
 * after the first report, as earlier versions did, counts as having left when it gets the signal. */

#include <stdint.h>

#define GATEWAY_REPORT_VERSION  1u
#define GATEWAY_REPORT_TEXT_MAX 512

enum gateway_report_kind { GATEWAY_SERVES = 1, GATEWAY_FAILS, GATEWAY_LEAVES };

struct gateway_report {
    uint32_t version;
    uint32_t kind;                      /* enum gateway_report_kind */
    char text[GATEWAY_REPORT_TEXT_MAX]; /* GATEWAY_FAILS: why, one line; zero-terminated */
};

#endif
