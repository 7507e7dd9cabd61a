/* SPDX-License-Identifier: MIT */
/* A stdin that says nothing: how long it is waited for. What quern run makes of the rest is in
 * tests/integration/command/test_run.c. */

#include "client/command/terminal/prompt.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define NEVER 3600000

static const char *const words[] = {"Once", "-"};

static void take_stdin(int fd)
{
    ck_assert_int_eq(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    close(fd);
}

START_TEST(a_pipe_or_socket_that_says_nothing_is_an_error_in_the_end)
{
    for (int socket = 0; socket < 2; socket++) {
        int ends[2];
        struct buffer prompt = {0};
        struct error err = {0};
        ck_assert_int_eq(socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends), 0);
        take_stdin(ends[0]);
        ck_assert_int_eq(prompt_read(words, 1, (struct prompt_patience){NEVER, 1}, &prompt, &err),
                         -ETIMEDOUT);
        ck_assert_str_eq(err.text, "stdin: no input within 0 s; add \"-\" after the prompt to wait longer, "
                                   "or </dev/null to go without");
        ck_assert_ptr_null(prompt.data);
        close(ends[1]);
    }
}
END_TEST

/* As when the process that has the other end, or an ssh before us, made it so. */
START_TEST(a_stdin_that_does_not_block_is_read_to_its_end_all_the_same)
{
    for (size_t n_words = 1; n_words <= 2; n_words++) {
        int ends[2];
        struct buffer prompt = {0};
        struct error err = {0};
        ck_assert_int_eq(pipe2(ends, O_NONBLOCK), 0);
        take_stdin(ends[0]);
        pid_t pid = fork();
        if (pid == 0) {
            for (int i = 0; i < 3; i++) {
                usleep(20000);
                if (write(ends[1], "x", 1) != 1)
                    _exit(1);
            }
            _exit(0);
        }
        close(ends[1]);
        int r = prompt_read(words, n_words, (struct prompt_patience){NEVER, NEVER}, &prompt, &err);
        ck_assert_msg(r == 0, "%s", err.text);
        ck_assert_str_eq((const char *)prompt.data, "Once\nxxx");
        buffer_deinit(&prompt);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_pipe_or_socket_that_says_nothing_is_an_error_in_the_end);
    tcase_add_test(tests, a_stdin_that_does_not_block_is_read_to_its_end_all_the_same);
}

int main(void)
{
    return run_tests("prompt", add);
}
