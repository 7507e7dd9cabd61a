/* SPDX-License-Identifier: MIT */
/* Frames are found whatever the pieces are in which they come. */

#include "tests/unit/run.h"

#include <stdio.h>
#include <string.h>

#include "broker/wire/zmtp.h"

/* What was found, in letters: a digit for the flags of each header, '.' for each byte of a body, '!' where it
 * is no ZMTP 3. */
static void read_in_pieces(const uint8_t *bytes, size_t n, size_t piece, char ret_found[256])
{
    struct zmtp zmtp = {0};
    char *out = ret_found;
    for (size_t at = 0; at < n;) {
        enum zmtp_what what;
        size_t given = n - at < piece ? n - at : piece, taken = zmtp_take(&zmtp, bytes + at, given, &what);
        ck_assert_uint_ge(taken, 1);
        ck_assert_uint_le(taken, given);
        at += taken;
        if (what == ZMTP_HEADER)
            out += sprintf(out, "%u", zmtp.flags);
        for (size_t i = 0; what == ZMTP_BODY && i < taken; i++)
            *out++ = '.';
        if (what == ZMTP_BROKEN) {
            *out++ = '!';
            break;
        }
    }
    *out = 0;
}

static void check(const uint8_t *bytes, size_t n, const char *expected)
{
    char found[256];
    for (size_t piece = 1; piece <= n; piece++) {
        read_in_pieces(bytes, n, piece, found);
        ck_assert_str_eq(found, expected);
    }
}

START_TEST(frames_are_found_in_pieces_of_any_length)
{
    static const uint8_t frames[] = "\4\3abc\1\0\0\2de\2\0\0\0\0\0\0\0\4fghi\7\0\0\0\0\0\0\0\0\0\1j\2\0\0";
    uint8_t bytes[ZMTP_GREETING_BYTES + sizeof frames - 1] = {0xff, [9] = 0x7f, 3};
    memcpy(bytes + ZMTP_GREETING_BYTES, frames, sizeof frames - 1);
    check(bytes, sizeof bytes, "4...10..2....70.");
}
END_TEST

START_TEST(lengths_are_eight_bytes_of_which_the_first_counts_most)
{
    static const uint8_t header[] = {ZMTP_LARGE, 1, 2, 3, 4, 5, 6, 7, 8};
    struct zmtp zmtp = {.greeting = ZMTP_GREETING_BYTES};
    enum zmtp_what what = ZMTP_NOTHING;
    for (size_t i = 0; i < sizeof header; i++) {
        ck_assert_int_eq(what, ZMTP_NOTHING);
        ck_assert_uint_eq(zmtp_take(&zmtp, header + i, 1, &what), 1);
    }
    ck_assert_int_eq(what, ZMTP_HEADER);
    ck_assert_uint_eq(zmtp.left, 0x0102030405060708);
    ck_assert_uint_eq(zmtp_take(&zmtp, header, sizeof header, &what), sizeof header);
    ck_assert_int_eq(what, ZMTP_BODY);
    ck_assert_uint_eq(zmtp.left, 0x0102030405060708 - sizeof header);
}
END_TEST

START_TEST(other_protocols_and_versions_are_known)
{
    uint8_t greeting[ZMTP_GREETING_BYTES] = {0xff, [9] = 0x7f, 2};
    check(greeting, sizeof greeting, "!");
    greeting[10] = 3;
    check(greeting, sizeof greeting, "");
    greeting[10] = 4; /* it speaks 3 too */
    check(greeting, sizeof greeting, "");
    greeting[9] = 0x7e; /* ZMTP 1, though the rest is that of 3 */
    check(greeting, sizeof greeting, "!");
    check((const uint8_t *)"GET / HTTP/1.1", 14, "!");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, frames_are_found_in_pieces_of_any_length);
    tcase_add_test(tests, lengths_are_eight_bytes_of_which_the_first_counts_most);
    tcase_add_test(tests, other_protocols_and_versions_are_known);
}

int main(void)
{
    return run_tests("broker/zmtp", add);
}
