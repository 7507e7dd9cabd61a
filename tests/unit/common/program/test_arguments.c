/* SPDX-License-Identifier: MIT */
#include "common/program/arguments.h"
#include "tests/unit/child.h"
#include "tests/unit/run.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

struct made {
    uint32_t before, streams, tokens, after;
    int fd;
    const char *model;
    bool json;
    int own; /* how often the parser was left a key */
};

enum { KEY_FD = 300 };

static const struct argp_option known[] = {{"streams", 's', "N", 0, "", 0},
                                           {NULL, 'n', "N", 0, "", 0},
                                           {"fd", KEY_FD, "FD", 0, "", 0},
                                           {"model", 'm', "FILE", 0, "", 0},
                                           {"json", 'J', NULL, 0, "", 0},
                                           {"own", 'o', NULL, 0, "", 0},
                                           {0}};

static const struct argument arguments[] = {
    {'s', ARGUMENT_NUMBER, offsetof(struct made, streams), 2, 64},
    {'n', ARGUMENT_NUMBER, offsetof(struct made, tokens), 0, UINT32_MAX},
    {KEY_FD, ARGUMENT_NUMBER, offsetof(struct made, fd), 0, 65535},
    {'m', ARGUMENT_TEXT, offsetof(struct made, model), 0, 0},
    {'J', ARGUMENT_FLAG, offsetof(struct made, json), 0, 0},
    {0}};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct made *made = state->input;
    made->own += key == 'o';
    error_t r = arguments_take(arguments, known, key, text, state, made);
    return key == 'o' && r == ARGP_ERR_UNKNOWN ? 0 : r;
}

static error_t run(struct made *made, char **argv)
{
    static const struct argp argp = {.options = known, .parser = parse};
    int argc = 0;
    while (argv[argc])
        argc++;
    return argp_parse(&argp, argc, argv, ARGP_NO_EXIT, NULL, made);
}

START_TEST(each_option_sets_its_member_and_no_other)
{
    struct made made = {.before = 7, .after = 8, .fd = -1};
    char *argv[] = {"test", "--streams", "64", "-n", "4294967295", "--fd=65535", "-m", "a.gguf", "-Jo", NULL};
    ck_assert_int_eq(run(&made, argv), 0);
    ck_assert_uint_eq(made.streams, 64);
    ck_assert_uint_eq(made.tokens, UINT32_MAX);
    ck_assert_int_eq(made.fd, 65535);
    ck_assert_str_eq(made.model, "a.gguf");
    ck_assert(made.json);
    ck_assert_int_eq(made.own, 1);
    ck_assert(made.before == 7 && made.after == 8);
    made = (struct made){.fd = -1};
    ck_assert_int_eq(run(&made, (char *[]){"test", NULL}), 0);
    ck_assert(made.fd == -1 && made.streams == 0 && !made.model && !made.json && made.own == 0);
}
END_TEST

/* What a child with these arguments says on stderr before it ends with status 2. */
static void expect_refusal(char **argv, const char *says)
{
    struct child child;
    char said[1000];
    if (child_begin(&child)) {
        struct made made = {0};
        argp_err_exit_status = 2;
        argp_parse(&(struct argp){.options = known, .parser = parse}, 3, argv, 0, NULL, &made);
        _exit(0);
    }
    const int status = child_end(&child, said, sizeof said);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    ck_assert_msg(strstr(said, says), "%s", said);
}

START_TEST(a_number_that_is_none_or_out_of_bounds_is_refused_under_the_name_of_its_option)
{
    expect_refusal((char *[]){"test", "-s", "65", NULL}, "--streams: 65 is out of range 2..64");
    expect_refusal((char *[]){"test", "-s", "1", NULL}, "--streams: 1 is out of range");
    expect_refusal((char *[]){"test", "-n", "many", NULL}, "-n: \"many\" is not");
    expect_refusal((char *[]){"test", "--fd", "-1", NULL}, "--fd: -1 is out of range");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, each_option_sets_its_member_and_no_other);
    tcase_add_test(tests, a_number_that_is_none_or_out_of_bounds_is_refused_under_the_name_of_its_option);
}

int main(void)
{
    return run_tests("arguments", add);
}
