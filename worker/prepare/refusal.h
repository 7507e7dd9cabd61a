/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PREPARE_REFUSAL_H
#define WORKER_PREPARE_REFUSAL_H

#include <stdbool.h>

#include "common/error.h"
#include "proto/message.h"

/* Why a request is not served: the name that the protocol has for it, and a line for people. */
struct refusal {
    enum proto_error error;
    struct error reason;
};

/* Writes the refusal; false, so that a caller can return it. */
bool refuse(struct refusal *ret_refusal, enum proto_error error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
