/* SPDX-License-Identifier: MIT */
/* A driver that does not record is no reason to stop: kernels are launched one by one, with the same bits. It
 * is said once, and the next backend asks again. */

#include "tests/unit/cuda/decoding.h"

#include <stdio.h>
#include <stdlib.h>

static struct model *model;
static struct trace expected;
static char said[1024]; /* lines of the backend */

static void hear(void *arg, const char *line)
{
    const size_t len = strlen(said);
    snprintf(said + len, sizeof said - len, "%s\n", line);
}

/* With a variable of the emulated device; NULL: none. */
static struct backend *open_with(const char *name, const char *value)
{
    const struct backend_config config = {.model = model,
                                          .n_slots = SLOTS,
                                          .n_context = 128,
                                          .n_blocks = SLOTS * 4,
                                          .max_rows = 64,
                                          .say = hear};
    struct backend *backend = NULL;
    struct error err = {0};
    said[0] = 0;
    if (name)
        setenv(name, value, 1);
    ck_assert_msg(quern_backend.open(&config, &backend, &err) == 0, "%s", err.text);
    if (name)
        unsetenv(name);
    return backend;
}

/* Opens a backend without faults, and keeps what it decodes. Returns how many recordings it has made. */
static uint64_t expect(void)
{
    struct backend *backend = open_with(NULL, NULL);
    ck_assert_str_eq(said, "");
    decode(backend, &expected);
    const struct device_counts counts = device_counts(backend_device(backend));
    ck_assert_uint_eq(counts.graph_launches, STEPS);
    struct backend_usage usage;
    quern_backend.usage(backend, &usage);
    ck_assert_uint_eq(usage.refused, 0);
    quern_backend.close(backend);
    return counts.captures;
}

/* A backend whose driver refuses decodes with `reason`, from `from` sequences on. */
static void check_refused(const char *name, uint64_t at, const char *reason, unsigned from)
{
    static struct trace found;
    char value[24], line[256];
    snprintf(value, sizeof value, "%llu", (unsigned long long)at);
    struct backend *backend = open_with(name, value);
    snprintf(line, sizeof line,
             "the driver does not record steps of %u or more sequences (emulated: %s): their kernels are "
             "launched one by one until the model is opened again\n",
             from, reason);
    ck_assert_str_eq(said, line);
    struct backend_usage usage;
    uint32_t n_refused = 0;
    for (uint32_t n = 1; n < 2 * SLOTS; n *= 2) /* 1, 2, 4 and 8 rows */
        n_refused += n >= from;
    quern_backend.usage(backend, &usage);
    ck_assert_uint_eq(usage.refused, n_refused);
    const struct device_counts before = device_counts(backend_device(backend));
    decode(backend, &found);
    const struct device_counts after = device_counts(backend_device(backend));
    ck_assert_str_eq(said, line);
    ck_assert_mem_eq(&found, &expected, sizeof found);
    for (uint32_t n = 1; n <= SLOTS; n++)
        ck_assert_msg((backend_decode_kernels(backend, n, false) > 0) == (n < from), "%u", n);
    ck_assert_uint_gt(after.launches, before.launches);
    ck_assert_uint_eq(after.graph_launches > 0, from > 1);
    quern_backend.close(backend);
}

START_TEST(without_recordings_kernels_are_launched_one_by_one)
{
    model = make_model(&decoded_shape, "Q8_0");
    const uint64_t n = expect(); /* the last are of 1, 2, 4 and 8 rows, two of each */
    check_refused("QUERN_EMU_NO_CAPTURE", 1, "no recording begins", 1);
    if (!test_is_scaled()) {
        check_refused("QUERN_EMU_NO_CAPTURE", n - 7, "no recording begins", 1);
        check_refused("QUERN_EMU_NO_GRAPH", 1, "no graph is made", 1);
    }
    check_refused("QUERN_EMU_NO_CAPTURE", n - 3, "no recording begins", 3);
    check_refused("QUERN_EMU_NO_GRAPH", n - 1, "no graph is made", 5);
    ck_assert_uint_eq(expect(), n); /* asked again */
    model_free(model);
}
END_TEST

START_TEST(what_cannot_be_rehearsed_is_served)
{
    static struct trace found;
    model = make_model(&decoded_shape, "Q8_0");
    const uint64_t n = expect();
    struct backend *backend = open_with("QUERN_EMU_SPOIL", "5"); /* in the first */
    const struct device_counts counts = device_counts(backend_device(backend));
    ck_assert_uint_eq(counts.captures, n - 1);
    ck_assert_str_eq(said, "");
    decode(backend, &found);
    ck_assert_mem_eq(&found, &expected, sizeof found);
    quern_backend.close(backend);
    model_free(model);
}
END_TEST

/* A launch somewhere in the recordings: whichever it is, the same comes of it. */
START_TEST(a_launch_that_cannot_be_recorded_spoils_no_step)
{
    model = make_model(&decoded_shape, "Q8_0");
    expect();
    unsigned said_it = 0;
    for (unsigned at = 30; at <= 330; at += test_is_scaled() ? 150 : 60) {
        static struct trace found;
        char value[16];
        snprintf(value, sizeof value, "%u", at);
        struct backend *backend = open_with("QUERN_EMU_SPOIL", value);
        said_it += strstr(said, "(emulated: a launch cannot be recorded)") != NULL;
        decode(backend, &found);
        ck_assert_mem_eq(&found, &expected, sizeof found);
        quern_backend.close(backend);
    }
    ck_assert_uint_gt(said_it, 0);
    model_free(model);
}
END_TEST

/* The check of the device looks at what will serve. */
START_TEST(the_gate_passes_without_recordings)
{
    model = make_model(&decoded_shape, "Q8_0");
    setenv("QUERN_UNCHECKED", "0", 1);
    struct backend *backend = open_with("QUERN_EMU_NO_CAPTURE", "1");
    setenv("QUERN_UNCHECKED", "1", 1);
    ck_assert_uint_eq(backend_decode_kernels(backend, 1, false), 0);
    quern_backend.close(backend);
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, without_recordings_kernels_are_launched_one_by_one);
    tcase_add_test(tests, what_cannot_be_rehearsed_is_served);
    tcase_add_test(tests, a_launch_that_cannot_be_recorded_spoils_no_step);
    tcase_add_test(tests, the_gate_passes_without_recordings);
}

int main(void)
{
    return run_tests("cuda recordings", add);
}
