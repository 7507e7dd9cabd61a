/* SPDX-License-Identifier: MIT */
/* A profile begins and ends between two steps, whoever asks for another one meanwhile is refused, and nobody
 * who went away keeps steps slow. The test is the engine and the link. */

#include "tests/unit/run.h"
#include "worker/instruments/profile.h"

#include <errno.h>
#include <string.h>

bool __wrap_link_send(struct link *link, const struct message *message);
int __wrap_engine_profile(struct engine *engine, bool on);
uint32_t __wrap_engine_kernels(struct engine *engine, const struct backend_kernel **ret_kernels);
void __wrap_engine_stats(const struct engine *engine, struct engine_stats *ret_stats);
const struct backend_info *__wrap_engine_backend_info(const struct engine *engine);

static struct profiler profiler;
static struct message said;
static bool measuring;
static int refusal;
static uint64_t steps, now;

bool __wrap_link_send(struct link *link, const struct message *message)
{
    said = *message;
    return true;
}

int __wrap_engine_profile(struct engine *engine, bool on)
{
    if (on && refusal)
        return refusal;
    measuring = on;
    return 0;
}

uint32_t __wrap_engine_kernels(struct engine *engine, const struct backend_kernel **ret_kernels)
{
    static const struct backend_kernel kernels[] = {
        {.name = "head Q8_0", .n = 3, .ns = 70, .bytes = 9, .macs = 8},
        {.name = "attention", .n = 6, .sectors = 5}};
    *ret_kernels = kernels;
    return 2;
}

void __wrap_engine_stats(const struct engine *engine, struct engine_stats *ret_stats)
{
    *ret_stats = (struct engine_stats){.steps = steps};
}

const struct backend_info *__wrap_engine_backend_info(const struct engine *engine)
{
    static const struct backend_info info = {.device = "thing"};
    return &info;
}

static void set_up(void)
{
    now = 1000;
    steps = 40;
    refusal = 0;
    measuring = false;
    profiler_init(&profiler, NULL, NULL);
}

static void ask(uint64_t run)
{
    const struct message question = {.kind = MESSAGE_PROFILE, .profile = {.ref = 5, .run = run, .steps = 3}};
    profiler_take(&profiler, &question, now);
}

START_TEST(steps_are_measured_and_told_once_they_are_made)
{
    ask(9);
    ck_assert_int_eq(said.kind, MESSAGE_PROFILE_OK);
    ck_assert(!said.profile_ok.done && !measuring); /* perhaps in the middle of a step */
    profiler_tend(&profiler, now);
    ck_assert(measuring);
    steps += 2;
    profiler_tend(&profiler, now);
    ask(9);
    ck_assert(!said.profile_ok.done && measuring);
    ck_assert_uint_eq(said.profile_ok.steps, 2);
    steps++;
    profiler_tend(&profiler, now);
    ck_assert(!measuring);
    ask(9);
    ck_assert(said.profile_ok.done);
    ck_assert_uint_eq(said.profile_ok.ref, 5);
    ck_assert_uint_eq(said.profile_ok.steps, 3);
    ck_assert_uint_eq(said.profile_ok.kernels.n, 2);
    const struct kernel_profile *kernels = said.profile_ok.kernels.items;
    ck_assert(bytes_equal(kernels[0].name, BYTES_LITERAL("head Q8_0")));
    ck_assert(kernels[0].n == 3 && kernels[0].ns == 70 && kernels[0].bytes == 9 && kernels[0].macs == 8);
    ck_assert_uint_eq(kernels[1].sectors, 5);
}
END_TEST

START_TEST(one_at_a_time)
{
    ask(9);
    profiler_tend(&profiler, now);
    ask(10);
    ck_assert_int_eq(said.kind, MESSAGE_ERROR);
    ck_assert_int_eq(said.error.error, PROTO_OVERLOADED);
    now += PROFILE_LEASE_NS; /* the first is gone */
    profiler_tend(&profiler, now);
    ck_assert(!measuring);
    ask(9); /* too late */
    ck_assert_int_eq(said.kind, MESSAGE_ERROR);
    ck_assert_int_eq(said.error.error, PROTO_BAD_REQUEST);
    profiler_tend(&profiler, now);
    ck_assert(!measuring);
    ask(10);
    ck_assert_int_eq(said.kind, MESSAGE_PROFILE_OK);
    profiler_tend(&profiler, now);
    ck_assert(measuring);
}
END_TEST

START_TEST(a_device_that_cannot_be_measured_says_so)
{
    refusal = -ENOTSUP;
    ask(9);
    profiler_tend(&profiler, now);
    ask(9);
    ck_assert_int_eq(said.kind, MESSAGE_ERROR);
    ck_assert_int_eq(said.error.error, PROTO_UNSUPPORTED);
    ck_assert_msg(strncmp((const char *)said.error.text.data, "thing: kernels cannot be measured: ", 35) == 0,
                  "%.*s", (int)said.error.text.len, (const char *)said.error.text.data);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, steps_are_measured_and_told_once_they_are_made);
    tcase_add_test(tests, one_at_a_time);
    tcase_add_test(tests, a_device_that_cannot_be_measured_says_so);
}

int main(void)
{
    return run_tests("profile", add);
}
