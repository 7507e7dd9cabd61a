/* SPDX-License-Identifier: MIT */
/* Verbs of quern of which one call fails, at one place after the other: what they print and write is what it
 * always is, or they end with a status of 1 and a line that says why, and leave nothing behind: no part of a
 * file, no private pool.
 *
 * A few places of each kind, spread over all that are passed; with $QUERN_FAULTS_ALL each of them. */

#include "tests/integration/support/pool.h"
#include "tests/integration/support/shell.h"
#include "tests/processes/faults/fault.h"
#include "tests/unit/run.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"

/* An endless wait is a failure; the line is run in a folder of its own, which is empty. */
#define RUN      "cd $WORK && exec timeout 100 $FAULTY/quern "
#define PATIENCE 60

struct verb {
    const char *name, *line;
    const char *has;  /* what it prints each time; NULL: always the same */
    const char *made; /* a line that is true where its files are, and whole; NULL: it makes none */
};

static struct pool pool;
static char work[RUNDIR_PATH_MAX + 16], fired_file[RUNDIR_PATH_MAX + 16];
static char expected[sizeof out];

static bool is_empty(const char *folder)
{
    char line[RUNDIR_PATH_MAX + 64];
    snprintf(line, sizeof line, "test -z \"$(ls -A '%s')\"", folder);
    return system(line) == 0;
}

/* Folders and logs of pools, where all that is temporary goes. */
static int n_pools(void)
{
    int n = 0;
    DIR *listing = opendir(dir);
    for (struct dirent *entry; (entry = readdir(listing));)
        n += strncmp(entry->d_name, "quern-", 6) == 0;
    closedir(listing);
    return n;
}

/* A pool whose command ended without waiting for it sees that, and ends soon. */
static void expect_pools(int n, const char *what)
{
    const uint64_t until = clock_ns() + PATIENCE * CLOCK_NS_PER_S;
    while (n_pools() != n) {
        ck_assert_msg(clock_ns() < until, "%s: a private pool is left:\n%s", what, err);
        usleep(10000);
    }
}

static void check_failure(const struct verb *verb, const char *what)
{
    const char *last = err, *next;
    while ((next = strchr(last, '\n')) && next[1])
        last = next + 1;
    const size_t len = strlen(last);
    ck_assert_msg(strncmp(last, "quern", 5) == 0 && strstr(last, ": ") && strcmp(last + len - 3, ": \n") != 0,
                  "%s: it ends without a word:\n%s", what, err);
    ck_assert_msg(is_empty(work), "%s: it leaves something behind:\n%s", what, err);
}

static void check_success(const struct verb *verb, const char *what)
{
    char line[512];
    if (verb->has)
        ck_assert_msg(strstr(out, verb->has) != NULL, "%s: it prints:\n%.800s\n%.800s", what, out, err);
    else
        ck_assert_msg(strcmp(out, expected) == 0, "%s: it prints:\n%.800s\n%.800s", what, out, err);
    if (!verb->made)
        return;
    snprintf(line, sizeof line, "cd $WORK && %s", verb->made);
    ck_assert_msg(system(line) == 0, "%s: what it made is not whole", what);
}

/* True when the n-th call of the kind was made. */
static bool run_with(const struct verb *verb, enum fault_kind kind, unsigned n)
{
    char what[96], line[1024];
    snprintf(what, sizeof what, "%s, %s %u", verb->name, fault_kind_name(kind), n);
    ck_assert_int_eq(system("rm -rf $WORK && mkdir $WORK"), 0);
    unlink(fired_file);
    snprintf(line, sizeof line, "QUERN_FAULT=command:%s:%u:%s; export QUERN_FAULT; " RUN "%s",
             fault_kind_name(kind), n, fired_file, verb->line);
    const int pools = n_pools();
    int status = shell(line);
    bool fired = access(fired_file, F_OK) == 0;
    if (getenv("QUERN_FAULTS_TOLD"))
        fprintf(stderr, "%s: %d %s\n%s", what, status, fired ? "fired" : "none", err);
    ck_assert_msg(!strstr(err, "Sanitizer") && !strstr(err, "runtime error"), "%s:\n%s", what, err);
    ck_assert_msg(status == 0 || (status == 1 && fired), "%s: it ends with %d:\n%s", what, status, err);
    if (status == 0)
        check_success(verb, what);
    else
        check_failure(verb, what);
    unlink(fired_file);
    ck_assert_int_eq(system("rm -rf $WORK"), 0);
    expect_pools(pools, what);
    return fired;
}

static void run_kind(const struct verb *verb, enum fault_kind kind, unsigned factor)
{
    unsigned step = 1;
    bool all = getenv("QUERN_FAULTS_ALL") != NULL;
    for (unsigned n = 1; run_with(verb, kind, n); n += step)
        step *= all ? 1 : factor;
}

static void run_verb(const struct verb *verb, unsigned factor)
{
    ck_assert(!run_with(verb, FAULT_NONE, 1));
    for (enum fault_kind kind = FAULT_MEMORY; kind < FAULT_KIND_COUNT; kind++)
        run_kind(verb, kind, factor);
}

static void know_output(const char *line)
{
    char all[1024];
    ck_assert_int_eq(system("mkdir -p $WORK"), 0);
    snprintf(all, sizeof all, RUN "%s", line);
    ck_assert_msg(shell(all) == 0, "%s", err);
    strcpy(expected, out);
}

static void open_pool(void)
{
    pool_start(&pool, tiny_model(), "--ctx", "512", NULL);
    setenv("POOL", pool.frontend, 1);
}

static void close_pool(void)
{
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, PATIENCE), 0);
    pool_forget(&pool);
}

START_TEST(inspect_says_all_or_why_not)
{
    const struct verb inspect = {"inspect", "inspect $MODEL", NULL, NULL};
    know_output(inspect.line);
    run_verb(&inspect, 2);
}
END_TEST

START_TEST(keys_are_both_there_or_neither)
{
    run_verb(&(struct verb){"keys", "keys .", "",
                            "grep -q secret-key quern.cert_secret && grep -q public-key quern.cert && "
                            "test $(ls -A | wc -l) = 2"},
             2);
}
END_TEST

START_TEST(a_quantized_model_is_whole_or_not_there)
{
    ck_assert_msg(shell("$Q/quern synth tiny F32 $XDG_RUNTIME_DIR/f32.gguf && $Q/quern quantize -t 1 "
                        "$XDG_RUNTIME_DIR/f32.gguf Q8_0 $XDG_RUNTIME_DIR/small.gguf") == 0,
                  "%s", err);
    run_verb(&(struct verb){"quantize", "quantize -t 2 $XDG_RUNTIME_DIR/f32.gguf Q8_0 small.gguf", "",
                            "cmp -s small.gguf $XDG_RUNTIME_DIR/small.gguf && test $(ls -A | wc -l) = 1"},
             2);
    ck_assert_int_eq(system("rm $XDG_RUNTIME_DIR/f32.gguf $XDG_RUNTIME_DIR/small.gguf"), 0);
}
END_TEST

START_TEST(run_and_status_say_all_of_what_a_pool_says)
{
    const struct verb run = {"run", "run --connect $POOL --raw -n 8 --seed 1 Once", NULL, NULL};
    const struct verb status = {"status", "status --connect $POOL --json", "worker-0", NULL};
    open_pool();
    know_output(run.line);
    run_verb(&run, 3);
    run_verb(&status, 3);
    close_pool();
}
END_TEST

START_TEST(a_private_pool_ends_with_its_command)
{
    const struct verb run = {"run with a model", "run --model $MODEL --ctx 512 --raw -n 8 --seed 1 Once",
                             NULL, NULL};
    const struct verb bench = {"bench pool", "bench pool -s 2 -n 4 -p 1 -r 1 -f 0", "tokens/s", NULL};
    know_output(run.line);
    run_kind(&run, FAULT_MEMORY, 16);
    run_kind(&run, FAULT_DESCRIPTORS, 1);
    run_kind(&run, FAULT_SPACE, 4);
    run_kind(&run, FAULT_THREADS, 4);
    run_kind(&run, FAULT_SOCKETS, 8);
    run_kind(&bench, FAULT_MEMORY, 64);
    run_kind(&bench, FAULT_DESCRIPTORS, 1); /* few and always the same, the last ones when it is removed */
    run_kind(&bench, FAULT_SPACE, 16);
    run_kind(&bench, FAULT_SHORT, 16);
    run_kind(&bench, FAULT_MAPPING, 16);
}
END_TEST

static void set_up(void)
{
    char folder[4096];
    shell_open();
    snprintf(work, sizeof work, "%s/work", dir);
    snprintf(fired_file, sizeof fired_file, "%s/fired", dir);
    snprintf(folder, sizeof folder, "%s", build_path("tests/integration/faults"));
    setenv("WORK", work, 1);
    setenv("FAULTY", folder, 1);
    ck_assert_int_eq(shell("true"), 0); /* sets the others */
}

static void tear_down(void)
{
    pool_forget(&pool);
    ck_assert_int_eq(system("rm -rf $WORK"), 0);
    shell_close();
}

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 900);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, inspect_says_all_or_why_not);
    tcase_add_test(tests, keys_are_both_there_or_neither);
    tcase_add_test(tests, a_quantized_model_is_whole_or_not_there);
    tcase_add_test(tests, run_and_status_say_all_of_what_a_pool_says);
    tcase_add_test(tests, a_private_pool_ends_with_its_command);
}

int main(void)
{
    return run_tests("command faults", add);
}
