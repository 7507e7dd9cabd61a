/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PREPARE_REFUSAL_H
#define WORKER_PREPARE_REFUSAL_H

#include <stdbool.h>

#include "common/error.h"
#include "proto/message.h"

/* Why a request is rejected: the error's name in the protocol, and a line for people. */
struct refusal {
    enum proto_error error;
    struct error reason;
};

/* Writes the refusal; returns false, for the caller to return. */
bool refuse(struct refusal *ret_refusal, enum proto_error error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
