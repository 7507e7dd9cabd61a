/* SPDX-License-Identifier: MIT */
/* Each difference between device and host is a line, and their bound is one more. The test is the log. */

#include "proto/message.h"
#include "tests/unit/run.h"
#include "worker/instruments/differences.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void __wrap_log_line(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

static char last[512];
static uint32_t n_lines;

void __wrap_log_line(int level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(last, sizeof last, format, args);
    va_end(args);
    n_lines++;
}

/* A session's id, then a request's. */
static const uint8_t *topic_of(uint64_t tag)
{
    static uint8_t topic[2 * sizeof(struct id128)];
    memset(topic, 0x11, sizeof(struct id128));
    memset(topic + sizeof(struct id128), (int)tag, sizeof(struct id128));
    return topic;
}

START_TEST(a_line_names_the_request_and_both_ids_and_the_last_one_says_so)
{
    struct differences differences = {.topic_of = topic_of};
    const struct backend_difference difference = {
        .position = 12, .of_device = 7, .logit_of_device = 1.5f, .of_host = 9, .logit_of_host = 1.25f};
    differences_log(&differences, 0xab, &difference);
    ck_assert_uint_eq(n_lines, 1);
    ck_assert_str_eq(
        last, "host sampling: request abababababababababababababababab, position 12: the device sampled 7 "
              "(logit 1.5), the host 9 (logit 1.25); the host's counts");
    for (uint32_t i = 1; i < DIFFERENCES_LOGGED; i++)
        differences_log(&differences, 0xab, &difference);
    ck_assert_uint_eq(n_lines, DIFFERENCES_LOGGED + 1);
    ck_assert_ptr_nonnull(strstr(last, "counted but not logged"));
    for (int i = 0; i < 3; i++)
        differences_log(&differences, 0xab, &difference);
    ck_assert_uint_eq(n_lines, DIFFERENCES_LOGGED + 1);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_line_names_the_request_and_both_ids_and_the_last_one_says_so);
}

int main(void)
{
    return run_tests("worker/differences", add);
}
