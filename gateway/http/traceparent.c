/* SPDX-License-Identifier: MIT */
/* See traceparent.h. */

#include "gateway/http/traceparent.h"

#include <stddef.h>
#include <string.h>

static bool are_digits(const char *text, size_t n)
{
    return strspn(text, "0123456789abcdef") >= n;
}

bool traceparent_take(const char *said, char ret_traceparent[TRACEPARENT_BYTES])
{
    if (!said || strlen(said) != TRACEPARENT_BYTES - 1 || memcmp(said, "00-", 3) != 0 || said[35] != '-' ||
        said[52] != '-' || !are_digits(said + 3, 32) || !are_digits(said + 36, 16) ||
        !are_digits(said + 53, 2) || strspn(said + 3, "0") >= 32 || strspn(said + 36, "0") >= 16)
        return false;
    memcpy(ret_traceparent, said, TRACEPARENT_BYTES);
    return true;
}
