/* SPDX-License-Identifier: MIT */
/* What a model holds that takes over the parser which reads it (hostile_parser.c): no file but the model, no
 * other process, no network, no program. */

#include "tests/integration/worker/told.h"
#include "tests/unit/run.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/files/rundir.h"

static const char *const parsers[] = {"file", "tokenizer", "template"};
#define N_PARSERS (sizeof parsers / sizeof *parsers)

static char folder[RUNDIR_PATH_MAX + 1];
static int neighbour; /* listens, as everything does that its user has running */

static void set_up(void)
{
    char victim[sizeof folder + 16];
    ck_assert_int_eq(rundir_temporary(folder, NULL), 0);
    snprintf(victim, sizeof victim, "%s/victim", folder);
    close(open(victim, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    setenv("QUERN_VICTIM", victim, 1);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/neighbour", folder);
    neighbour = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(neighbour, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(neighbour, 64), 0);
    setenv("QUERN_NEIGHBOUR", address.sun_path, 1);
}

static void tear_down(void)
{
    close(neighbour);
    rundir_remove(folder);
}

static bool kernel_confines_files(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) >= 1;
}

/* A worker whose parser does this. */
static struct scripted *start(const char *parser, const char *what, const char *const *extra)
{
    setenv("QUERN_HOSTILE_IN", parser, 1);
    setenv("QUERN_HOSTILE", what, 1);
    struct scripted *s =
        extra ? scripted_new(extra) : scripted_new_with_template("{{ messages[0].content }}");
    unsetenv("QUERN_HOSTILE");
    return s;
}

static void check_says(struct scripted *s, const char *parser, const char *what, const char *how)
{
    char line[128];
    snprintf(line, sizeof line, "hostile %s: %s: %s\n", parser, what, how);
    ck_assert_msg(strstr(worker_stderr(s), line) != NULL, "no \"%s\": %s", line, worker_stderr(s));
}

/* Else the other cases would show nothing. */
START_TEST(without_a_sandbox_it_holds_what_its_user_holds)
{
    static const char *const all[] = {"read",   "write", "thread", "look", "socket", "process",
                                      "signal", "speak", "own",    "move", "remove", "replace"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct scripted *s = start("file", all[i], ARGS("--no-sandbox"));
        handshake(s);
        check_says(s, "file", all[i], "done");
        scripted_free(s);
    }
}
END_TEST

START_TEST(files_and_processes_of_others_are_out_of_reach_and_the_model_is_served)
{
    static const char *const all[] = {"read", "thread", "look"};
    if (!kernel_confines_files()) {
        fputs("SKIPPED: files of others (this kernel has no Landlock)\n", stderr);
        return;
    }
    for (size_t p = 0; p < N_PARSERS; p++)
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            struct scripted *s = start(parsers[p], all[i], NULL);
            handshake(s);
            check_says(s, parsers[p], all[i], "Permission denied");
            check_serves(s, 1);
            scripted_free(s);
        }
}
END_TEST

/* Its slot is mapped by then, and so is nothing else of it. */
START_TEST(the_board_cannot_be_mapped_again)
{
    for (size_t p = 0; p < N_PARSERS; p++) {
        struct scripted *s = start(parsers[p], "board", NULL);
        handshake(s);
        check_says(s, parsers[p], "board", "No such file or directory");
        scripted_free(s);
    }
}
END_TEST

START_TEST(calls_that_loading_does_not_need_end_it)
{
    static const struct {
        const char *what, *called;
    } cases[] = {{"write", "openat"},   {"socket", "socket"}, {"process", "clone"},
                 {"signal", "kill"},    {"speak", "socket"},  {"remove", "unlinkat"},
                 {"replace", "socket"}, {"own", "fcntl"},     {"move", "sched_setaffinity"}};
    for (size_t p = 0; p < N_PARSERS; p++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            char line[128];
            struct scripted *s = start(parsers[p], cases[i].what, NULL);
            ck_assert_int_eq(worker_status(s), 1000 + SIGSYS);
            snprintf(line, sizeof line, "worker-7: stopped by the sandbox: it called %s\n", cases[i].called);
            ck_assert_msg(strstr(worker_stderr(s), line) != NULL, "%s in %s: %s", cases[i].what, parsers[p],
                          worker_stderr(s));
            scripted_free(s);
        }
    ck_assert_int_eq(access(getenv("QUERN_NEIGHBOUR"), F_OK), 0);
    ck_assert_int_lt(accept(neighbour, NULL, NULL), 0);
}
END_TEST

/* The model itself is there to be read, on the processor that packs it too. */
START_TEST(the_model_may_be_read_by_who_parses_it)
{
    char path[sizeof folder + 16];
    struct scripted *s = scripted_new(ARGS("--device", "cpu", "--ctx", "512"));
    handshake(s);
    check_serves(s, 1);
    scripted_free(s);
    snprintf(path, sizeof path, "%s/template", folder);
    FILE *file = fopen(path, "w");
    fputs("{{ messages[0].content }}", file);
    fclose(file);
    s = scripted_new(ARGS("--chat-template", path)); /* out of its reach by then, and read before */
    ck_assert(expect(s, MESSAGE_REGISTER).register_.chat);
    scripted_free(s);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, without_a_sandbox_it_holds_what_its_user_holds);
    tcase_add_test(tests, files_and_processes_of_others_are_out_of_reach_and_the_model_is_served);
    tcase_add_test(tests, the_board_cannot_be_mapped_again);
    tcase_add_test(tests, calls_that_loading_does_not_need_end_it);
    tcase_add_test(tests, the_model_may_be_read_by_who_parses_it);
}

int main(void)
{
    return run_tests("worker parsers", add);
}
