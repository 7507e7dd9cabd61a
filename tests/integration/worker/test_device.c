/* SPDX-License-Identifier: MIT */
/* What a real quern-worker makes of a device that fails while it serves (failing_device.c). */

#include "tests/integration/worker/scripted_broker.h"
#include "tests/unit/run.h"

#include <string.h>

#include "common/program/program.h"

#define LAST_STEP 10 /* as in failing_device.c */

/* Serves on such a device until it fails; returns the exit status. */
static int serve(const char *device, const char *reason)
{
    struct scripted *s = scripted_new((const char *const[]){"--device", device, NULL});
    handshake(s);
    struct message assign = assignment(1, 10, 1000);
    say(s, &assign);
    struct message finished = expect(s, MESSAGE_FINISHED);
    ck_assert_uint_eq(finished.finished.count, LAST_STEP - 1);
    /* Until its last frame is acknowledged it is there, to say why it takes nothing more. */
    assign = assignment(2, 10, 1000);
    say(s, &assign);
    finished = expect(s, MESSAGE_FINISHED);
    ck_assert_uint_eq(finished.finished.count, 0);
    ck_assert_int_eq(finished.finished.end.error, PROTO_MODEL_ERROR);
    ck_assert(bytes_equal(finished.finished.end.text, BYTES_LITERAL("the worker's device failed")));
    struct message ack = {.kind = MESSAGE_ACK};
    ack.ack.wseq = finished.finished.wseq;
    say(s, &ack);
    int status = worker_status(s);
    ck_assert_msg(strstr(worker_stderr(s), reason) != NULL, "%s", worker_stderr(s));
    scripted_free(s);
    return status;
}

START_TEST(a_device_that_is_gone_ends_the_worker_for_good)
{
    ck_assert_int_eq(serve("gone", "null: the device is gone"), PROGRAM_EXIT_PERMANENT);
}
END_TEST

START_TEST(a_device_that_fails_otherwise_may_be_tried_again)
{
    ck_assert_int_eq(serve("broken", "null: the device is broken"), EXIT_FAILURE);
}
END_TEST

/* The exit status of a worker whose device does not open. */
static int load_on(const char *device)
{
    struct scripted *s = scripted_new((const char *const[]){"--device", device, NULL});
    int status = worker_status(s);
    ck_assert_msg(strstr(worker_stderr(s), "the device does not open") != NULL, "%s", worker_stderr(s));
    scripted_free(s);
    return status;
}

START_TEST(a_device_that_fails_while_it_opens_may_be_tried_again_and_a_refused_one_not)
{
    ck_assert_int_eq(load_on("faulty"), EXIT_FAILURE);
    ck_assert_int_eq(load_on("still"), EXIT_FAILURE);
    ck_assert_int_eq(load_on("wrong"), PROGRAM_EXIT_PERMANENT);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, a_device_that_fails_while_it_opens_may_be_tried_again_and_a_refused_one_not);
    tcase_add_test(tests, a_device_that_is_gone_ends_the_worker_for_good);
    tcase_add_test(tests, a_device_that_fails_otherwise_may_be_tried_again);
}

int main(void)
{
    return run_tests("worker device", add);
}
