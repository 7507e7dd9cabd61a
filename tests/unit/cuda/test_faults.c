/* SPDX-License-Identifier: MIT */
/* A device that fails, stands still or is too small: the backend says so, and never waits without end. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "cuda/backend.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/small_model.h"

static const struct backend_slot greedy = {.sampling = SAMPLING_GREEDY, .end_position = 90};
static const int32_t prompt[] = {5, 17, 300, 44};
static const uint32_t block = 0;
static const struct backend_row_set whole_prompt = {
    .ids = prompt, .n_ids = 4, .blocks = {{&block, 1, 0}}, .output = BACKEND_SAMPLE_LAST};
static const struct backend_step step = {&whole_prompt, 1};

static struct model *model;
static struct backend *backend;

/* With an environment variable that the emulated device reads when it is opened. */
static int open_with(const char *name, const char *value, struct error *err)
{
    const struct backend_config config = {
        .model = model, .n_slots = 2, .n_context = 96, .n_blocks = 4, .max_rows = 32};
    setenv(name, value, 1);
    int r = quern_backend.open(&config, &backend, err);
    unsetenv(name);
    return r;
}

static void set_up(void)
{
    model = make_model(&odd_shape, "F32");
    setenv("QUERN_UNCHECKED", "1", 1); /* launches are counted from the first step of the test on */
}

static void tear_down(void)
{
    unsetenv("QUERN_UNCHECKED");
    model_free(model);
}

static int poll_to_the_end(uint64_t ticket, struct error *err)
{
    const struct backend_result *results;
    int r;
    do {
        const uint64_t begun = clock_ns();
        r = quern_backend.poll(backend, ticket, 10, &results, err);
        ck_assert_uint_lt(clock_ns() - begun, 20 * CLOCK_NS_PER_S);
    } while (r == -EAGAIN);
    return r;
}

/* Whatever is asked of a backend that has failed gets the same answer. */
static void check_lost(int code, const char *named)
{
    struct error err = {0};
    uint64_t ticket;
    const struct backend_result *results;
    const struct backend_copy copy = {.blocks = &block, .n = 1, .host = &ticket};
    ck_assert_int_eq(quern_backend.verdict(backend, &err), code);
    ck_assert_msg(strstr(err.text, named) != NULL, "%s", err.text);
    ck_assert_int_eq(quern_backend.submit(backend, &step, &ticket), code);
    ck_assert_int_eq(quern_backend.poll(backend, 1, 0, &results, &err), code);
    ck_assert_int_eq(quern_backend.slot_open(backend, 1, &greedy), code);
    ck_assert_int_eq(quern_backend.copy_out(backend, &copy, &ticket), code);
    quern_backend.trim(backend, 0, 0, 0);
    quern_backend.slot_close(backend, 0);
    quern_backend.close(backend);
}

START_TEST(a_kernel_that_fails_is_named_and_the_device_is_lost)
{
    for (int at = 1; at < 18; at += 4) { /* in the pass of the prompt */
        struct error err = {0};
        char number[16];
        uint64_t ticket;
        snprintf(number, sizeof number, "%d", at);
        ck_assert_msg(open_with("QUERN_EMU_FAULT", number, &err) == 0, "%s", err.text);
        ck_assert_int_eq(quern_backend.slot_open(backend, 0, &greedy), 0);
        int r = quern_backend.submit(backend, &step, &ticket);
        if (r == 0)
            r = poll_to_the_end(ticket, &err);
        ck_assert_int_eq(r, -EIO);
        check_lost(-EIO, "kernel ");
    }
}
END_TEST

START_TEST(a_device_that_stands_still_becomes_a_verdict)
{
    struct error err = {0};
    uint64_t ticket;
    ck_assert_msg(open_with("QUERN_EMU_STALL", "4", &err) == 0, "%s", err.text);
    ck_assert_int_eq(quern_backend.slot_open(backend, 0, &greedy), 0);
    ck_assert_int_eq(quern_backend.verdict(backend, &err), 0);
    ck_assert_int_eq(quern_backend.submit(backend, &step, &ticket), 0);
    ck_assert_int_eq(poll_to_the_end(ticket, &err), -ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(err.text, "made no progress"));
    check_lost(-ETIMEDOUT, "made no progress");
}
END_TEST

START_TEST(logits_are_not_waited_for_without_end)
{
    struct error err = {0};
    float logits[363];
    uint64_t ticket;
    struct backend_row_set set = whole_prompt;
    set.output = BACKEND_LOGITS_LAST;
    set.logits = logits;
    const struct backend_step wanted = {&set, 1};
    ck_assert_msg(open_with("QUERN_EMU_STALL", "4", &err) == 0, "%s", err.text);
    ck_assert_int_eq(quern_backend.slot_open(backend, 0, &greedy), 0);
    ck_assert_int_eq(quern_backend.submit(backend, &wanted, &ticket), -ETIMEDOUT);
    check_lost(-ETIMEDOUT, "made no progress");
}
END_TEST

START_TEST(a_device_that_is_too_small_is_refused_with_numbers)
{
    static const struct {
        const char *bytes, *named;
    } devices[] = {
        {"100000", "the weights alone do not fit"},
        {"5000000", "not even one sequence"},
    };
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        struct error err = {0};
        ck_assert_int_eq(open_with("QUERN_EMU_BYTES", devices[i].bytes, &err), -ENOMEM);
        ck_assert_msg(strstr(err.text, devices[i].named) != NULL, "%s", err.text);
    }
}
END_TEST

/* Weights, all that a step needs, and what may be given back, each with its size. */
START_TEST(an_allocation_that_is_refused_is_named_with_its_size)
{
    static const char *const parts[] = {"for the weights; ", "for KV blocks, slots and steps; "};
    char number[16], form[160];
    double taken = 0, left = 0;
    for (int i = 0; i < 2; i++) {
        struct error err = {0};
        snprintf(number, sizeof number, "%d", i + 1);
        snprintf(form, sizeof form,
                 "the driver did not allocate %%lf MiB of the device's memory %s%%lf MiB are free", parts[i]);
        ck_assert_int_eq(open_with("QUERN_EMU_NO_MEMORY", number, &err), -ENOMEM);
        ck_assert_msg(sscanf(err.text, form, &taken, &left) == 2 && taken >= 2 && left > 8000, "%s",
                      err.text);
    }
    struct error err = {0};
    ck_assert_msg(open_with("QUERN_EMU_NO_MEMORY", "3", &err) == 0, "%s", err.text); /* that is all */
    ck_assert_uint_eq(device_counts(backend_device(backend)).bytes % DEVICE_GRANULE, 0);
    quern_backend.close(backend);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_kernel_that_fails_is_named_and_the_device_is_lost);
    tcase_add_test(tests, a_device_that_stands_still_becomes_a_verdict);
    tcase_add_test(tests, logits_are_not_waited_for_without_end);
    tcase_add_test(tests, a_device_that_is_too_small_is_refused_with_numbers);
    tcase_add_test(tests, an_allocation_that_is_refused_is_named_with_its_size);
}

int main(void)
{
    return run_tests("cuda faults", add);
}
