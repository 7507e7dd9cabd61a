/* SPDX-License-Identifier: MIT */
/* What a worker says: its last line is remembered, without the dress of a log, fit for a message. */

#include "broker/words.h"
#include "broker/text.h"
#include "tests/unit/run.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* The last words of a process that wrote this and ended. */
static const char *last_of(struct words *words, const char *said)
{
    int fds[2];
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr)); /* where the lines before the last go */
    ck_assert_int_eq(pipe(fds), 0);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    ck_assert_int_eq(write(fds[1], said, strlen(said)), (ssize_t)strlen(said));
    close(fds[1]);
    words_open(words, fds[0]);
    words_close(words, true);
    ck_assert_int_eq(words->fd, -1);
    return words_last(words);
}

START_TEST(the_last_line_is_the_reason)
{
    struct words words;
    ck_assert_str_eq(last_of(&words, "one\ntwo\n"), "two");
    ck_assert_str_eq(last_of(&words, "one\ntwo"), "two");
    ck_assert_str_eq(last_of(&words, "one\n\n\n"), "one");
    ck_assert_str_eq(last_of(&words, ""), "");
}
END_TEST

START_TEST(the_dress_of_a_log_line_is_taken_off)
{
    struct words words;
    ck_assert_str_eq(last_of(&words, "09:41:00.123 worker-0 error m.gguf: not GGUF\n"), "m.gguf: not GGUF");
    ck_assert_str_eq(last_of(&words, "09:41:00.123 worker-0 info ready\n"), "");
    ck_assert_str_eq(last_of(&words, "09:41:00.123\n"), "09:41:00.123");
}
END_TEST

START_TEST(a_line_without_end_is_cut_and_not_lost)
{
    char said[3 * WORDS_LINE_MAX];
    struct words words;
    memset(said, 'x', sizeof said - 1);
    said[sizeof said - 1] = 0;
    said[sizeof said - 2] = 'y';
    const char *last = last_of(&words, said);
    ck_assert_uint_lt(strlen(last), WORDS_LINE_MAX);
    ck_assert_int_eq(last[strlen(last) - 1], 'y');
}
END_TEST

START_TEST(what_is_no_text_becomes_question_marks)
{
    char text[] = "a\xff"
                  "b\n\xc3\xa4\xc3";
    ck_assert_str_eq(text_clean(text), "a?b?\xc3\xa4?");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_last_line_is_the_reason);
    tcase_add_test(tests, the_dress_of_a_log_line_is_taken_off);
    tcase_add_test(tests, a_line_without_end_is_cut_and_not_lost);
    tcase_add_test(tests, what_is_no_text_becomes_question_marks);
}

int main(void)
{
    return run_tests("broker/words", add);
}
