/* SPDX-License-Identifier: MIT */
/* What `quern bench` measures of a model without a pool, and how it says it. */

#include "tests/integration/support/shell.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each number of sequences is measured, with all of them in every step. */
START_TEST(a_benchmark_of_batches_measures_each_number_of_sequences)
{
    ck_assert_msg(shell("$Q/quern bench batch --device cpu -s 1,5,3 -n 6 -r 2 $MODEL") == 0, "%s", err);
    unsigned n[3];
    double rate[3], least[3], most[3], step[3], beside[3];
    const char *rows = strstr(out, "one sequence\n");
    ck_assert_msg(rows != NULL, "%s", out);
    rows = strchr(rows, '\n');
    for (int i = 0; i < 3; i++) {
        ck_assert_msg(sscanf(rows, "%u %lf (%lf to %lf) %lf %lf", &n[i], &rate[i], &least[i], &most[i],
                             &step[i], &beside[i]) == 6,
                      "%s", rows);
        ck_assert(least[i] > 0 && least[i] <= rate[i] && rate[i] <= most[i]);
        rows = strchr(rows + 1, '\n');
    }
    ck_assert(n[0] == 1 && n[1] == 5 && n[2] == 3);
    ck_assert(beside[0] > 0.99 && beside[0] < 1.01);

    ck_assert_int_eq(shell("$Q/quern bench batch --device cpu -s 7 -n 6 -r 1 -J $MODEL"), 0);
    const char *per_step = strstr(out, "step_seconds\":"), *per_second = strstr(out, "tokens_per_second\":");
    ck_assert_msg(per_step && per_second, "%s", out);
    const double ids_of_a_step = atof(strchr(per_step, ':') + 1) * atof(strchr(per_second, ':') + 1);
    ck_assert_msg(ids_of_a_step > 6.99 && ids_of_a_step < 7.01, "%s", out);

    static const struct {
        const char *list, *said;
    } cases[] = {{"0", "0 is out of range 1..256"},
                 {"1,257", "257 is out of range 1..256"},
                 {",", "has no number"},
                 {"2,x", "\"x\" is not a number"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[64];
        snprintf(line, sizeof line, "$Q/quern bench batch -s %s $MODEL", cases[i].list);
        ck_assert_int_eq(shell(line), 2);
        ck_assert_msg(strstr(err, "--sequences") && strstr(err, cases[i].said), "%s", err);
    }
}
END_TEST

/* A line of a text. */
struct drafted {
    double plain, drafting, ratio, least, most, of_cpu;
    unsigned drafted, accepted, same;
};

static struct drafted drafted_of(const char *text)
{
    struct drafted d;
    const char *line = strstr(out, text);
    ck_assert_msg(line && sscanf(line + strlen(text), "%lf %lf %lf (%lf to %lf) %lf %u %u %u", &d.plain,
                                 &d.drafting, &d.ratio, &d.least, &d.most, &d.of_cpu, &d.drafted, &d.accepted,
                                 &d.same) == 9,
                  "%s", out);
    return d;
}

START_TEST(a_benchmark_of_drafts_compares_two_texts)
{
    const unsigned n = test_is_scaled() ? 60 : 300, rounds = test_is_scaled() ? 1 : 3;
    char command[128], measured[128];
    static const char *const texts[] = {"\nrepeating ", "\nrandom "};
    snprintf(command, sizeof command, "$Q/quern bench draft --device cpu -n %u -r %u $MODEL", n, rounds);
    ck_assert_msg(shell(command) == 0, "%s", err);
    snprintf(measured, sizeof measured, "measured %u ids after 256, drafts of at most 8, median of %u\n", n,
             rounds);
    ck_assert_msg(strstr(out, measured), "%s", out);
    struct drafted repeating = drafted_of(texts[0]), random = drafted_of(texts[1]);
    ck_assert(repeating.plain > 0 && repeating.drafting > 0 && random.plain > 0 && random.drafting > 0);
    ck_assert(0 < repeating.least && repeating.least <= repeating.ratio && repeating.ratio <= repeating.most);
    ck_assert(0 < random.least && random.least <= random.ratio && random.ratio <= random.most);
    ck_assert(repeating.of_cpu > 0 && random.of_cpu > 0);
    ck_assert(repeating.same == n && random.same == n);
    ck_assert_msg(repeating.accepted > random.accepted && repeating.accepted <= repeating.drafted, "%s", out);

    /* Counts do not depend on time. */
    snprintf(command, sizeof command, "$Q/quern bench draft --device cpu -n %u -r 1 $MODEL", n);
    ck_assert_int_eq(shell(command), 0);
    ck_assert_uint_eq(drafted_of(texts[0]).drafted, repeating.drafted);
    ck_assert_uint_eq(drafted_of(texts[0]).accepted, repeating.accepted);
    snprintf(command, sizeof command, "$Q/quern bench draft --device cpu --draft 1 -n %u -r 1 -J $MODEL", n);
    snprintf(measured, sizeof measured, "\"same_ids\":%u}]}", n);
    ck_assert_int_eq(shell(command), 0);
    ck_assert_msg(strstr(out, "\"draft\":1,\"texts\":[{\"text\":\"repeating\",") &&
                      strstr(out, "{\"text\":\"random\",") && strstr(out, "\"cpu_ratio\":") &&
                      strstr(out, measured),
                  "%s", out);

    static const struct {
        const char *option, *said;
    } cases[] = {{"--draft 0", "--draft: 0 is out of range 1..64"},
                 {"--draft 65", "--draft: 65 is out of range 1..64"},
                 {"-n 1", "-n: 1 is out of range 2..65536"},
                 {"--kv-type q9", "--kv-type: unknown KV type"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[64];
        snprintf(line, sizeof line, "$Q/quern bench draft %s $MODEL", cases[i].option);
        ck_assert_int_eq(shell(line), 2);
        ck_assert_msg(strstr(err, cases[i].said), "%s", err);
    }
}
END_TEST

START_TEST(benchmarks_say_what_keys_and_values_were_kept_in)
{
    ck_assert_int_eq(shell("$Q/quern bench decode --device cpu -n 2 -r 1 $MODEL"), 0);
    ck_assert_msg(strstr(out, "\nkeys and values  f16\n"), "%s", out);
    ck_assert_int_eq(shell("$Q/quern bench decode --device cpu --kv-type q8_0 -n 2 -r 1 -J $MODEL"), 0);
    ck_assert_msg(strstr(out, "\"kv_type\":\"q8_0\""), "%s", out);
    ck_assert_int_eq(shell("$Q/quern bench batch --device cpu --kv-type q8_0 -s 1 -n 2 -r 1 $MODEL"), 0);
    ck_assert_msg(strstr(out, ", keys and values in q8_0\n"), "%s", out);
    ck_assert_int_eq(shell("$Q/quern bench decode --kv-type q9 $MODEL"), 2);
    ck_assert_msg(strstr(err, "--kv-type: unknown KV type \"q9\""), "%s", err);
}
END_TEST

START_TEST(a_profile_is_a_table_of_phases_and_a_backend_without_one_says_so)
{
    ck_assert_int_eq(shell("$Q/quern bench decode --profile --device cpu -n 2 -r 1 \"$MODEL\""), 0);
    const char *title = strstr(out, "\nkernel ");
    ck_assert_msg(title && strstr(title, "share %") && !strstr(title, "sectors"), "%s", out);
    ck_assert_msg(strstr(title, "\nq k v ") && strstr(title, "\nattention ") && strstr(title, "\nall "), "%s",
                  out);
    ck_assert_int_eq(shell("$Q/quern bench decode --profile --device null \"$MODEL\""), 1);
    ck_assert_ptr_eq(strstr(err, "quern: the null backend has "), err);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, shell_open, shell_close);
    tcase_add_test(tests, a_benchmark_of_batches_measures_each_number_of_sequences);
    tcase_add_test(tests, a_benchmark_of_drafts_compares_two_texts);
    tcase_add_test(tests, benchmarks_say_what_keys_and_values_were_kept_in);
    tcase_add_test(tests, a_profile_is_a_table_of_phases_and_a_backend_without_one_says_so);
}

int main(void)
{
    return run_tests("bench", add);
}
