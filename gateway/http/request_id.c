/* SPDX-License-Identifier: MIT */
/* See request_id.h. */

#include "gateway/http/request_id.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "common/clock.h"
#include "common/hex.h"

/* Its length without the blanks behind it, which HTTP does not count as a part; 0: it is not usable. */
static size_t good_bytes(const char *text)
{
    size_t len = strlen(text);
    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        len--;
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return 0;
    return len < REQUEST_ID_BYTES ? len : 0;
}

static void make(char ret_id[REQUEST_ID_BYTES])
{
    uint8_t random[16];
    if (getrandom(random, sizeof random, 0) != sizeof random) {
        const uint64_t now = clock_ns(); /* that it is another one is all that matters */
        memset(random, 0, sizeof random);
        memcpy(random, &now, sizeof now);
    }
    memcpy(ret_id, "req_", 4);
    hex_write(random, sizeof random, ret_id + 4);
}

void request_id_take(const char *said, char ret_id[REQUEST_ID_BYTES])
{
    const size_t len = said ? good_bytes(said) : 0;
    if (len > 0)
        snprintf(ret_id, REQUEST_ID_BYTES, "%.*s", (int)len, said);
    else
        make(ret_id);
}
