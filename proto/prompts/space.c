/* SPDX-License-Identifier: MIT */
/* See space.h. A base is a letter: `s` for shared, `c` and the key for a client with a key, `f` for one on
 * TCP without a key; or nothing. */

#include "proto/prompts/space.h"

#include <stdio.h>
#include <string.h>

#include "common/hex.h"
#include "proto/message.h"

void prompt_space_base(bool shared, const struct id128 *key, bool near, char ret_base[PROMPT_SPACE_BYTES])
{
    size_t n = 0;
    if (shared) {
        ret_base[n++] = 's';
    } else if (key) {
        ret_base[n++] = 'c';
        hex_write(key->bytes, sizeof key->bytes, ret_base + n);
        n += 2 * sizeof key->bytes;
    } else if (!near) {
        ret_base[n++] = 'f';
    }
    ret_base[n] = 0;
}

void prompt_space_set(const char *base, char text[PROMPT_SPACE_BYTES], struct generation *generation)
{
    const bool by_tenant = generation->cache_salt.len == 0 && generation->tenant.len > 0;
    size_t n = 0;
    generation->cache_space = (struct bytes){"", 0};
    if (base[0] == 's')
        return;
    if (base[0] == 'c' || by_tenant || generation->cache_salt.len > 0)
        n = (size_t)snprintf(text, PROMPT_SPACE_BYTES - 1, "%s", base); /* one byte less: for the t */
    if (n > PROMPT_SPACE_BYTES - 2)
        n = PROMPT_SPACE_BYTES - 2;
    if (by_tenant) {
        text[n++] = 't';
        generation->cache_salt = generation->tenant;
    }
    text[n] = 0;
    generation->cache_space = (struct bytes){text, n};
}
