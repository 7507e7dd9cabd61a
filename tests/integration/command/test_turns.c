/* SPDX-License-Identifier: MIT */
/* What is one turn of quern chat: a line, what was pasted, what is quoted. The turn that was sent is seen by
 * its answer, which is that of quern run to the same text. */

#include "tests/integration/support/pool.h"
#include "tests/integration/support/terminal.h"
#include "tests/unit/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_S 30

/* What a terminal sends around what is pasted, and is asked for it with. */
#define BEGIN "\033[200~"
#define END   "\033[201~"
#define ON    "\033[?2004h"
#define OFF   "\033[?2004l"

static char dir[RUNDIR_PATH_MAX + 1];
static struct pool pool;

static void set_up(void)
{
    environment_open(dir);
    pool = (struct pool){0};
    pool_start(&pool, DEMO_MODEL, NULL);
}

static void tear_down(void)
{
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, WAIT_S), 0);
    pool_forget(&pool);
    environment_close(dir);
}

static pid_t start_chat(int *ret_terminal, const char *term)
{
    char *argv[] = {"quern", "chat", "--connect", pool.frontend, "-n", "8", "--seed", "2", NULL};
    pid_t pid = start(ret_terminal, term, argv);
    expect(*ret_terminal, "> ");
    return pid;
}

/* The answer of a new conversation to this text, with its newline. */
static const char *answer_to(const char *text)
{
    static char answer[4096];
    ck_assert_int_eq(run_program(answer, sizeof answer, "quern", "run", text, "-n", "8", "--seed", "2",
                                 "--connect", pool.frontend, NULL),
                     0);
    ck_assert_uint_gt(strlen(answer), 1);
    return answer;
}

/* Waits for the answer to this text, and for the next prompt; the conversation then begins anew. */
static void expect_answer(int terminal, const char *text)
{
    char answer[4096];
    snprintf(answer, sizeof answer, "%s", answer_to(text));
    answer[strcspn(answer, "\n")] = 0;
    expect(terminal, answer);
    expect(terminal, "> ");
    type(terminal, "/reset\r");
    expect(terminal, "/reset");
    expect(terminal, "> ");
}

static void leave(pid_t pid, int terminal)
{
    type(terminal, "/exit\r");
    ck_assert_int_eq(end_of(pid, terminal), 0);
}

START_TEST(what_is_pasted_is_sent_by_enter_as_one_turn)
{
    static const struct {
        const char *keys, *last, *turn;
    } cases[] = {
        {BEGIN "What is 2\rplus\r3?" END, "3?", "What is 2\nplus\n3?"},
        {BEGIN "What is 2\nplus\n5?\n\n" END, "5?", "What is 2\nplus\n5?"},
        {"What " BEGIN "is 2\rplus" END " 6?", "6?", "What is 2\nplus 6?"},
        {BEGIN "Gr\xc3\xbc\xc3\x9f\rd\033[201mich" END, "ich", "Gr\xc3\xbc\xc3\x9f\nd\033[201mich"},
        /* Neither a command nor an opening of quotes. */
        {BEGIN "/reset\rplease" END, "please", "/reset\nplease"},
        {BEGIN "\"\"\"Doc.\"\"\"\rimport x" END, "import x", "\"\"\"Doc.\"\"\"\nimport x"},
        {"\"\"\"" BEGIN "What is\r7?" END "\"\"\"", "7?", "What is\n7?"},
    };
    int terminal;
    pid_t pid = start_chat(&terminal, "xterm");
    ck_assert_ptr_nonnull(strstr(screen, ON));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        type(terminal, cases[i].keys);
        expect(terminal, cases[i].last);
        type(terminal, "\r");
        expect_answer(terminal, cases[i].turn);
    }
    leave(pid, terminal);
    ck_assert_ptr_nonnull(strstr(screen, OFF));
}
END_TEST

/* It waits in the terminal, whose lines are the kernel's then, marks and all. */
START_TEST(what_is_pasted_during_an_answer_is_one_turn_too)
{
    int terminal;
    pid_t pid = start_chat(&terminal, "xterm");
    type(terminal, "Hello\r" BEGIN "/reset\r" END "\r" BEGIN "What is 2\rplus\r3?\r" END "\r");
    expect_answer(terminal, "What is 2\nplus\n3?");
    leave(pid, terminal);
}
END_TEST

START_TEST(an_interrupt_gives_up_what_is_pasted_and_what_is_quoted)
{
    int terminal;
    pid_t pid = start_chat(&terminal, "xterm");
    type(terminal, BEGIN "one\rtwo" END);
    expect(terminal, "two");
    type(terminal, "\x03");
    expect(terminal, "/exit ends");
    expect(terminal, "> ");
    type(terminal, BEGIN "a paste without end\r");
    type(terminal, "\x03");
    expect(terminal, "/exit ends");
    expect(terminal, "> ");
    type(terminal, "\"\"\"\r");
    expect(terminal, "... ");
    type(terminal, "three\r");
    expect(terminal, "... ");
    type(terminal, "\x03");
    expect(terminal, "/exit ends");
    expect(terminal, "> ");
    type(terminal, "Hello\r");
    expect_answer(terminal, "Hello");
    leave(pid, terminal);
}
END_TEST

START_TEST(a_paste_that_is_too_long_is_left_out)
{
    static char lines[1 << 16];
    int terminal;
    pid_t pid = start_chat(&terminal, "xterm");
    memset(lines, 'x', sizeof lines - 1);
    type(terminal, BEGIN);
    for (size_t sent = 0; sent < (1 << 20) + 10; sent += sizeof lines - 1)
        type(terminal, lines);
    type(terminal, END);
    expect(terminal, "(pasted text beyond 1048576 characters was dropped)");
    type(terminal, "Hello\r");
    expect_answer(terminal, "Hello");
    leave(pid, terminal);
}
END_TEST

/* Two signals that come at once: the second one ends it without any clearing up but this. */
START_TEST(a_terminal_is_not_left_with_marks_by_whatever_ends_the_chat)
{
    for (int way = 0; way < 3; way++) {
        int terminal;
        pid_t pid = start_chat(&terminal, "xterm");
        if (way == 0)
            type(terminal, "\x04");
        if (way == 1)
            kill(pid, SIGTERM);
        if (way == 2) {
            kill(pid, SIGSTOP);
            kill(pid, SIGTERM);
            kill(pid, SIGHUP);
            kill(pid, SIGCONT);
        }
        gather_screen(terminal);
        ck_assert_ptr_nonnull(strstr(screen, OFF));
        ck_assert_int_eq(end_of(pid, terminal) != 0, way > 0);
    }
}
END_TEST

START_TEST(a_dumb_terminal_is_asked_for_nothing)
{
    int terminal;
    pid_t pid = start_chat(&terminal, "dumb");
    type(terminal, "\"\"\"What is 2\r");
    expect(terminal, "... ");
    type(terminal, "plus\r");
    expect(terminal, "... ");
    type(terminal, "3?\"\"\"\r");
    expect_answer(terminal, "What is 2\nplus\n3?");
    ck_assert_ptr_null(strchr(screen, '\033'));
    leave(pid, terminal);
}
END_TEST

/* Runs a chat whose stdin is that text; its exit status, with what it says on stdout and stderr. */
static int chat_of(const char *text, char *ret_out, size_t size)
{
    char command[8192], path[sizeof dir + 16];
    snprintf(path, sizeof path, "%s/text", dir);
    FILE *file = fopen(path, "we");
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
    snprintf(command, sizeof command, "'%s' chat --connect %s -n 8 --seed 2 <%s 2>&1", build_path("quern"),
             pool.frontend, path);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    ret_out[fread(ret_out, 1, size - 1, pipe)] = 0;
    int status = pclose(pipe);
    unlink(path);
    return status >> 8;
}

START_TEST(quotes_hold_the_lines_of_a_turn_together)
{
    static const struct {
        const char *typed, *turn;
    } cases[] = {
        {"\"\"\"\nWhat is 2\nplus\n3?\n\"\"\"\n", "What is 2\nplus\n3?"},
        {"\"\"\"What is 2\nplus\n4?\"\"\"\n", "What is 2\nplus\n4?"},
        {"\"\"\"What is 2\r\nplus 5?\r\n\"\"\"\r\n", "What is 2\nplus 5?"},
        {"\"\"\"  What is\n\n 6?\n\n\"\"\"  \n", "  What is\n\n 6?\n"},
        {"\"\"\"/reset\"\"\"\n", "/reset"},
        {"\"\"\"Say \"\"\" three times\nnow\n\"\"\"", "Say \"\"\" three times\nnow"},
        {"Say \"\"\"\n", "Say \"\"\""},
        {"\"\"\"\"\"\"\nHello\n", "Hello"},
        {"\"\"\"\n\"\"\"\nHello\n", "Hello"},
    };
    char got[8192];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(chat_of(cases[i].typed, got, sizeof got), 0);
        const char *answer = answer_to(cases[i].turn);
        ck_assert_msg(strncmp(got, answer, strlen(answer)) == 0, "%s: %s and not %s", cases[i].typed, got,
                      answer);
    }
}
END_TEST

START_TEST(a_line_that_ends_with_a_backslash_goes_on)
{
    static const struct {
        const char *typed, *turn;
    } cases[] = {
        {"What is 2\\\nplus\\\n3?\n", "What is 2\nplus\n3?"},
        {"What is 2\\\n\nHello\n", "What is 2\n"},
        {"What is 7?\\", "What is 7?"}, /* at the end of a file */
        {"a \\ b\n", "a \\ b"},
        {"Hello\\\n/reset\n", "Hello\n/reset"}, /* no command */
        {"\"\"\"one\\\ntwo\"\"\"\n", "one\\\ntwo"},
    };
    char got[8192];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(chat_of(cases[i].typed, got, sizeof got), 0);
        const char *answer = answer_to(cases[i].turn);
        ck_assert_msg(strncmp(got, answer, strlen(answer)) == 0, "%s: %s and not %s", cases[i].typed, got,
                      answer);
    }
    int terminal;
    pid_t pid = start_chat(&terminal, "xterm");
    type(terminal, "What is 2\\\r");
    expect(terminal, "... ");
    type(terminal, "\x03");
    expect(terminal, "> ");
    type(terminal, "What is 2\\\r");
    expect(terminal, "... ");
    type(terminal, "plus 5?\r");
    expect_answer(terminal, "What is 2\nplus 5?");
    type(terminal, BEGIN "C:\\" END "\r"); /* as it is */
    expect_answer(terminal, "C:\\");
    leave(pid, terminal);
}
END_TEST

START_TEST(quotes_that_nothing_closes_are_an_error_of_a_pipe)
{
    char got[8192];
    ck_assert_int_eq(chat_of("\"\"\"What is 2\nplus\n", got, sizeof got), 1);
    ck_assert_str_eq(got, "quern: stdin ends before \"\"\" closes a turn\n");
    int terminal;
    pid_t pid = start_chat(&terminal, "xterm");
    type(terminal, "\"\"\"\r");
    expect(terminal, "... ");
    type(terminal, "\x04");
    ck_assert_int_eq(end_of(pid, terminal), 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, what_is_pasted_is_sent_by_enter_as_one_turn);
    tcase_add_test(tests, what_is_pasted_during_an_answer_is_one_turn_too);
    tcase_add_test(tests, an_interrupt_gives_up_what_is_pasted_and_what_is_quoted);
    tcase_add_test(tests, a_paste_that_is_too_long_is_left_out);
    tcase_add_test(tests, a_terminal_is_not_left_with_marks_by_whatever_ends_the_chat);
    tcase_add_test(tests, a_dumb_terminal_is_asked_for_nothing);
    tcase_add_test(tests, quotes_hold_the_lines_of_a_turn_together);
    tcase_add_test(tests, a_line_that_ends_with_a_backslash_goes_on);
    tcase_add_test(tests, quotes_that_nothing_closes_are_an_error_of_a_pipe);
}

int main(void)
{
    return run_tests("turns", add);
}
