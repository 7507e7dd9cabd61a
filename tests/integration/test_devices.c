/* SPDX-License-Identifier: MIT */
/* Pools on several devices, which are emulated: $QUERN_EMU_DEVICES is their number. */

#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct pool pool;
static char plugins[] = "/tmp/quern-test-XXXXXX";

/* The emulator under the name of a real GPU too, which is what "auto" looks for. */
static void make_plugins(void)
{
    static const char *const names[] = {"cuda", "emu"};
    char link[64];
    strcpy(plugins, "/tmp/quern-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(plugins));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(link, sizeof link, "%s/quern-%s.so", plugins, names[i]);
        ck_assert_int_eq(symlink(build_path("quern-emu.so"), link), 0);
    }
    setenv("QUERN_PLUGINS", plugins, 1);
    setenv("QUERN_UNCHECKED", "1", 1); /* the gate has tests of its own */
}

static void remove_plugins(void)
{
    static const char *const names[] = {"cuda", "emu"};
    char link[64];
    pool_forget(&pool);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(link, sizeof link, "%s/quern-%s.so", plugins, names[i]);
        unlink(link);
    }
    rmdir(plugins);
}

/* Workers that `quern status` tells of. */
static uint32_t workers_of(const struct pool *of)
{
    char out[16384], name[24];
    uint32_t n = 0;
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "status", "--json", "--connect", of->rundir, NULL),
                     0);
    do
        snprintf(name, sizeof name, "\"worker-%u\"", n++);
    while (strstr(out, name));
    return n - 1;
}

/* A driver stays in the process that asks it, and may take that down. */
static void check_no_plugin(pid_t pid)
{
    char path[64], line[4096 + 128];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file))
        ck_assert_msg(!strstr(line, "/quern-emu.so"), "process %d: %s", pid, line);
    fclose(file);
}

/* `quern inspect --device`, with what follows. */
static const char *inspect(int status, const char *kind, const char *option)
{
    static char out[16384];
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "inspect", "--device", kind, option, NULL),
                     status);
    return out;
}

START_TEST(devices_are_listed_with_what_they_are)
{
    setenv("QUERN_EMU_DEVICES", "2", 1);
    setenv("QUERN_EMU_BYTES", "1073741824", 1);
    const char *text = inspect(0, NULL, NULL);
    ck_assert_msg(strncmp(text, "cpu 0\n  name ", 13) == 0, "%s", text);
    ck_assert_msg(strstr(text, "\ncuda 0\n  name                 emulated\n"
                               "  UUID                 GPU-00000000-0000-0000-0000-000000000000\n"
                               "  driver               none, emulated\n"
                               "  compute capability   9.0\n"
                               "  multiprocessors      4\n"
                               "  memory               1 GiB free, 0 bytes used, 1 GiB in all\n"
                               "cuda 1\n"),
                  "%s", text);
    text = inspect(0, "emu", "--json");
    ck_assert_msg(strstr(text, "\"uuid\":\"GPU-00000000-0000-0000-0000-000000000001\"") ||
                      strstr(text, "\"uuid\": \"GPU-00000000-0000-0000-0000-000000000001\""),
                  "%s", text);
    ck_assert_msg(!strstr(text, "cpu"), "%s", text);
    setenv("QUERN_EMU_MIG", "1", 1);
    text = inspect(0, "emu:1", NULL);
    unsetenv("QUERN_EMU_MIG");
    ck_assert_msg(strncmp(text,
                          "emu 0\n  name                 emulated MIG 1g.1gb\n"
                          "  UUID                 MIG-00000000-0000-0000-0000-000000000001\n",
                          80) == 0,
                  "%s", text);
    setenv("QUERN_EMU_DEVICES", "0", 1);
    text = inspect(0, NULL, NULL);
    ck_assert_msg(strstr(text, "\nno GPU: no device \"cuda\": no emulated devices\n"), "%s", text);
    inspect(1, "cuda", NULL);
    inspect(1, "null", NULL);
    inspect(1, "emu:9", NULL);
    inspect(1, "abacus", NULL);
    unsetenv("QUERN_EMU_BYTES");
}
END_TEST

START_TEST(the_status_says_which_device_a_worker_has)
{
    char out[16384];
    setenv("QUERN_EMU_DEVICES", "2", 1);
    pool_start(&pool, tiny_model(), "--device", "emu", "--slots", "2", "--ctx", "64", NULL);
    for (int waits = 0; waits < 600; waits++, usleep(50000)) { /* the second worker is ready later */
        ck_assert_int_eq(
            run_program(out, sizeof out, "quern", "status", "--json", "--connect", pool.rundir, NULL), 0);
        if (strstr(out, "GPU-00000000-0000-0000-0000-000000000001"))
            break;
    }
    ck_assert_msg(strstr(out, "GPU-00000000-0000-0000-0000-000000000000") &&
                      strstr(out, "GPU-00000000-0000-0000-0000-000000000001") &&
                      strstr(out, "\"none, emulated\""),
                  "%s", out);
}
END_TEST

static void check_workers(const char *devices, const char *device, uint32_t expected)
{
    setenv("QUERN_EMU_DEVICES", devices, 1);
    pool_start(&pool, tiny_model(), "--device", device, "--slots", "2", "--ctx", "64", NULL);
    ck_assert_msg(workers_of(&pool) == expected, "%s devices, %s: %s", devices, device, pool_log(&pool));
    check_no_plugin(pool.broker);
    check_no_plugin(pool_broker_pid(&pool));
    char line[64];
    for (uint32_t i = 0; i < expected && strcmp(device, "emu") == 0; i++) { /* names that tell them apart */
        snprintf(line, sizeof line, "emulated (GPU %u)", i);
        for (int waits = 0; !strstr(pool_log(&pool), line); waits++, usleep(50000))
            ck_assert_msg(waits < 600, "%s", pool_log(&pool));
    }
    snprintf(line, sizeof line, " %u devices: a worker on each", expected);
    ck_assert_msg(!strstr(pool_log(&pool), line) == (expected == 1), "%s", pool_log(&pool));
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
    pool_forget(&pool);
}

START_TEST(a_pool_has_a_worker_on_each_device)
{
    check_workers("3", "emu", 3);
    check_workers("2", "auto", 2);
    check_workers("1", "emu", 1);
}
END_TEST

/* Of four devices two, by number and by UUID, in this order. */
START_TEST(a_pool_uses_the_devices_that_are_named)
{
    setenv("QUERN_EMU_DEVICES", "4", 1);
    pool_start(&pool, tiny_model(), "--device", "emu:3,GPU-00000000-0000-0000-0000-000000000001", "--slots",
               "2", "--ctx", "64", NULL);
    ck_assert_uint_eq(workers_of(&pool), 2);
    for (int waits = 0;
         !strstr(pool_log(&pool), "emulated (GPU 1)") || !strstr(pool_log(&pool), "emulated (GPU 3)");
         waits++, usleep(50000))
        ck_assert_msg(waits < 600, "%s", pool_log(&pool));
    ck_assert_ptr_null(strstr(pool_log(&pool), "emulated (GPU 0)"));
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
    pool_forget(&pool);
    int status = pool_fails(&pool, 60, tiny_model(), "--device", "emu:0,GPU-7", NULL);
    ck_assert_int_ne(status, 0);
    ck_assert_msg(
        strstr(pool_log(&pool), "no emulated device is GPU-7; available: 0 GPU-00000000-0000-0000-0000-"),
        "%s", pool_log(&pool));
    ck_assert_msg(pool_log_lines(&pool) == 1, "%s", pool_log(&pool));
}
END_TEST

START_TEST(the_processor_is_one_device)
{
    check_workers("3", "cpu", 1);
    check_workers("0", "auto", 1); /* no GPU */
}
END_TEST

START_TEST(a_number_of_workers_rules_and_those_beyond_the_devices_share_them)
{
    setenv("QUERN_EMU_DEVICES", "2", 1);
    pool_start(&pool, tiny_model(), "--device", "emu", "--slots", "2", "--ctx", "64", "--workers", "3", NULL);
    ck_assert_uint_eq(workers_of(&pool), 3);
    ck_assert_ptr_null(strstr(pool_log(&pool), " devices: "));
    pool_stop(&pool, SIGTERM, 60);
    pool_forget(&pool);
    pool_start(&pool, tiny_model(), "--device", "emu", "--slots", "2", "--ctx", "64", "--workers", "1", NULL);
    ck_assert_uint_eq(workers_of(&pool), 1);
}
END_TEST

START_TEST(what_is_no_model_is_said_by_one_worker)
{
    const char *path = no_model();
    setenv("QUERN_EMU_DEVICES", "3", 1);
    int status = pool_fails(&pool, 60, path, NULL);
    unlink(path);
    ck_assert_int_eq(status, 1);
    ck_assert_msg(pool_log_lines(&pool) == 1, "%s", pool_log(&pool));
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, make_plugins, remove_plugins);
    tcase_add_test(tests, a_pool_has_a_worker_on_each_device);
    tcase_add_test(tests, a_pool_uses_the_devices_that_are_named);
    tcase_add_test(tests, the_processor_is_one_device);
    tcase_add_test(tests, a_number_of_workers_rules_and_those_beyond_the_devices_share_them);
    tcase_add_test(tests, devices_are_listed_with_what_they_are);
    tcase_add_test(tests, the_status_says_which_device_a_worker_has);
    tcase_add_test(tests, what_is_no_model_is_said_by_one_worker);
}

int main(void)
{
    return run_tests("devices", add);
}
