/* SPDX-License-Identifier: MIT */
#ifndef PROTO_GATEWAY_REPORT_H
#define PROTO_GATEWAY_REPORT_H

/* What a gateway tells the supervisor that started it, as records on the socket that it inherits
 * (--report-fd, sent and received by the calls of proto/supervision.h): first that it serves, with the pool
 * behind it, or why it cannot. SIGUSR1 tells a serving gateway to leave: it stops accepting connections,
 * reports that, answers requests on the connections that it has, and ends with the last of them.
 *
 * A gateway of another version that reports nothing ends or is ended. One that closes its end after the first
 * report, as earlier ones did, is taken to have left when it gets the signal. */

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
