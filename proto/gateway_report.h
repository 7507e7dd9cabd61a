/* SPDX-License-Identifier: MIT */
#ifndef PROTO_GATEWAY_REPORT_H
#define PROTO_GATEWAY_REPORT_H

/* What a gateway says to the supervisor that started it, once, as a record on the socket that it inherits
 * (--report-fd, sent and received by the calls of proto/supervision.h): that it serves, with the pool behind
 * it, or why it cannot. After the first a gateway that is to go is told by SIGUSR1: it takes no more
 * connections, answers what is asked on those that it has, and ends with the last of them.
 *
 * What says nothing of itself, be it of another version, ends or is ended. */

#include <stdint.h>

#define GATEWAY_REPORT_VERSION  1u
#define GATEWAY_REPORT_TEXT_MAX 512

enum gateway_report_kind { GATEWAY_SERVES = 1, GATEWAY_FAILS };

struct gateway_report {
    uint32_t version;
    uint32_t kind;                      /* enum gateway_report_kind */
    char text[GATEWAY_REPORT_TEXT_MAX]; /* GATEWAY_FAILS: why, one line; zero-terminated */
};

#endif
