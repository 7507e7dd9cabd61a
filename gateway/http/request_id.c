/* SPDX-License-Identifier: MIT */
/* See request_id.h. */

#include "gateway/http/request_id.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "common/clock.h"

static bool is_good(const char *text)
{
    size_t len = 0;
    for (; text[len]; len++)
        if (len == REQUEST_ID_BYTES - 1 || text[len] <= ' ' || text[len] > '~')
            return false;
    return len > 0;
}

static void make(char ret_id[REQUEST_ID_BYTES])
{
    uint8_t random[16];
    if (getrandom(random, sizeof random, 0) != sizeof random) {
        const uint64_t now = clock_ns(); /* that it is another one is all that matters */
        memset(random, 0, sizeof random);
        memcpy(random, &now, sizeof now);
    }
    size_t n = (size_t)snprintf(ret_id, REQUEST_ID_BYTES, "req_");
    for (size_t i = 0; i < sizeof random; i++, n += 2)
        snprintf(ret_id + n, 3, "%02x", random[i]);
}

void request_id_take(const char *said, char ret_id[REQUEST_ID_BYTES])
{
    if (said && is_good(said))
        strcpy(ret_id, said);
    else
        make(ret_id);
}
