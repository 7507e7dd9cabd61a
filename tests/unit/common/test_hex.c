/* SPDX-License-Identifier: MIT */
/* Bytes as digits. */

#include "common/hex.h"
#include "tests/unit/run.h"

#include <stdio.h>

START_TEST(every_byte_has_its_two_digits)
{
    unsigned char bytes[256];
    char text[513], expected[513];
    for (unsigned i = 0; i < 256; i++) {
        bytes[i] = (unsigned char)i;
        snprintf(expected + 2 * i, 3, "%02x", i);
    }
    hex_write(bytes, sizeof bytes, text);
    ck_assert_str_eq(text, expected);
    hex_write(bytes, 0, text);
    ck_assert_str_eq(text, "");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, every_byte_has_its_two_digits);
}

int main(void)
{
    return run_tests("hex", add);
}
