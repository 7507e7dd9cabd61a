/* SPDX-License-Identifier: MIT */
/* quern profile on pools that serve: the kernels of some steps come back, and answers stay the same. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include "common/clock.h"

#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS      4
#define TOKENS     (test_is_scaled() ? 8u : 40u)
#define PROMPT     (test_is_scaled() ? "Once" : "Once upon a time there was a mill")
#define PATIENCE_S (test_is_scaled() ? 300 : 90)

static struct pool pool;
static struct quern *client;

static void tear_down(void)
{
    client = quern_free(client);
    pool_forget(&pool);
}

static void answer_of(struct answer *answer)
{
    const struct quern_request request = endless(PROMPT, TOKENS);
    send_request(client, &request, answer);
    await_answers(client, answer, 1, PATIENCE_S);
    ck_assert_str_eq(answer->error, "");
}

/* Requests run, one after the other, until the profile is done: it is asked for all the time, since it ends
 * with whoever wants it. *ret_profile lives until the next call. */
static void measure(const struct answer *undisturbed, const struct quern_profile **ret_profile)
{
    const uint64_t until = clock_ns() + (uint64_t)PATIENCE_S * CLOCK_NS_PER_S;
    const struct quern_request request = endless(PROMPT, TOKENS);
    struct quern_error err = {0};
    bool done = false;
    while (!done) {
        struct answer answer = {0};
        send_request(client, &request, &answer);
        do {
            ck_assert_msg(clock_ns() < until, "it is never done");
            ck_assert_msg(
                quern_profile(client, "worker-0", 77, STEPS, 1000 * PATIENCE_S, ret_profile, &err) == 0, "%s",
                err.text);
            done = (*ret_profile)->done;
        } while (answer.ends == 0 && !done);
        await_answers(client, &answer, 1, PATIENCE_S);
        ck_assert_uint_eq(answer.ids.len, undisturbed->ids.len);
        ck_assert_mem_eq(answer.ids.data, undisturbed->ids.data, answer.ids.len * sizeof *answer.ids.data);
        answer_deinit(&answer);
    }
}

static void check(bool timed)
{
    struct answer undisturbed = {0}, after = {0};
    const struct quern_profile *profile;
    client = connect_to(pool.frontend);
    answer_of(&undisturbed);
    measure(&undisturbed, &profile);
    ck_assert_uint_ge(profile->steps, STEPS);
    ck_assert_uint_ge(profile->n, 5);
    uint64_t ns = 0, sectors = 0, runs = 0;
    for (size_t i = 0; i < profile->n; i++) {
        ck_assert_uint_gt(profile->kernels[i].n, 0);
        ck_assert_str_ne(profile->kernels[i].name, "");
        ns += profile->kernels[i].ns;
        sectors += profile->kernels[i].loaded;
        runs += profile->kernels[i].n;
    }
    ck_assert_uint_ge(runs, 5 * STEPS);
    ck_assert(timed ? ns > 0 : sectors > 0);
    answer_of(&after);
    ck_assert_mem_eq(after.ids.data, undisturbed.ids.data, after.ids.len * sizeof *after.ids.data);
    answer_deinit(&undisturbed);
    answer_deinit(&after);
}

START_TEST(on_the_processor_phases_have_times)
{
    pool_start(&pool, tiny_model(), "--device", "cpu", "--threads", "1", NULL);
    check(true);
}
END_TEST

START_TEST(on_an_emulated_device_kernels_have_counts)
{
    setenv("QUERN_EMU_DEVICES", "1", 1);
    pool_start(&pool, tiny_model(), "--device", "emu", "--slots", "4", "--ctx", "128", NULL);
    check(false);
    unsetenv("QUERN_EMU_DEVICES");
}
END_TEST

/* The memory of this machine is not what a GPU reads, and the emulated driver does not say how fast that is.
 */
START_TEST(a_gpu_without_a_known_bandwidth_has_no_roof)
{
    char command[2048], text[4096];
    struct answer answer = {0};
    const struct quern_request request = endless("On and on", TOKENS);
    setenv("QUERN_EMU_DEVICES", "1", 1);
    pool_start(&pool, tiny_model(), "--device", "emu", "--slots", "4", "--ctx", "128", NULL);
    client = connect_to(pool.frontend);
    snprintf(command, sizeof command, "'%s' profile --steps 1 --roof --connect '%s' 2>&1",
             build_path("quern"), pool.rundir);
    FILE *out = popen(command, "re");
    ck_assert_ptr_nonnull(out);
    struct pollfd said = {.fd = fileno(out)};
    do { /* until it has seen a step, and ended */
        send_request(client, &request, &answer);
        await_answers(client, &answer, 1, PATIENCE_S);
        answer_deinit(&answer);
        ck_assert_int_ge(poll(&said, 1, 0), 0);
    } while (!(said.revents & POLLHUP));
    size_t n = 0, more;
    while ((more = fread(text + n, 1, sizeof text - 1 - n, out)) > 0)
        n += more;
    text[n] = 0;
    ck_assert_int_ne(pclose(out), 0);
    ck_assert_msg(strstr(text, "--roof: the driver does not report the memory bandwidth of worker-0") != NULL,
                  "%s", text);
    unsetenv("QUERN_EMU_DEVICES");
}
END_TEST

/* The command finds the worker, waits for steps, and prints them. */
START_TEST(the_command_prints_the_table)
{
    char command[2048], text[1 << 16];
    pool_start(&pool, tiny_model(), "--device", "cpu", "--threads", "1", NULL);
    client = connect_to(pool.frontend);
    struct answer answer = {0};
    struct quern_request request = endless("On and on", 100000);
    request.fit_context = true;
    const struct quern_id id = send_request(client, &request, &answer);
    await_ids(client, &answer, 1, PATIENCE_S);
    snprintf(command, sizeof command, "'%s' profile --steps 2 --roof --json --connect '%s'",
             build_path("quern"), pool.rundir);
    FILE *out = popen(command, "re");
    ck_assert_ptr_nonnull(out);
    const size_t n = fread(text, 1, sizeof text - 1, out);
    text[n] = 0;
    ck_assert_int_eq(pclose(out), 0);
    json_t *json = json_loads(text, 0, NULL);
    ck_assert_msg(json != NULL, "%s", text);
    ck_assert_str_eq(json_string_value(json_object_get(json, "worker")), "worker-0");
    ck_assert_int_ge(json_integer_value(json_object_get(json, "steps")), 2);
    const json_t *kernels = json_object_get(json, "kernels");
    ck_assert_uint_ge(json_array_size(kernels), 5);
    const double bandwidth = json_real_value(json_object_get(json, "bandwidth"));
    ck_assert_double_gt(bandwidth, 1e6);
    double roofs = 0;
    for (size_t i = 0; i < json_array_size(kernels); i++) {
        const json_t *kernel = json_array_get(kernels, i), *roof = json_object_get(kernel, "roof");
        const double ns = (double)json_integer_value(json_object_get(kernel, "ns")),
                     bytes = (double)json_integer_value(json_object_get(kernel, "bytes"));
        if (roof) /* what it read, of what could be read in that time */
            ck_assert_double_eq_tol(json_real_value(roof), bytes / (bandwidth * ns / 1e9), 1e-4);
        roofs += json_real_value(roof);
    }
    ck_assert_double_gt(roofs, 0);
    json_decref(json);
    ck_assert_int_eq(quern_cancel(client, id, NULL), 0);
    await_answers(client, &answer, 1, PATIENCE_S);
    answer_deinit(&answer);
    ck_assert_int_eq(
        run_program(text, sizeof text, "quern", "profile", "worker-7", "--connect", pool.rundir, NULL), 1);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 380);
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, on_the_processor_phases_have_times);
    if (EMULATED) {
        tcase_add_test(tests, on_an_emulated_device_kernels_have_counts);
        tcase_add_test(tests, a_gpu_without_a_known_bandwidth_has_no_roof);
    }
    tcase_add_test(tests, the_command_prints_the_table);
}

int main(void)
{
    setenv("QUERN_UNCHECKED", "1", 0); /* the gate has tests of its own */
    return run_tests("profile", add);
}
