/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_zap: a question whose answer is yes, with either key; what differs from it in one part; two
 * at once, and one with a part too many. */

#include "tests/fuzz/driver.h"

#include <string.h>

#define KEY "0123456789abcdef0123456789abcdef"

static uint8_t input[1 << 10];
static size_t used;

static void add(const char *const parts[], uint8_t n)
{
    input[used++] = n;
    for (uint8_t i = 0; i < n; i++) {
        const size_t len = strlen(parts[i]);
        input[used++] = (uint8_t)len;
        memcpy(input + used, parts[i], len);
        used += len;
    }
}

static void finish(void)
{
    fuzz_add_seed(input, used);
    used = 0;
}

void fuzz_seeds(void)
{
    static const char *const good[] = {"", "1.0", "7", "quern", "10.0.0.1", "id", "CURVE", KEY, "beyond"};
    static const char *const wrong[] = {"x", "2.0", "", "global", "::1", "", "PLAIN", KEY "0"};
    add(good, 8);
    finish();
    for (uint8_t i = 0; i < 8; i++) {
        const char *parts[8];
        memcpy(parts, good, sizeof parts);
        parts[i] = wrong[i];
        add(parts, 8);
        finish();
    }
    add(wrong, 8);
    add(good, 9);
    add(good, 8);
    finish();
    add(good, 8);
    input[used - 1] = 'F';
    finish();
}
