/* SPDX-License-Identifier: MIT */
/* quern-worker's command line: every option to its field, every bound to its error. */

#include "tests/unit/child.h"
#include "tests/unit/run.h"
#include "worker/options.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUIRED "quern-worker", "model.gguf", "--link-fd", "3", "--stream-fd", "4"

/* Arguments are the process's own: they may be permuted and cut. The options borrow them. */
static struct worker_options parse(int argc, const char *const *argv)
{
    static char words[64][1024];
    char *copy[65] = {NULL};
    struct worker_options options;
    for (int i = 0; i < argc; i++)
        copy[i] = strcpy(words[i], argv[i]);
    worker_options_parse(argc, copy, &options);
    return options;
}

#define PARSE(...)                                                                                           \
    parse(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), (const char *const[]){__VA_ARGS__})

START_TEST(what_is_not_said_has_its_default)
{
    struct worker_options o = PARSE(REQUIRED);
    ck_assert_str_eq(o.model, "model.gguf");
    ck_assert_int_eq(o.link_fd, 3);
    ck_assert_int_eq(o.stream_fd, 4);
    ck_assert_str_eq(o.name, "worker-0");
    ck_assert_str_eq(o.device, "auto");
    ck_assert_uint_eq(o.incarnation, 1);
    ck_assert_uint_eq(o.context + o.slots + o.kv_blocks + o.draft + o.threads + o.board_slot, 0);
    ck_assert_int_eq(o.board_fd, -1);
    ck_assert_int_eq(o.prefix_store_fd, -1);
    ck_assert_uint_eq(o.cached_blocks, UINT32_MAX);
    ck_assert(!o.invariant && !o.host_sampling && !o.no_sandbox && !o.count_devices);
    ck_assert_uint_eq(o.frame_us, 250);
    ck_assert_uint_eq(o.orphan_s, 60);
}
END_TEST

START_TEST(each_option_has_its_field)
{
    struct worker_options o =
        PARSE(REQUIRED, "--name", "w", "--incarnation", "2", "--device", "null", "--ctx", "3", "--slots", "4",
              "--kv-blocks", "5", "--draft", "7", "--kv-type", "q8_0", "--chat-template", "t", "--system",
              "Be brief.", "--threads", "6", "--board-fd", "8", "--board-slot", "9", "--frame-us", "0",
              "--orphan-s", "11", "--quantize", "Q8_0", "--cached-blocks", "12", "--prefix-store-fd", "13",
              "--local-workers", "14", "--parent", "15", "--cublas", "auto", "--invariant", "--host-sampling",
              "--no-sandbox");
    ck_assert_str_eq(o.name, "w");
    ck_assert_str_eq(o.device, "null");
    ck_assert_uint_eq(o.incarnation, 2);
    ck_assert_uint_eq(o.context, 3);
    ck_assert_uint_eq(o.slots, 4);
    ck_assert_uint_eq(o.kv_blocks, 5);
    ck_assert_uint_eq(o.draft, 7);
    ck_assert_str_eq(o.kv_type, "q8_0");
    ck_assert_str_eq(o.cublas, "auto");
    ck_assert_str_eq(o.chat_template, "t");
    ck_assert_str_eq(o.system, "Be brief.");
    ck_assert_uint_eq(o.threads, 6);
    ck_assert_int_eq(o.board_fd, 8);
    ck_assert_uint_eq(o.board_slot, 9);
    ck_assert_uint_eq(o.frame_us, 0);
    ck_assert_uint_eq(o.orphan_s, 11);
    ck_assert_str_eq(o.quantize, "Q8_0");
    ck_assert_uint_eq(o.cached_blocks, 12);
    ck_assert_int_eq(o.prefix_store_fd, 13);
    ck_assert_uint_eq(o.local_workers, 14);
    ck_assert_uint_eq(o.parent, 15);
    ck_assert(o.invariant && o.host_sampling && o.no_sandbox);
}
END_TEST

START_TEST(who_counts_devices_needs_no_pool)
{
    struct worker_options o = PARSE("quern-worker", "--count-devices", "--device", "emu", "--", "-x.gguf");
    ck_assert(o.count_devices);
    ck_assert_str_eq(o.device, "emu");
    ck_assert_str_eq(o.model, "-x.gguf");
}
END_TEST

/* The status of a process that reads these words after the required ones. */
static int status_with(const char *option, const char *value)
{
    int status;
    pid_t pid = fork_child();
    if (pid == 0) {
        close(STDERR_FILENO);
        PARSE(REQUIRED, option, value);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

START_TEST(bounds_hold_on_both_sides)
{
    static const struct {
        const char *option, *least, *most, *below, *above;
    } cases[] = {{"--incarnation", "0", "4294967295", "-1", "4294967296"},
                 {"--ctx", "1", "16777216", "0", "16777217"},
                 {"--slots", "1", "4096", "0", "4097"},
                 {"--kv-blocks", "1", "67108864", "0", "67108865"},
                 {"--threads", "1", "1024", "0", "1025"},
                 {"--board-fd", "0", "65535", "-1", "65536"},
                 {"--board-slot", "0", "65535", " 1", "65536"},
                 {"--frame-us", "0", "1000000", "1x", "1000001"},
                 {"--orphan-s", "1", "1048576", "0", "1048577"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(status_with(cases[i].option, cases[i].least) == 0, "%s", cases[i].option);
        ck_assert_msg(status_with(cases[i].option, cases[i].most) == 0, "%s", cases[i].option);
        ck_assert_msg(status_with(cases[i].option, cases[i].below) == 2, "%s", cases[i].option);
        ck_assert_msg(status_with(cases[i].option, cases[i].above) == 2, "%s", cases[i].option);
    }
}
END_TEST

static int status_of(int argc, const char *const *argv)
{
    int status;
    pid_t pid = fork_child();
    if (pid == 0) {
        close(STDERR_FILENO);
        parse(argc, argv);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

START_TEST(model_broker_and_stream_are_required_and_the_model_is_one)
{
    static const char *const all[] = {REQUIRED, "another.gguf"};
    static const char *const no_model[] = {"quern-worker", "--link-fd", "3", "--stream-fd", "4"};
    ck_assert_int_eq(status_of(6, all), 0);
    ck_assert_int_eq(status_of(7, all), 2);
    ck_assert_int_eq(status_of(4, all), 2); /* no stream */
    ck_assert_int_eq(status_of(2, all), 2); /* nor a broker */
    ck_assert_int_eq(status_of(5, no_model), 2);
    ck_assert_int_eq(status_with("--no-such-option", "1"), 2);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, who_counts_devices_needs_no_pool);
    tcase_add_test(tests, what_is_not_said_has_its_default);
    tcase_add_test(tests, each_option_has_its_field);
    tcase_add_test(tests, bounds_hold_on_both_sides);
    tcase_add_test(tests, model_broker_and_stream_are_required_and_the_model_is_one);
}

int main(void)
{
    return run_tests("worker options", add);
}
