/* SPDX-License-Identifier: MIT */
/* What holds for every verb: help, versions, usage errors, exit statuses. The verbs are those in --help, so a
 * new one is tested from the start. */

#include "tests/integration/support/pool.h"
#include "tests/integration/support/shell.h"
#include "tests/unit/run.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/backend/backends.h"

#define MAX_VERBS 40

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* The names in a list of verbs: the first word of each line that is indented by two. Returns their number. */
static int names_of(const char *list, char ret_names[MAX_VERBS][32])
{
    int n = 0;
    for (const char *line = list; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (line[0] == ' ' && line[1] == ' ' && islower((unsigned char)line[2]) && n < MAX_VERBS)
            ck_assert_int_eq(sscanf(line, "%31s", ret_names[n++]), 1);
    }
    return n;
}

/* Every verb and every benchmark, as one types them after "quern". */
static int all_verbs(char ret_verbs[MAX_VERBS][64])
{
    char names[MAX_VERBS][32];
    ck_assert_int_eq(shell("$Q/quern --help"), 0);
    int n = names_of(out, names);
    for (int i = 0; i < n; i++)
        snprintf(ret_verbs[i], 64, "%.31s", names[i]);
    ck_assert_int_eq(shell("$Q/quern bench --help"), 0);
    int n_bench = names_of(out, names);
    ck_assert_int_gt(n, 10);
    ck_assert_int_gt(n_bench, 2);
    for (int i = 0; i < n_bench; i++)
        snprintf(ret_verbs[n + i], 64, "bench %.31s", names[i]);
    return n + n_bench;
}

/* What a person reads on any terminal: ASCII, lines of 80 columns at most. */
static void check_readable(const char *what, const char *text)
{
    size_t column = 0;
    for (const char *c = text; *c; c++) {
        ck_assert_msg((unsigned char)*c < 0x7f, "%s is not ASCII: %.40s", what, c);
        column = *c == '\n' ? 0 : column + 1;
        ck_assert_msg(column <= 80, "%s has a line of more than 80 columns: %.80s", what, c - 79);
    }
}

START_TEST(every_verb_has_help)
{
    static char verbs[MAX_VERBS][64], first[sizeof out];
    int n = all_verbs(verbs);
    for (int i = 0; i < n; i++) {
        char line[128], usage[80];
        snprintf(line, sizeof line, "$Q/quern %.60s --help", verbs[i]);
        snprintf(usage, sizeof usage, "Usage: quern %.60s ", verbs[i]);
        ck_assert_msg(shell(line) == 0, "%s --help fails: %s", verbs[i], err);
        ck_assert_msg(begins(out, usage), "%s --help begins: %.80s", verbs[i], out);
        ck_assert_str_eq(err, "");
        check_readable(verbs[i], out);
        strcpy(first, out);
        static const char *const ways[] = {"$Q/quern help %.60s", "$Q/quern %.60s -h", "$Q/quern %.60s '-?'"};
        for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
            snprintf(line, sizeof line, ways[way], verbs[i]);
            ck_assert_msg(shell(line) == 0, "%s: %s", line, err);
            ck_assert_str_eq(out, first);
        }
    }
    /* Not where it is the value of an option, or comes after all of them. */
    ck_assert_int_eq(shell("$Q/quern run -n -h"), 2);
    ck_assert(begins(err, "quern run: --max-tokens: \"-h\" is not a number"));
    ck_assert_int_eq(shell("$Q/quern inspect -- -h"), 1);
    ck_assert(begins(err, "quern: -h: No such file or directory\n"));
}
END_TEST

START_TEST(every_verb_refuses_what_it_does_not_know)
{
    static char verbs[MAX_VERBS][64];
    int n = all_verbs(verbs);
    for (int i = 0; i < n; i++) {
        char line[128], prefix[80];
        snprintf(prefix, sizeof prefix, "quern %.60s: ", verbs[i]);
        snprintf(line, sizeof line, "$Q/quern %.60s --no-such-option", verbs[i]);
        ck_assert_msg(shell(line) == 2, "%s", line);
        ck_assert_msg(begins(err, prefix), "%s says: %s", verbs[i], err);
        ck_assert_ptr_nonnull(strstr(err, "--no-such-option"));
        ck_assert_str_eq(out, "");
    }
}
END_TEST

START_TEST(the_list_of_verbs_is_help_and_asking_for_nothing_is_not)
{
    static const char *const ways[] = {"--help",       "-h",       "-?",        "help",
                                       "bench --help", "bench -h", "bench help"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char line[64];
        snprintf(line, sizeof line, "$Q/quern %s", ways[i]);
        ck_assert_int_eq(shell(line), 0);
        ck_assert(begins(out, "Usage: quern "));
        ck_assert_str_eq(err, "");
        check_readable(ways[i], out);
    }
    ck_assert_int_eq(shell("$Q/quern"), 2);
    ck_assert_str_eq(out, "");
    ck_assert(begins(err, "Usage: quern VERB"));
    ck_assert_int_eq(shell("$Q/quern bench"), 2);
    ck_assert(begins(err, "Usage: quern bench NAME"));
}
END_TEST

START_TEST(a_name_that_is_not_there_suggests_the_nearest)
{
    static const struct {
        const char *line, *said;
    } cases[] = {{"$Q/quern srve", "quern: unknown verb \"srve\"; did you mean \"serve\"?\n"},
                 {"$Q/quern tokenise", "quern: unknown verb \"tokenise\"; did you mean \"tokenize\"?\n"},
                 {"$Q/quern chta --system x", "quern: unknown verb \"chta\"; did you mean \"chat\"?\n"},
                 {"$Q/quern quant", "quern: unknown verb \"quant\"; did you mean \"quantize\"?\n"},
                 {"$Q/quern help stat", "quern: unknown verb \"stat\"; did you mean \"status\"?\n"},
                 {"$Q/quern bench pol", "quern bench: unknown benchmark \"pol\"; did you mean \"pool\"?\n"},
                 {"$Q/quern foo", "quern: unknown verb \"foo\"\n"},
                 {"$Q/quern upgrade", "quern: unknown verb \"upgrade\"\n"},
                 {"$Q/quern ''", "quern: unknown verb \"\"\n"},
                 {"$Q/quern --model x", "quern: unrecognized option '--model'\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(shell(cases[i].line), 2);
        ck_assert_str_eq(out, "");
        ck_assert_msg(begins(err, cases[i].said), "%s says: %s", cases[i].line, err);
        ck_assert_ptr_nonnull(strstr(err, "--help' for more information.\n"));
    }
}
END_TEST

START_TEST(what_is_wrong_on_a_command_line_is_named_as_it_was_typed)
{
    static const struct {
        const char *line, *said;
    } cases[] = {
        {"$Q/quern chat hello", "quern chat: Too many arguments\n"},
        {"$Q/quern run --temp x hi", "quern run: --temperature: \"x\" is not a number from 0 to 100\n"},
        {"$Q/quern run -n 0 hi", "quern run: --max-tokens: 0 is out of range 1..2147483647\n"},
        {"$Q/quern logits --tokens 1,x",
         "quern logits: --tokens: \"x\" is not a number from 0 to 2147483647\n"},
        {"$Q/quern logits --tokens 1,,2",
         "quern logits: --tokens: \"\" is not a number from 0 to 2147483647\n"},
        {"$Q/quern logits --tokens 1,+2",
         "quern logits: --tokens: \"+2\" is not a number from 0 to 2147483647\n"},
        {"$Q/quern bench pool -s 1", "quern bench pool: --requests: 1 is out of range 2..4096\n"},
        {"$Q/quern run --top-k=-1 hi", "quern run: --top-k: -1 is out of range 0..2147483647\n"},
        {"$Q/quern run $(yes -- --logit-bias=1:1 | head -n 1025) hi",
         "quern run: --logit-bias: at most 1024 are allowed\n"},
        {"$Q/quern run $(yes -- --stop=x | head -n 17) hi", "quern run: --stop: at most 16 are allowed\n"},
        {"$Q/quern run --stop '' hi", "quern run: --stop: expected 1 to 256 bytes, not 0\n"},
        {"$Q/quern run --stop $(printf %0257d 0) hi",
         "quern run: --stop: expected 1 to 256 bytes, not 257\n"},
        {"$Q/quern run $(yes -- --stop-id=1 | head -n 65) hi",
         "quern run: --stop-id: at most 64 are allowed\n"},
        {"$Q/quern serve x --curve-key x", "quern serve: curve-key: requires tcp\n"},
        {"$Q/quern serve x --http x",
         "quern serve: http: \"x\" is not HOST:PORT with a port from 0 to 65535\n"},
        {"$Q/quern serve x --config /nowhere", "quern serve: /nowhere: No such file or directory\n"},
        {"$Q/quern-worker --slots 0", "quern-worker: --slots: 0 is out of range 1..4096\n"},
        {"$Q/quern serve x --config /tmp", "quern serve: /tmp: Is a directory\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(shell(cases[i].line), 2);
        ck_assert_str_eq(out, "");
        ck_assert_msg(begins(err, cases[i].said), "%s says: %s", cases[i].line, err);
    }
}
END_TEST

START_TEST(every_program_tells_its_version)
{
    static const char *const lines[] = {"quern", "quern-broker", "quern-worker"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[64], said[64];
        snprintf(said, sizeof said, "%s " QUERN_VERSION "\n", lines[i]);
        for (int way = 0; way < 2; way++) {
            snprintf(line, sizeof line, "$Q/%s %s", lines[i], way ? "-V" : "--version");
            ck_assert_int_eq(shell(line), 0);
            ck_assert_str_eq(out, said);
        }
        for (int way = 0; way < 2; way++) {
            snprintf(line, sizeof line, "$Q/%s %s", lines[i], way ? "-h" : "--help");
            ck_assert_int_eq(shell(line), 0);
            ck_assert(begins(out, "Usage: quern"));
        }
    }
    ck_assert_int_eq(shell("$Q/quern run --version"), 0);
    ck_assert_str_eq(out, "quern " QUERN_VERSION "\n");
}
END_TEST

/* Those that there are, whether or not in this machine. */
START_TEST(help_offers_the_devices_that_there_are)
{
    static const char *const lines[] = {"quern serve",        "quern-broker",        "quern-worker",
                                        "quern run",          "quern chat",          "quern logits",
                                        "quern bench decode", "quern bench prefill", "quern bench batch",
                                        "quern bench draft"};
    static const char *const devices[] = {"auto", "cpu", "null", "cuda", "emu"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[64];
        snprintf(line, sizeof line, "$Q/%s --help", lines[i]);
        ck_assert_int_eq(shell(line), 0);
        char *option = strstr(out, "--device");
        ck_assert_msg(option != NULL, "%s", line);
        char *end = strstr(option + 1, " --"); /* the next option */
        ck_assert_ptr_nonnull(end);
        *end = 0;
        for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
            ck_assert_msg(strstr(option, devices[d]), "%s: %s in: %s", lines[i], devices[d], option);
    }
    struct backend_choice choice;
    struct error refused = {0};
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
        ck_assert_int_ne(backend_choose(devices[d], NULL, &choice, &refused), -EINVAL);
    ck_assert_int_eq(backend_choose("gpu", NULL, &choice, &refused), -EINVAL);
    ck_assert_str_eq(refused.text, "unknown device \"gpu\"; available: " QUERN_DEVICES);
}
END_TEST

/* The emulated GPU, under the name of a real one. */
START_TEST(a_gpu_that_is_wrong_or_too_small_is_refused_and_auto_takes_the_cpu)
{
    static const struct {
        const char *line;
        int status;
        const char *said;
    } cases[] = {
        {"$Q/quern logits \"$MODEL\" --tokens 1,2,3 --device cpu --out - | cksum", 0, ""},
        {"$Q/quern logits \"$MODEL\" --tokens 1,2,3 --out - | cksum", 0,
         "quern: using the CPU instead of the GPU: emulated computes wrong results: kernel norm (layer 0), "
         "with 2 rows: "},
        {"$Q/quern logits \"$MODEL\" --tokens 1,2,3 --device cuda --out -", 1,
         "quern: emulated computes wrong results: kernel norm "},
        {"$Q/quern run --model \"$MODEL\" --device cuda x", 1,
         "quern: the pool did not start: emulated computes wrong results: kernel norm "},
        {"$Q/quern run --model \"$MODEL\" -n 2 --ids x >/dev/null", 0, ""}};
    char expected[64] = "", plugins[sizeof dir + 16];
    snprintf(plugins, sizeof plugins, "%s/plugins", dir);
    setenv("QUERN_PLUGINS", plugins, 1);
    ck_assert_int_eq(shell("mkdir $QUERN_PLUGINS && ln -s $Q/quern-emu.so $QUERN_PLUGINS/quern-cuda.so"), 0);
    setenv("QUERN_EMU_SKIP", "norm", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = shell(cases[i].line);
        ck_assert_msg(status == cases[i].status, "%s: status %d, %s", cases[i].line, status, err);
        ck_assert_msg(begins(err, cases[i].said), "%s says: %s", cases[i].line, err);
        if (i == 0)
            memcpy(expected, out, sizeof expected - 1); /* a sum and a count */
        if (i == 1)
            ck_assert_str_eq(out, expected);
    }
    ck_assert_int_eq(shell("QUERN_EMU_SKIP= QUERN_EMU_BYTES=5000000 $Q/quern logits \"$MODEL\" "
                           "--tokens 1,2,3 --out - | cksum"),
                     0);
    ck_assert_msg(begins(err, "quern: using the CPU instead of the GPU: 1 sequences with a context of 3 "),
                  "%s", err);
    ck_assert_str_eq(out, expected);
    ck_assert_int_eq(shell("rm -r $QUERN_PLUGINS"), 0);
    unsetenv("QUERN_EMU_SKIP");
    unsetenv("QUERN_PLUGINS");
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, shell_open, shell_close);
    tcase_add_test(tests, every_verb_has_help);
    tcase_add_test(tests, every_verb_refuses_what_it_does_not_know);
    tcase_add_test(tests, the_list_of_verbs_is_help_and_asking_for_nothing_is_not);
    tcase_add_test(tests, a_name_that_is_not_there_suggests_the_nearest);
    tcase_add_test(tests, what_is_wrong_on_a_command_line_is_named_as_it_was_typed);
    tcase_add_test(tests, every_program_tells_its_version);
    tcase_add_test(tests, help_offers_the_devices_that_there_are);
    if (EMULATED)
        tcase_add_test(tests, a_gpu_that_is_wrong_or_too_small_is_refused_and_auto_takes_the_cpu);
}

int main(void)
{
    return run_tests("command", add);
}
