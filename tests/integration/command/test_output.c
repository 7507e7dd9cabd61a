/* SPDX-License-Identifier: MIT */
/* Where the command prints what: errors, answers in pipes and on terminals, and what it does when it cannot.
 */

#include "tests/integration/support/pool.h"
#include "tests/integration/support/shell.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

START_TEST(an_error_is_a_line_of_the_command_and_not_of_a_log)
{
    static const struct {
        const char *line;
        int status;
        const char *said;
    } cases[] = {
        {"$Q/quern status", 1, "quern: no pool is running in "},
        {"$Q/quern run --model /nowhere.gguf x", 1, "quern: /nowhere.gguf: No such file or directory\n"},
        {"$Q/quern run --model /etc/passwd x", 1,
         "quern: the pool did not start: /etc/passwd: not a GGUF file"},
        {"QUERN_PLUGINS=/nowhere $Q/quern run --model \"$MODEL\" --device cuda x", 1,
         "quern: the pool did not start: no device \"cuda\": quern-cuda.so not found in /nowhere"},
        {"$Q/quern run --model \"$MODEL\" --device gpu x", 1,
         "quern: the pool did not start: unknown device \"gpu\"; "},
        {"QUERN_PLUGINS=/nowhere $Q/quern logits \"$MODEL\" --tokens 1 --device emu --out -", 1,
         "quern: no device \"emu\": quern-emu.so not found in /nowhere\n"},
        {"$Q/quern run --model \"$MODEL\"", 1, "quern: the prompt is empty\n"},
        {"$Q/quern run --connect nowhere x", 1, "quern: nowhere is not an endpoint"},
        {"$Q/quern run --connect http://nowhere x", 1, "quern: http://nowhere is not an endpoint"},
        {"$Q/quern chat --model \"$MODEL\"", 1, "quern: the model has no chat template; "},
        {"$Q/quern run --model \"$MODEL\" -n 1000000 x", 1, "quern: too_long: "},
        {"$Q/quern run --model \"$MODEL\" --stop $(printf '\\377') x", 1, "quern: generate: stop: "},
        {"$Q/quern logits \"$MODEL\" --tokens 99999 --out -", 1,
         "quern: id 99999 is outside the vocabulary of "},
        {"$Q/quern serve /nowhere.gguf", 78, "quern serve: /nowhere.gguf: No such file or directory\n"},
        {"$Q/quern-broker /nowhere.gguf", 78, "quern-broker: /nowhere.gguf: No such file or directory\n"},
        {"$Q/quern serve --workers 0 \"$MODEL\"", 2, "quern serve: "},
        {"QUERN_MODEL=/nowhere.gguf $Q/quern serve", 78,
         "quern serve: /nowhere.gguf: No such file or directory\n"},
        {"$Q/quern serve --config /dev/null", 2, "quern serve: no MODEL given, and /dev/null names none\n"},
        {"$Q/quern logits \"$MODEL\"", 2, "quern logits: "},
        {"$Q/quern run a b", 2, "quern run: "},
        {"$Q/quern --version >/dev/full", 1, "quern: stdout: No space left on device\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = shell(cases[i].line);
        ck_assert_msg(status == cases[i].status, "%s: status %d, %s", cases[i].line, status, err);
        ck_assert_msg(begins(err, cases[i].said), "%s says: %s", cases[i].line, err);
        ck_assert_str_eq(out, "");
    }
}
END_TEST

/* stderr is a pipe here: nothing could be written to a file. */
START_TEST(a_limit_of_file_sizes_is_told_and_no_signal_ends_the_command)
{
    static const struct {
        const char *words, *said;
    } cases[] = {
        {"quern run --model $MODEL x", "quern: the pool did not start: the file size limit allows no files "
                                       "or shared memory (ulimit -f)\n1\n"},
        {"quern serve $MODEL --rundir $D/limited", "quern serve: $D/limited/boot: File too large\n1\n"},
        {"quern synth tiny Q8_0 $D/model", "quern: $D/model: allocating "},
        {"quern quantize $MODEL --requantize Q4_0 $D/model", "quern: $D/model: "},
        {"quern logits $MODEL --tokens 1,2 --out $D/logits", "quern: $D/logits: File too large\n1\n"},
        {"quern keys $D/keys", "quern: $D/keys/quern.cert_secret: File too large\n1\n"},
        {"quern bench pool -s 2", "quern: "},
        {"quern tokenize $MODEL >$D/ids </etc/hostname", "quern: stdout: File too large\n1\n"}};
    setenv("D", dir, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[512], said[512];
        snprintf(line, sizeof line, "echo \"%s\"; rm -rf $D/limited $D/ids", cases[i].said);
        ck_assert_int_eq(shell(line), 0);
        snprintf(said, sizeof said, "%.*s", (int)strlen(out) - 1, out); /* with the folder's name */
        snprintf(line, sizeof line, "(ulimit -f 0; $Q/%s; echo $?) 2>&1 | cat", cases[i].words);
        ck_assert_int_eq(shell(line), 0);
        char *last = strstr(out, "\n1\n");
        /* The progress of what is written in part comes first. */
        char *first = strstr(out, "quern: ");
        ck_assert_msg(last && !last[3], "%s: %s", cases[i].words, out);
        ck_assert_msg(strstr(first ? first : out, said), "%s says: %s and not: %s", cases[i].words, out,
                      said);
    }
    ck_assert_int_eq(shell("rm -rf $D/limited $D/keys $D/ids $D/logits; ls -A $D"), 0);
    ck_assert_msg(!strstr(out, "bench") && !strstr(out, "model"), "left behind: %s", out);
}
END_TEST

/* Root may look everywhere: who runs as root becomes nobody for this. */
START_TEST(a_folder_that_may_not_be_entered_is_no_folder_without_a_pool)
{
    char closed[128], inside[160];
    snprintf(closed, sizeof closed, "%s/closed", dir);
    snprintf(inside, sizeof inside, "%s/quern", closed);
    ck_assert_int_eq(mkdir(closed, 0700), 0);
    ck_assert_int_eq(mkdir(inside, 0700), 0);
    ck_assert_int_eq(chmod(dir, 0755), 0);
    bool root = getuid() == 0;
    if (!root)
        ck_assert_int_eq(chmod(closed, 0), 0);
    setenv("XDG_RUNTIME_DIR", closed, 1);
    setenv("AS", root ? "setpriv --reuid 65534 --regid 65534 --clear-groups" : "", 1);
    int status = shell("$AS $Q/quern status");
    chmod(closed, 0700);
    rmdir(inside);
    rmdir(closed);
    ck_assert_msg(status == 1, "%d: %s", status, err);
    ck_assert_ptr_nonnull(strstr(err, "Permission denied"));
    ck_assert_ptr_null(strstr(err, "there is no"));
}
END_TEST

START_TEST(text_in_a_pipe_ends_with_a_newline)
{
    ck_assert_int_eq(shell("$Q/quern run --model \"$MODEL\" --raw --seed 4 -n 9 Once"), 0);
    size_t len = strlen(out);
    ck_assert_uint_gt(len, 1);
    ck_assert_int_eq(out[len - 1], '\n');
    ck_assert_int_ne(out[len - 2], '\n');
}
END_TEST

START_TEST(an_answer_that_is_cut_says_so_and_json_does_not_say_it_twice)
{
    ck_assert_int_eq(shell("$Q/quern run --model \"$MODEL\" --device null --raw -n 9 Once"), 0);
    ck_assert_str_eq(err, "quern: the answer was cut at 9 tokens; -n allows more\n");
    ck_assert_int_eq(shell("$Q/quern run --model \"$MODEL\" --device null --raw -n 9 --json Once"), 0);
    ck_assert_str_eq(err, "");
    ck_assert_ptr_nonnull(strstr(out, "\"reason\": \"length\""));
    ck_assert_ptr_nonnull(strstr(out, "\"limit\": \"max_tokens\""));
    ck_assert_int_eq(shell("$Q/quern run --model \"$MODEL\" --device null --ctx 64 --raw Once"), 0);
    ck_assert_ptr_nonnull(strstr(err, " tokens; the context has no room for more\n"));
}
END_TEST

START_TEST(a_stdout_that_takes_nothing_is_told_of_once)
{
    ck_assert_int_eq(shell("$Q/quern run --model \"$MODEL\" --raw -n 50 Once >/dev/full"), 1);
    ck_assert_str_eq(err, "quern: stdout: No space left on device\n");
    ck_assert_int_eq(shell("$Q/quern run --model \"$MODEL\" --raw -n 50 Once >&-"), 1);
    ck_assert_str_eq(err, "quern: stdout: Bad file descriptor\n");
}
END_TEST

START_TEST(a_reader_that_goes_away_ends_it_quietly)
{
    /* The status of the first command of the pipe, as a shell with pipefail sees it. */
    ck_assert_int_eq(
        shell("{ $Q/quern run --model \"$MODEL\" --device null --ctx 1000000 -n 900000 x; echo $? >&2; } | "
              "head -c 100"),
        0);
    ck_assert_uint_eq(strlen(out), 100);
    ck_assert_str_eq(err, "141\n");
}
END_TEST

/* It holds what was asked and answered, as the pool's processes do. */
START_TEST(a_crash_of_the_command_would_leave_no_core_dump)
{
    static const char line[] =
        "ulimit -c unlimited; mkfifo \"$D/text\"; $Q/quern tokenize \"$MODEL\" <\"$D/text\" & "
        "exec 3>\"$D/text\"; for i in $(seq 300); do "
        "grep -q '^Max core file size *[01] ' /proc/$!/limits && echo none && break; "
        "sleep 0.1; done; exec 3>&-; wait; rm \"$D/text\"";
    setenv("D", dir, 1);
    ck_assert_int_eq(shell(line), 0);
    ck_assert_msg(begins(out, "none\n"), "%s%s", out, err);
}
END_TEST

/* Where a user has next to nothing: no home, no runtime directory, a folder that cannot be written. */
START_TEST(a_bare_environment_will_do)
{
    ck_assert_int_eq(
        shell("cd /proc && env -i TMPDIR=\"$TMPDIR\" $Q/quern run --model \"$MODEL\" -n 3 --ids x"), 0);
    int ids[3];
    ck_assert_int_eq(sscanf(out, "%d %d %d\n", &ids[0], &ids[1], &ids[2]), 3);
}
END_TEST

START_TEST(a_prompt_is_read_from_stdin_up_to_a_bound)
{
    ck_assert_int_eq(shell("printf Once | $Q/quern run --model \"$MODEL\" --raw --seed 4 -n 9"), 0);
    static char piped[sizeof out];
    strcpy(piped, out);
    ck_assert_int_eq(shell("$Q/quern run --model \"$MODEL\" --raw --seed 4 -n 9 Once"), 0);
    ck_assert_str_eq(out, piped);
    ck_assert_int_eq(shell("head -c 40000000 /dev/zero | tr '\\0' x | $Q/quern run --model \"$MODEL\""), 1);
    ck_assert_str_eq(err, "quern: the prompt is longer than 32 MiB\n");
    ck_assert_int_eq(shell("$Q/quern run --model \"$MODEL\" <&-"), 1);
    ck_assert(begins(err, "quern: stdin: "));
}
END_TEST

/* What a program shows on a terminal so wide, until it ends; `keys` are typed once it has shown something.
 * Its exit status, with `out`. */
static int run_on_terminal(char *const *words, unsigned short columns, const char *term, const char *keys)
{
    const struct winsize size = {.ws_row = 24, .ws_col = columns};
    struct termios before, after;
    int terminal, other, status;
    size_t len = 0;
    /* Told before the program runs, which may change it at once. */
    ck_assert_int_eq(openpty(&terminal, &other, NULL, NULL, NULL), 0);
    ck_assert_int_eq(tcgetattr(terminal, &before), 0);
    close(other);
    close(terminal);
    pid_t pid = forkpty(&terminal, NULL, &before, &size);
    if (pid < 0) /* no assertion behind it, which the child would run as well: see child.h */
        ck_abort_msg("forkpty: %s", strerror(errno));
    if (pid == 0) {
        setenv("TERM", term, 1);
        execv(words[0], words);
        _exit(127);
    }
    for (ssize_t n; len < sizeof out - 1 && (n = read(terminal, out + len, sizeof out - 1 - len)) > 0;) {
        bool first = len == 0;
        len += (size_t)n;
        if (first && keys)
            ck_assert_int_eq(write(terminal, keys, strlen(keys)), (ssize_t)strlen(keys));
    }
    out[len] = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(tcgetattr(terminal, &after), 0);
    ck_assert_uint_eq(after.c_lflag, before.c_lflag);
    close(terminal);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The same of `quern VERB` with a pool. */
static int on_terminal(const char *verb, const struct pool *pool, unsigned short columns, const char *term,
                       const char *keys)
{
    char program[4096];
    snprintf(program, sizeof program, "%s", build_path("quern"));
    char *const words[] = {program, (char *)verb, "--connect", (char *)pool->rundir, NULL};
    return run_on_terminal(words, columns, term, keys);
}

/* Beside the command stands a broker that says what it was asked for and how far its worker is, and ends. */
START_TEST(a_pool_of_its_own_has_one_worker_and_is_waited_for_with_a_bar)
{
    char broker[sizeof dir + 16], command[sizeof dir + 16], words[sizeof out];
    snprintf(broker, sizeof broker, "%s/quern-broker", dir);
    snprintf(command, sizeof command, "%s/quern", dir);
    FILE *file = fopen(broker, "we");
    fputs("#!/bin/sh\n"
          "echo \"$@\" >${0%/*}/asked\n"
          "sleep 0.5\n"
          "echo '12:00:00.000 worker-0 info quantizing: 99% of 8123 MiB' >&2\n"
          "sleep 0.5\n"
          "echo '12:00:01.000 worker-0 info loading: 35% of 4123 MiB' >&2\n"
          "echo '12:00:01.000 worker-0 info something else: 70% is no part of it' >&2\n"
          "sleep 0.5\n"
          "echo 'quern-broker: enough' >&2\n"
          "exit 1\n",
          file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(broker, 0700), 0);
    char line[4 * sizeof dir + 128];
    snprintf(line, sizeof line, "cp $Q/quern %s", command);
    ck_assert_int_eq(shell(line), 0);
    char *const run[] = {command, "run", "--model", (char *)tiny_model(), "x", NULL};
    ck_assert_int_eq(run_on_terminal(run, 80, "xterm", NULL), 1);
    strcpy(words, out);
    const char *first = strstr(words, "\r\033[Kloading tiny.gguf, 0.");
    const char *second = strstr(words, "\r\033[Kquantizing tiny.gguf [###################-] 99%, ");
    const char *third = strstr(words, "\r\033[Kloading tiny.gguf [#######-------------] 35%, 1.");
    ck_assert_msg(first && second > first && third > second, "%s", words);
    ck_assert_ptr_nonnull(strstr(third, "\r\033[Kquern: the pool did not start: enough\r\n"));
    snprintf(line, sizeof line, "cat %s/asked && rm %s/asked %s/quern-broker %s", dir, dir, dir, command);
    ck_assert_int_eq(shell(line), 0);
    ck_assert_msg(strstr(out, " --workers 1 "), "%s", out);
}
END_TEST

START_TEST(a_status_fits_the_terminal_and_top_ends_with_q)
{
    struct pool pool = {0};
    pool_start(&pool, tiny_model(), "--workers", "2", NULL);
    static const unsigned short widths[] = {200, 80, 60};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        ck_assert_int_eq(on_terminal("status", &pool, widths[i], "xterm", NULL), 0);
        ck_assert_ptr_nonnull(strstr(out, "\nworker-1  ready"));
        ck_assert((strstr(out, "RESTARTS") != NULL) == (widths[i] == 200));
        for (char *line = strtok(out, "\r\n"); line; line = strtok(NULL, "\r\n"))
            ck_assert_msg(strlen(line) <= widths[i], "wider than %u: %s", widths[i], line);
    }
    ck_assert_int_eq(on_terminal("top", &pool, 80, "xterm", "xq"), 0);
    ck_assert(begins(out, "\033[H\033[J"));
    ck_assert_ptr_nonnull(strstr(out, "\nworker-1  \033[32mready\033[0m"));
    setenv("NO_COLOR", "", 1); /* as good as unset */
    ck_assert_int_eq(on_terminal("top", &pool, 80, "xterm", "q"), 0);
    ck_assert_ptr_nonnull(strstr(out, "\nworker-1  \033[32mready\033[0m"));
    setenv("NO_COLOR", "1", 1);
    ck_assert_int_eq(on_terminal("top", &pool, 80, "xterm", "q"), 0);
    ck_assert_ptr_nonnull(strstr(out, "\nworker-1  ready"));
    unsetenv("NO_COLOR");
    ck_assert_int_eq(on_terminal("top", &pool, 80, "dumb", "Q"), 0);
    ck_assert_ptr_nonnull(strstr(out, "\nworker-1  ready"));
    ck_assert_ptr_null(strchr(out, '\033'));
    ck_assert_int_eq(on_terminal("top", &pool, 80, "xterm", "\003"), 0);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
    pool_forget(&pool);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, shell_open, shell_close);
    tcase_add_test(tests, an_error_is_a_line_of_the_command_and_not_of_a_log);
    tcase_add_test(tests, a_limit_of_file_sizes_is_told_and_no_signal_ends_the_command);
    tcase_add_test(tests, a_folder_that_may_not_be_entered_is_no_folder_without_a_pool);
    tcase_add_test(tests, text_in_a_pipe_ends_with_a_newline);
    tcase_add_test(tests, an_answer_that_is_cut_says_so_and_json_does_not_say_it_twice);
    tcase_add_test(tests, a_stdout_that_takes_nothing_is_told_of_once);
    tcase_add_test(tests, a_reader_that_goes_away_ends_it_quietly);
    tcase_add_test(tests, a_crash_of_the_command_would_leave_no_core_dump);
    tcase_add_test(tests, a_bare_environment_will_do);
    tcase_add_test(tests, a_prompt_is_read_from_stdin_up_to_a_bound);
    tcase_add_test(tests, a_pool_of_its_own_has_one_worker_and_is_waited_for_with_a_bar);
    tcase_add_test(tests, a_status_fits_the_terminal_and_top_ends_with_q);
}

int main(void)
{
    return run_tests("output", add);
}
