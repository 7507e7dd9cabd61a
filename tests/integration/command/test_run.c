/* SPDX-License-Identifier: MIT */
/* What quern run asks: its argument, stdin, or both, and whose stdin that may be. What was asked is seen by
 * the answer, which is that to the same text as one argument. */

#include "tests/integration/support/pool.h"
#include "tests/integration/support/shell.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEFT_ALONE "quern: stdin is not added to the prompt because another process reads it too"

static char alone[128], both[128]; /* answers to "Once", and to that with the text */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void answer_to(const char *word, char ret_ids[128])
{
    char line[128];
    snprintf(line, sizeof line, "$ASK %s", word);
    ck_assert_int_eq(shell(line), 0);
    ck_assert_uint_lt(strlen(out), 128);
    strcpy(ret_ids, out);
}

static void set_up(void)
{
    shell_open();
    setenv("D", dir, 1);
    ck_assert_int_eq(shell("mkdir $D/in && printf 'upon a time' >$D/in/text && seq 9 >$D/in/list"), 0);
    char command[8192];
    snprintf(command, sizeof command, "%s/quern run --model %s --raw --seed 4 -n 9 --ids", getenv("Q"),
             getenv("MODEL"));
    setenv("ASK", command, 1);
    answer_to("Once", alone);
    answer_to("'Once\nupon a time'", both);
    ck_assert_str_ne(alone, both);
}

static void tear_down(void)
{
    ck_assert_int_eq(shell("rm -r $D/in"), 0);
    shell_close();
}

/* Each answers with what `expected` has, and says on stderr nothing but that the answer was cut, or what
 * `said` begins with. */
static void check(const char *line, const char *expected, const char *said)
{
    int status = shell(line);
    ck_assert_msg(status == 0, "%s: status %d, %s", line, status, err);
    ck_assert_msg(strcmp(out, expected) == 0, "%s answers %s, not %s", line, out, expected);
    ck_assert_msg(begins(err, said), "%s says %s", line, err);
}

#define CUT "quern: the answer was cut at 9 tokens"

START_TEST(the_text_on_stdin_follows_the_argument)
{
    check("$ASK Once <$D/in/text", both, CUT);
    check("cat $D/in/text | $ASK Once", both, CUT);
    check("(sleep 0.3; cat $D/in/text) | $ASK Once", both, CUT);
    check("mkfifo $D/in/fifo; cat $D/in/text >$D/in/fifo & exec $ASK Once <$D/in/fifo", both, CUT);
    check("timeout 60 $ASK Once <$D/in/text", both, CUT);
}
END_TEST

START_TEST(a_stdin_without_text_changes_nothing)
{
    check("$ASK Once </dev/null", alone, CUT);
    check("$ASK Once <&-", alone, CUT);
    check("true | $ASK Once", alone, CUT);
    check(": >$D/in/empty; $ASK Once <$D/in/empty", alone, CUT);
}
END_TEST

START_TEST(a_dash_stands_for_stdin)
{
    check("$ASK Once - <$D/in/text", both, CUT);
    check("{ $ASK Once -; } <$D/in/text", both, CUT);
    check("cat $D/in/text | { $ASK Once -; }", both, CUT);
    check("printf Once | $ASK - 'upon a time'", both, CUT);
    check("printf Once | $ASK -", alone, CUT);
    check("printf Once | $ASK", alone, CUT);
    ck_assert_int_eq(shell("$ASK - - </dev/null"), 2);
    ck_assert_int_eq(shell("$ASK a - b </dev/null"), 2);
}
END_TEST

/* Its stdin is that of the loop, or of the shell that reads its script there. */
START_TEST(a_stdin_that_somebody_else_reads_is_left_to_them)
{
    static const char *const loops[] = {
        "while read -r line; do $ASK Once >>$D/in/answers; echo $line; done <$D/in/list",
        "cat $D/in/list | while read -r line; do $ASK Once >>$D/in/answers; echo $line; done",
        "cat $D/in/list | while read -r line; do timeout 60 $ASK Once >>$D/in/answers; echo $line; done"};
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        check(loops[i], "1\n2\n3\n4\n5\n6\n7\n8\n9\n", LEFT_ALONE);
        check("sort -u $D/in/answers; rm $D/in/answers", alone, "");
    }
    char expected[160];
    snprintf(expected, sizeof expected, "%sthe rest\n", alone);
    check("printf '%s Once\\necho the rest\\n' \"$ASK\" | sh", expected, "");
    /* Silently where there is no more to be had. */
    check("{ cat >/dev/null; $ASK Once; } <$D/in/list", alone, CUT);
    check("cat $D/in/list | { cat >/dev/null; $ASK Once; }", alone, CUT);
}
END_TEST

START_TEST(a_pipe_that_says_nothing_is_told_of)
{
    check("mkfifo $D/in/fifo; (exec 3>$D/in/fifo; until grep -q waiting $D/err; do sleep 0.1; done; "
          "cat $D/in/text >&3) & exec $ASK Once <$D/in/fifo",
          both, "quern: waiting for text on stdin to add to the prompt");
}
END_TEST

START_TEST(what_is_no_text_or_too_much_is_refused)
{
    static const struct {
        const char *line, *said;
    } cases[] = {
        {"printf 'a\\0b' | $ASK Once",
         "quern: stdin is not text: byte 1 is 0x00, which is not allowed in text\n"},
        {"printf 'ab\\377' | $ASK Once", "quern: stdin is not text: byte 2 is 0xff, which is not UTF-8\n"},
        {"printf '\\377' | $ASK", "quern: stdin is not text: byte 0 is 0xff, which is not UTF-8\n"},
        {"head -c 33554432 /dev/zero | tr '\\0' x | $ASK Once", "quern: the prompt is longer than 32 MiB\n"},
        {"$ASK Once </dev/zero", "quern: the prompt is longer than 32 MiB\n"},
        {"$ASK Once </tmp", "quern: stdin: Is a directory\n"},
        {"$ASK - <&-", "quern: stdin: Bad file descriptor\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = shell(cases[i].line);
        ck_assert_msg(status == 1, "%s: status %d, %s", cases[i].line, status, err);
        ck_assert_msg(strcmp(err, cases[i].said) == 0, "%s says: %s", cases[i].line, err);
        ck_assert_str_eq(out, "");
    }
}
END_TEST

START_TEST(a_model_in_place_of_a_prompt_is_refused)
{
    static const char *const lines[] = {"run no-such.gguf",         "run no-such.GGUF hello",
                                        "run $D/in/a-model",        "run $D/in/a-model hello",
                                        "run no-such.gguf <$MODEL", "chat no-such.gguf"};
    ck_assert_int_eq(shell("ln -s $MODEL $D/in/a-model"), 0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[128];
        snprintf(line, sizeof line, "$Q/quern %s", lines[i]);
        int status = shell(line);
        ck_assert_msg(status == 2, "%s: status %d, %s", line, status, err);
        ck_assert_msg(strstr(err, "looks like a model file, not a prompt: give it with --model\n"), "%s: %s",
                      line, err);
        ck_assert_str_eq(out, "");
    }
    /* A prompt that speaks of one is none. */
    ck_assert_int_eq(shell("$ASK 'What is in x.gguf'"), 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_text_on_stdin_follows_the_argument);
    tcase_add_test(tests, a_stdin_without_text_changes_nothing);
    tcase_add_test(tests, a_dash_stands_for_stdin);
    tcase_add_test(tests, a_stdin_that_somebody_else_reads_is_left_to_them);
    tcase_add_test(tests, a_pipe_that_says_nothing_is_told_of);
    tcase_add_test(tests, what_is_no_text_or_too_much_is_refused);
    tcase_add_test(tests, a_model_in_place_of_a_prompt_is_refused);
}

int main(void)
{
    return run_tests("run", add);
}
