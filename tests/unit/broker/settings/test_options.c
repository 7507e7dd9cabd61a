/* SPDX-License-Identifier: MIT */
/* The command line, the file beneath it, and which hosts count as this machine. */

#include "broker/settings/options_check.h"
#include "broker/settings/sampling_options.h"
#include "common/files/rundir.h"
#include "tests/unit/run.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PARSE(options, err, ...)                                                                             \
    options_parse((int)(sizeof((char *[]){"quern-broker", __VA_ARGS__}) / sizeof(char *)),                   \
                  (char *[]){"quern-broker", __VA_ARGS__, NULL}, options, err)

START_TEST(the_command_line_fills_every_field)
{
    struct options options;
    ck_assert_int_eq(PARSE(&options, NULL, "m.gguf", "--workers", "3", "--device=cpu", "--rundir", "/tmp/x",
                           "--ctx", "2048", "--frame-us", "0", "--tcp", "127.0.0.1:5000"),
                     0);
    ck_assert_str_eq(options.model, "m.gguf");
    ck_assert_uint_eq(options.workers, 3);
    ck_assert_str_eq(options.device, "cpu");
    ck_assert_str_eq(options.rundir, "/tmp/x");
    ck_assert_uint_eq(options.context, 2048);
    ck_assert(options.has_frame_us);
    ck_assert_uint_eq(options.frame_us, 0);
    ck_assert(!options.has_cached_blocks && !options.has_http_sse_ping && !options.has_http_thinking_budget);
    ck_assert_str_eq(options.tcp, "127.0.0.1:5000");
    ck_assert_uint_eq(options.slots, 0);
    ck_assert_uint_eq(options.drain_seconds, 60);
    ck_assert_uint_eq(options.no_sandbox, 0);
    ck_assert_uint_eq(options.invariant, 0);
    ck_assert_uint_eq(options.host_sampling, 0);
    ck_assert_int_eq(PARSE(&options, NULL, "m.gguf", "--no-sandbox", "--invariant", "--host-sampling",
                           "--rundir", "/tmp/x"),
                     0);
    ck_assert_uint_eq(options.workers, 0); /* as many as there are devices */
    ck_assert_uint_eq(options.invariant, 1);
    ck_assert_uint_eq(options.host_sampling, 1);
    ck_assert_uint_eq(options.no_sandbox, 1);
}
END_TEST

START_TEST(what_is_written_reads_the_same)
{
    struct options options, again;
    struct command_line line = {0}, second = {0};
    ck_assert_int_eq(
        PARSE(&options, NULL, "--workers", "3", "--device=cpu", "--rundir", "/tmp/x", "--frame-us", "0",
              "--tcp", "127.0.0.1:5000", "--drain-seconds=0", "--cached-blocks", "0", "--kv-type=q8_0",
              "--cublas=auto", "--draft", "12", "--prefix-store", "64", "--max-tokens=77", "--override-kv",
              "a.b=str:c d", "--rope-scaling=yarn", "--override-kv", "a.c=int:5", "--rope-scale", "2",
              "--rope-scale", "4", "--no-sandbox", "--alias", "-x", "--alias", "two words", "--http=auto",
              "--http-open", "--share-prefixes", "--http-cors=*", "--http-max-tokens=3", "--http-body-kb=4",
              "--http-sse-ping=0", "--http-thinking-budget=0", "--owner", "7", "--supervision-fd", "9",
              "--began", "8", "--said-by", "x y", "--", "-odd name"),
        0);
    command_line_add(&line, "quern-broker");
    command_line_add(&second, "quern-broker");
    options_write(&options, &line);
    char *const *words = command_line_words(&line);
    ck_assert_ptr_nonnull(words);
    ck_assert_int_eq(options_parse((int)line.n, (char **)words, &again, NULL), 0);
    ck_assert_str_eq(again.model, "-odd name");
    ck_assert(again.has_cached_blocks);
    ck_assert_str_eq(again.kv_type, "q8_0");
    ck_assert_str_eq(again.cublas, "auto");
    ck_assert_uint_eq(again.draft, 12);
    ck_assert_str_eq(again.overrides, "override-kv a.b=str:c d\nrope-scaling yarn\noverride-kv a.c=int:5\n"
                                      "rope-scale 4\n");
    ck_assert_uint_eq(again.n_aliases, 2);
    ck_assert_str_eq(again.aliases[0], "-x");
    ck_assert_str_eq(again.aliases[1], "two words");
    ck_assert_uint_eq(again.http_open, 1);
    ck_assert_uint_eq(again.share_prefixes, 1);
    ck_assert_uint_eq(again.max_tokens, 77);
    ck_assert_uint_eq(again.journal, 0); /* as the slots need */
    ck_assert_uint_eq(again.http_max_tokens, 3);
    ck_assert(again.has_http_sse_ping);
    ck_assert_uint_eq(again.http_sse_ping, 0);
    ck_assert(again.has_http_thinking_budget);
    ck_assert_uint_eq(again.http_thinking_budget, 0);
    ck_assert_uint_eq(again.prefix_store, 64);
    ck_assert_uint_eq(again.drain_seconds, 0);
    ck_assert_str_eq(options.said_by, "x y");
    ck_assert_uint_eq(options.began, 8);
    ck_assert_str_eq(again.said_by, ""); /* these four are the first process's alone */
    ck_assert_uint_eq(again.began, 0);
    ck_assert_uint_eq(again.owner, 0);
    ck_assert_uint_eq(again.supervision_fd, 0);
    options_write(&again, &second);
    ck_assert_uint_eq(second.n, line.n);
    for (size_t i = 0; i < line.n; i++)
        ck_assert_str_eq(second.words[i], line.words[i]);
    command_line_deinit(&line);
    command_line_deinit(&second);
}
END_TEST

/* A session needs one, and for a while two. */
START_TEST(who_may_have_more_sessions_may_have_the_subscriptions_for_them)
{
    struct options options;
    ck_assert_int_eq(PARSE(&options, NULL, "m.gguf"), 0);
    ck_assert_uint_eq(options.client_sessions, 4096);
    ck_assert_uint_eq(options.client_subscriptions, 8192);
    ck_assert_int_eq(PARSE(&options, NULL, "m.gguf", "--client-sessions", "10"), 0);
    ck_assert_uint_eq(options.client_subscriptions, 8192);
    ck_assert_int_eq(PARSE(&options, NULL, "m.gguf", "--client-sessions", "4097"), 0);
    ck_assert_uint_eq(options.client_subscriptions, 8194);
    ck_assert_int_eq(PARSE(&options, NULL, "m.gguf", "--client-sessions", "16384"), 0);
    ck_assert_uint_eq(options.client_subscriptions, 32768);
    ck_assert_int_eq(PARSE(&options, NULL, "m.gguf", "--client-subscriptions=7", "--client-sessions=16384"),
                     0);
    ck_assert_uint_eq(options.client_subscriptions, 7);
}
END_TEST

START_TEST(an_invariant_pool_multiplies_by_no_library)
{
    struct options options;
    struct error err = {0};
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--rundir", "/tmp/x", "--invariant", "--cublas", "512"),
                     -EINVAL);
    ck_assert_str_eq(
        err.text,
        "cublas and invariant exclude each other: cuBLASLt's results depend on the number of rows in a step");
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--rundir", "/tmp/x", "--invariant", "--cublas", "off"),
                     0);
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--rundir", "/tmp/x", "--cublas", "512"), 0);
    ck_assert_str_eq(options.cublas, "512");
}
END_TEST

START_TEST(numbers_out_of_range_are_named)
{
    static const char *const wrong[] = {"--workers=0", "--workers=65", "--workers=two", "--workers=-1",
                                        "--workers=1x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct options options;
        struct error err = {{0}};
        ck_assert_int_eq(PARSE(&options, &err, "m.gguf", (char *)wrong[i]), -EINVAL);
        ck_assert_ptr_nonnull(strstr(err.text, "workers"));
    }
}
END_TEST

START_TEST(each_number_has_its_bounds)
{
    static const struct {
        const char *option;
        unsigned long long least, most;
    } cases[] = {{"workers", 1, 64},         {"ctx", 1, 1u << 24},       {"slots", 1, 4096},
                 {"kv-blocks", 1, 1u << 26}, {"threads", 1, 1024},       {"frame-us", 0, 1000000},
                 {"owner", 1, 2147483647},   {"drain-seconds", 0, 86400}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options options;
        char words[4][64];
        const unsigned long long values[] = {cases[i].least, cases[i].most, cases[i].most + 1,
                                             cases[i].least - 1};
        for (int k = 0; k < 4; k++) {
            snprintf(words[k], sizeof words[k], "--%s=%llu", cases[i].option, values[k]);
            ck_assert_msg(PARSE(&options, NULL, "m.gguf", words[k]) == (k < 2 ? 0 : -EINVAL), "%s", words[k]);
        }
    }
}
END_TEST

START_TEST(the_command_line_wins_over_the_file)
{
    char rundir[RUNDIR_PATH_MAX + 1], path[RUNDIR_PATH_MAX + 8];
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    snprintf(path, sizeof path, "%s/conf", rundir);
    FILE *file = fopen(path, "w");
    fputs("model = file.gguf\nworkers = 4\nctx = 512\nno-sandbox = 1\n", file);
    fclose(file);
    struct options options;
    ck_assert_int_eq(PARSE(&options, NULL, "--workers", "2", "--config", path), 0);
    ck_assert_str_eq(options.model, "file.gguf");
    ck_assert_uint_eq(options.workers, 2);
    ck_assert_uint_eq(options.context, 512);
    ck_assert_uint_eq(options.no_sandbox, 1);

    struct error err = {{0}};
    file = fopen(path, "w");
    fputs("wrokers = 4\n", file);
    fclose(file);
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--config", path), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "conf:1: unknown setting \"wrokers\""));

    /* What is indented is no part of what stands above it, and what a process says to its own is not for
     * files. */
    file = fopen(path, "w");
    fputs("ctx = 512\n    workers = 99999\n", file);
    fclose(file);
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--config", path), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "conf:2: workers: 99999 is out of range 1..64"));
    file = fopen(path, "w");
    fputs("supervision-fd = 5\n", file);
    fclose(file);
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--config", path), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "unknown setting"));
    rundir_remove(rundir);
}
END_TEST

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

/* For a pool that runs: nothing exits, and what cannot change is named. */
START_TEST(settings_are_read_again_as_a_whole_or_not_at_all)
{
    char rundir[RUNDIR_PATH_MAX + 1], path[RUNDIR_PATH_MAX + 8];
    struct options running, next;
    struct error err = {{0}};
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    snprintf(path, sizeof path, "%s/conf", rundir);
    char *line[] = {"quern-broker", "--slots", "5", "--owner", "7", "--config", path, NULL};
    write_file(path, "model = m.gguf\nctx = 512\nhttp = auto\n");
    ck_assert_int_eq(options_parse(7, line, &running, &err), 0);
    running.workers = 3; /* as many devices were found */

    write_file(path, "model = m.gguf\nctx = 256\nslots = 9\nhttp = auto\nkv-type = q8_0\njournal = 64\n"
                     "max-tokens = 5\n");
    ck_assert_int_eq(options_parse_again(7, line, &running, &next, &err), 0);
    ck_assert_uint_eq(next.context, 256);
    ck_assert_uint_eq(next.slots, 5); /* the line still wins */
    ck_assert_uint_eq(next.workers, 3);
    ck_assert_uint_eq(next.journal, 64);
    ck_assert_uint_eq(next.max_tokens, 5);
    ck_assert_uint_eq(next.owner, 7);
    ck_assert_str_eq(next.kv_type, "q8_0");
    write_file(path, "model = m.gguf\nworkers = 2\nhttp = auto\n");
    ck_assert_int_eq(options_parse_again(7, line, &running, &next, &err), 0);
    ck_assert_uint_eq(next.workers, 2);
    ck_assert_uint_eq(next.context, 0); /* what a line said that is gone is the default again */

    static const char *const wrong[][2] = {
        {"ctx = 256\nhttp = auto\n", "names no model"},
        {"model = n.gguf\nhttp = auto\n", "model: it cannot change"},
        {"model = m.gguf\n", "http: it cannot change"},
        {"model = m.gguf\nhttp = auto\ndevice = cpu\n", "device: it cannot change"},
        {"model = m.gguf\nhttp = auto\ntcp = 127.0.0.1:1\n", "tcp: it cannot change"},
        {"model = m.gguf\nhttp = auto\nprefix-store = 1\n", "prefix-store: it cannot change"},
        {"model = m.gguf\nhttp = auto\nrundir = /tmp/other\n", "rundir: it cannot change"},
        {"model = m.gguf\nhttp = auto\nctx = 256\nbogus = 1\n", "conf:4: unknown setting"},
        {"model = m.gguf\nhttp = auto\nworkers = 0\n", "conf:3: workers: "},
        {"model = m.gguf\nhttp = auto\nhttp-tls-key = x\n", "given together"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const struct options before = next;
        write_file(path, wrong[i][0]);
        ck_assert_int_lt(options_parse_again(7, line, &running, &next, &err), 0);
        ck_assert_msg(strstr(err.text, wrong[i][1]) != NULL, "%s", err.text);
        ck_assert_mem_eq(&before, &next, sizeof next);
    }
    rundir_remove(rundir);
}
END_TEST

START_TEST(a_setting_that_a_file_gives_twice_is_refused_with_both_lines)
{
    static const char *const texts[] = {"tcp = 127.0.0.1:5000\n\ntcp = 0.0.0.0:5000\n",
                                        "model = a\n# and\nmodel = a\n", "ctx = 512\nslots = 2\nctx = 512\n"};
    struct options options;
    char rundir[RUNDIR_PATH_MAX + 1], path[RUNDIR_PATH_MAX + 16];
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    snprintf(path, sizeof path, "%s/conf", rundir);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct error err = {{0}};
        FILE *file = fopen(path, "w");
        fputs(texts[i], file);
        fclose(file);
        ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--config", path), -EINVAL);
        ck_assert_msg(strstr(err.text, "conf:3: ") && strstr(err.text, ": already set in line 1"), "%s",
                      err.text);
    }
    rundir_remove(rundir);
}
END_TEST

START_TEST(what_bears_on_http_takes_http)
{
    static const char *const names[] = {"--http-keys", "--http-tls-cert",    "--http-tls-key",
                                        "--http-log",  "--http-cors",        "--http-hosts",
                                        "--http-otlp", "--http-otlp-headers"};
    struct options options;
    struct error err = {{0}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ck_assert_int_eq(PARSE(&options, &err, "m.gguf", (char *)names[i], "file"), -EINVAL);
        ck_assert_msg(strstr(err.text, names[i] + 2) && strstr(err.text, "requires http"), "%s", err.text);
    }
    ck_assert_int_eq(PARSE(&options, NULL, "m.gguf", "--http", "127.0.0.1:1", "--http-tls-cert", "c",
                           "--http-tls-key", "k", "--http-log", "l", "--http-keys", "n", "--http-hosts",
                           "a,b", "--http-otlp", "u", "--http-otlp-headers", "h"),
                     0);
    ck_assert_str_eq(options.http_otlp, "u");
    ck_assert_str_eq(options.http_otlp_headers, "h");
    ck_assert_str_eq(options.http_tls_cert, "c");
    ck_assert_str_eq(options.http_tls_key, "k");
    ck_assert_str_eq(options.http_log, "l");
    ck_assert_str_eq(options.http_hosts, "a,b");
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--http", "auto", "--http-otlp-headers", "h"), -EINVAL);
    ck_assert_str_eq(err.text, "http-otlp-headers: requires http-otlp");
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--http-open"), -EINVAL);
    ck_assert_str_eq(err.text, "http-open: requires http");
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--http-max-tokens", "9"), -EINVAL);
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--http-body-kb", "9"), -EINVAL);
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--http-sse-ping", "9"), -EINVAL);
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--http-thinking-budget", "9"), -EINVAL);
    ck_assert_str_eq(err.text, "http-thinking-budget: requires http");
    ck_assert_int_eq(PARSE(&options, NULL, "m.gguf", "--http", "auto", "--http-open", "--http-max-tokens",
                           "7", "--http-body-kb", "9", "--http-cors", "*"),
                     0);
    ck_assert_str_eq(options.http, OPTIONS_HTTP_AUTO);
    ck_assert_str_eq(options.http_cors, "*");
    ck_assert_uint_eq(options.http_open, 1);
    ck_assert_uint_eq(options.http_max_tokens, 7);
    ck_assert_uint_eq(options.http_body_kb, 9);
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--http", "automatic"), -EINVAL);
    for (size_t i = 1; i < 3; i++) {
        ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--http", "127.0.0.1:1", (char *)names[i], "file"),
                         -EINVAL);
        ck_assert_msg(strstr(err.text, "must be given together"), "%s", err.text);
    }
}
END_TEST

START_TEST(names_of_the_line_replace_those_of_the_file)
{
    char rundir[RUNDIR_PATH_MAX + 1], path[RUNDIR_PATH_MAX + 8];
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    snprintf(path, sizeof path, "%s/conf", rundir);
    FILE *file = fopen(path, "w");
    fputs("alias = one\nalias = \"two words\"\n", file);
    fclose(file);
    struct options options;
    ck_assert_int_eq(PARSE(&options, NULL, "m.gguf", "--config", path), 0);
    ck_assert_uint_eq(options.n_aliases, 2);
    ck_assert_str_eq(options.aliases[0], "one");
    ck_assert_str_eq(options.aliases[1], "two words");
    ck_assert_int_eq(
        PARSE(&options, NULL, "--alias", "two words", "m.gguf", "--config", path, "--alias=three"), 0);
    ck_assert_uint_eq(options.n_aliases, 2);
    ck_assert_str_eq(options.aliases[0], "two words");
    ck_assert_str_eq(options.aliases[1], "three");
    rundir_remove(rundir);
}
END_TEST

START_TEST(overrides_of_the_line_replace_those_of_the_file_by_name_and_key)
{
    struct options options;
    struct error err = {0};
    char path[] = "/tmp/quern-options-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    fputs("override-kv = a.b=int:1\noverride-kv = a.c=int:2\nrope-scale = 2\n", file);
    fclose(file);
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--config", path, "--override-kv=a.b=int:7"), 0);
    ck_assert_str_eq(options.overrides, "override-kv a.c=int:2\nrope-scale 2\noverride-kv a.b=int:7\n");
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--override-kv=a.b"), -EINVAL);
    ck_assert_str_eq(err.text, "override-kv: \"a.b\" is not KEY=TYPE:VALUE");
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--rope-scale=0.1"), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "rope-scale: "));
    file = fopen(path, "w");
    fputs("rope-scale = 2\nrope-scale = 3\n", file);
    fclose(file);
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--config", path), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "already set in line 1"));
    unlink(path);
}
END_TEST

START_TEST(a_name_that_cannot_be_an_alias_is_named)
{
    char longest[PROTO_MAX_NAME_BYTES + 1], longer[PROTO_MAX_NAME_BYTES + 2];
    struct options options;
    struct error err = {{0}};
    memset(longest, 'n', sizeof longest);
    longest[sizeof longest - 1] = 0;
    memset(longer, 'n', sizeof longer);
    longer[sizeof longer - 1] = 0;
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--alias", longest), 0);
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--alias", longer), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "is too long"));
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--alias", ""), -EINVAL);
    ck_assert_str_eq(err.text, "alias: \"\" is empty");
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--alias=a", "--alias=b", "--alias=a"), -EINVAL);
    ck_assert_str_eq(err.text, "alias: \"a\" is given twice");
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--alias", "a\tb"), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "has a control character"));
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--alias", "a\x7f"), -EINVAL);
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--alias", "\xff"), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "is not UTF-8"));
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--alias=1", "--alias=2", "--alias=3", "--alias=4",
                           "--alias=5", "--alias=6", "--alias=7", "--alias=8"),
                     0);
    ck_assert_uint_eq(options.n_aliases, PROTO_MAX_ALIASES);
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--alias=1", "--alias=2", "--alias=3", "--alias=4",
                           "--alias=5", "--alias=6", "--alias=7", "--alias=8", "--alias=9"),
                     -EINVAL);
    ck_assert_str_eq(err.text, "alias: more than 8 names");
}
END_TEST

START_TEST(without_a_model_it_is_the_default_one)
{
    struct options options;
    ck_assert_int_eq(setenv("QUERN_MODEL", "/models/mine.gguf", 1), 0);
    ck_assert_int_eq(PARSE(&options, NULL, "--workers", "1"), 0);
    ck_assert(options.model_is_default);
    ck_assert_str_eq(options.model, "/models/mine.gguf");
    ck_assert_int_eq(PARSE(&options, NULL, "m.gguf"), 0);
    ck_assert(!options.model_is_default);
    ck_assert_str_eq(options.http, "");
    ck_assert_int_eq(PARSE(&options, NULL, "--http", "127.0.0.1:1"), 0);
    ck_assert_str_eq(options.http, "127.0.0.1:1");
}
END_TEST

START_TEST(only_addresses_of_this_machine_are_loopback)
{
    static const struct {
        const char *tcp;
        int result;
        bool loopback;
    } cases[] = {
        {"127.0.0.1:5000", 0, true},
        {"127.3.2.1:5000", 0, true},
        {"localhost:1", 0, true},
        {"[::1]:5000", 0, true},
        {"0.0.0.0:5000", 0, false},
        {"*:5000", 0, false},
        {"10.0.0.1:5000", 0, false},
        {"127.0.0.1.net:80", 0, false},
        {"[::]:5000", 0, false},
        {"127.0.0.1", -EINVAL, false},
        {":5000", -EINVAL, false},
        {"127.0.0.1:0", -EINVAL, false},
        {"127.0.0.1:65535", -EINVAL, false},
        {"127.0.0.1:5x", -EINVAL, false},
        {"", -EINVAL, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char host[OPTIONS_TEXT_MAX + 1];
        uint16_t port;
        bool loopback = false;
        ck_assert_int_eq(options_split_tcp(cases[i].tcp, host, &port, &loopback, NULL), cases[i].result);
        ck_assert_msg(loopback == cases[i].loopback, "%s", cases[i].tcp);
    }
}
END_TEST

START_TEST(a_public_host_is_a_name_or_an_address_of_a_pool_on_tcp)
{
    static const char *const good[] = {"pool.example.org", "10.1.2.3", "[fe80::1]", "my_box-2"};
    static const char *const bad[] = {"",         "a b",    "host:7700", "tcp://host", "fe80::1",
                                      "[fe80::1", "[host]", "[]",        "[",          "ho\nst"};
    struct options options;
    struct error err = {{0}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ck_assert_int_eq(
            PARSE(&options, NULL, "m.gguf", "--tcp", "127.0.0.1:5", "--public-host", (char *)good[i]), 0);
        ck_assert_str_eq(options.public_host, good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(
            PARSE(&options, &err, "m.gguf", "--tcp", "127.0.0.1:5", "--public-host", (char *)bad[i]),
            -EINVAL);
        ck_assert_ptr_nonnull(strstr(err.text, "public-host"));
    }
    ck_assert_int_eq(PARSE(&options, &err, "m.gguf", "--public-host", "host"), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "requires tcp"));
}
END_TEST

START_TEST(a_sampling_option_has_dashes_in_its_name_and_a_sentence_as_help)
{
    static const char *const helps[SAMPLING_N] = {
#define HELP(name, least, most, initial, letter, help) help,
        SAMPLING_PARAMETERS(HELP, HELP)};
    struct sampling_option_texts texts;
    struct argp_option rows[SAMPLING_OPTIONS];
    sampling_options_fill(1000, 3, &texts, rows);
    size_t i = 0;
    for (size_t row = 0; row < SAMPLING_OPTIONS; row++) {
        ck_assert_int_eq(rows[row].group, 3);
        ck_assert_ptr_null(strchr(rows[row].name, '_'));
        ck_assert_uint_eq(sampling_option_find(rows[row].name), sampling_option_of_key(rows[row].key - 1000));
        if (rows[row].flags & OPTION_ALIAS)
            continue;
        ck_assert_int_eq(rows[row].key, 1000 + (int)i);
        ck_assert_int_eq(rows[row].doc[0], toupper((unsigned char)helps[i][0]));
        ck_assert_str_eq(rows[row].doc + 1, helps[i] + 1);
        i++;
    }
    ck_assert_uint_eq(i, SAMPLING_N);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_command_line_fills_every_field);
    tcase_add_test(tests, what_is_written_reads_the_same);
    tcase_add_test(tests, who_may_have_more_sessions_may_have_the_subscriptions_for_them);
    tcase_add_test(tests, an_invariant_pool_multiplies_by_no_library);
    tcase_add_test(tests, numbers_out_of_range_are_named);
    tcase_add_test(tests, a_sampling_option_has_dashes_in_its_name_and_a_sentence_as_help);
    tcase_add_test(tests, each_number_has_its_bounds);
    tcase_add_test(tests, the_command_line_wins_over_the_file);
    tcase_add_test(tests, settings_are_read_again_as_a_whole_or_not_at_all);
    tcase_add_test(tests, a_public_host_is_a_name_or_an_address_of_a_pool_on_tcp);
    tcase_add_test(tests, a_setting_that_a_file_gives_twice_is_refused_with_both_lines);
    tcase_add_test(tests, what_bears_on_http_takes_http);
    tcase_add_test(tests, names_of_the_line_replace_those_of_the_file);
    tcase_add_test(tests, overrides_of_the_line_replace_those_of_the_file_by_name_and_key);
    tcase_add_test(tests, a_name_that_cannot_be_an_alias_is_named);
    tcase_add_test(tests, without_a_model_it_is_the_default_one);
    tcase_add_test(tests, only_addresses_of_this_machine_are_loopback);
}

int main(void)
{
    return run_tests("broker/options", add);
}
