/* SPDX-License-Identifier: MIT */
/* Why a request is not served: its name in the protocol, and a line for people. */

#include "worker/prepare/refusal.h"

#include <stdarg.h>
#include <stdio.h>

bool refuse(struct refusal *ret_refusal, enum proto_error error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(ret_refusal->reason.text, sizeof ret_refusal->reason.text, format, arguments);
    va_end(arguments);
    ret_refusal->error = error;
    return false;
}
