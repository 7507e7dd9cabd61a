/* SPDX-License-Identifier: MIT */
/* Pools that do not start, and what they say: one line that names what is wrong. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static struct pool pool;

static void forget(void)
{
    pool_forget(&pool);
}

START_TEST(a_second_pool_in_the_same_directory_is_refused)
{
    pool_start(&pool, tiny_model(), "--workers", "1", NULL);
    struct pool second = {0};
    strcpy(second.rundir, pool.rundir);
    int status = pool_fails(&second, 60, tiny_model(), NULL);
    ck_assert_int_eq(status, 1);
    ck_assert_ptr_nonnull(strstr(pool_log(&second), "another pool is running in"));
    struct quern *client = connect_to(pool.frontend); /* the first one is unharmed */
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

START_TEST(a_port_in_use_is_one_clear_line)
{
    struct sockaddr_in in_use = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in_use;
    char address[32];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&in_use, len), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in_use, &len), 0);
    snprintf(address, sizeof address, "127.0.0.1:%u", ntohs(in_use.sin_port));
    int status = pool_fails(&pool, 60, tiny_model(), "--tcp", address, NULL);
    ck_assert_int_eq(status, 1);
    ck_assert_msg(strstr(pool_log(&pool), address), "%s", pool_log(&pool));
    ck_assert_msg(pool_log_lines(&pool) == 1, "%s", pool_log(&pool));
    close(fd);
}
END_TEST

START_TEST(a_foreign_address_without_keys_is_refused)
{
    int status = pool_fails(&pool, 60, tiny_model(), "--tcp", "0.0.0.0:39472", NULL);
    ck_assert_int_eq(status, 2);
    ck_assert_msg(strstr(pool_log(&pool), "--curve-key"), "%s", pool_log(&pool));
}
END_TEST

/* No other start changes that; contrib/systemd/quern.service.in has the status. Under a sanitizer a worker
 * may need longer to end than its last line is held back, and then the line comes twice. */
START_TEST(a_wrong_name_is_one_line_and_a_status_of_its_own)
{
    static const struct {
        const char *option, *value, *text;
    } wrong[] = {{"--device", "gpu", "unknown device \"gpu\"; available: "},
                 {"--kv-type", "q9", "unknown KV type \"q9\""},
                 {"--quantize", "Q9", "--quantize: unknown type \"Q9\""},
                 {"--cublas", "some", "--cublas: \"some\" is not off, auto"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int status = pool_fails(&pool, 60, tiny_model(), wrong[i].option, wrong[i].value, NULL);
        ck_assert_msg(status == 78, "%d: %s", status, pool_log(&pool));
        ck_assert_msg(strstr(pool_log(&pool), wrong[i].text), "%s", pool_log(&pool));
        ck_assert_msg(pool_log_lines(&pool) <= (getenv("QUERN_TEST_SCALE") ? 2 : 1), "%s", pool_log(&pool));
        pool_forget(&pool);
    }
}
END_TEST

START_TEST(a_missing_model_is_one_line_and_no_train_of_restarts)
{
    int status = pool_fails(&pool, 60, "/nowhere/missing.gguf", "--workers", "2", NULL);
    ck_assert_int_eq(status, 78);
    ck_assert_msg(strstr(pool_log(&pool), "/nowhere/missing.gguf"), "%s", pool_log(&pool));
    ck_assert_msg(pool_log_lines(&pool) == 1, "%s", pool_log(&pool));
}
END_TEST

START_TEST(a_file_that_is_no_model_ends_the_pool_with_its_reason)
{
    const char *path = no_model();
    int status = pool_fails(&pool, 60, path, "--workers", "2", NULL);
    unlink(path);
    ck_assert_int_eq(status, 1);
    ck_assert_msg(strstr(pool_log(&pool), "not a GGUF file"), "%s", pool_log(&pool));
    ck_assert_msg(!strstr(pool_log(&pool), "restart"), "%s", pool_log(&pool));
}
END_TEST

START_TEST(workers_of_one_machine_promise_its_memory_once)
{
    struct pool crowded = {0};
    char n_blocks[24];
    /* Three fifths of the memory for each, a block of this model being 32 KiB: one could have it, both
     * cannot. */
    const unsigned long long pages = (unsigned long long)sysconf(_SC_PHYS_PAGES);
    snprintf(n_blocks, sizeof n_blocks, "%llu",
             pages * (unsigned long long)sysconf(_SC_PAGESIZE) / (32 << 10) / 5 * 3);
    pool_spawn(&crowded, tiny_model(), "--workers", "2", "--kv-blocks", n_blocks, NULL);
    ck_assert(pool_says(&crowded, "for each of 2 workers do not fit ", 60));
    pool_stop(&crowded, SIGTERM, 60);
    pool_forget(&crowded);
}
END_TEST

/* The limit of a file's size counts for logs and for shared memory. Whatever it forbids is told by those who
 * can, and no signal ends anybody. */
START_TEST(a_limit_of_file_sizes_ends_a_pool_with_a_line_before_it_serves_and_not_afterwards)
{
    const struct rlimit few = {100000, 100000}, none = {0, 0};
    struct rlimit before;
    char out[256];
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(prlimit(0, RLIMIT_FSIZE, &(struct rlimit){few.rlim_cur, before.rlim_max}, NULL), 0);
    int status = pool_fails(&pool, 60, tiny_model(), NULL);
    ck_assert_int_eq(prlimit(0, RLIMIT_FSIZE, &before, NULL), 0);
    ck_assert_int_eq(status, 1);
    ck_assert_msg(strstr(pool_log(&pool), "shared memory for requests: exceeds the file size limit"), "%s",
                  pool_log(&pool));
    ck_assert_msg(pool_log_lines(&pool) == 1, "%s", pool_log(&pool));
    pool_forget(&pool);

    pid_t worker;
    pool = (struct pool){0};
    pool_start(&pool, tiny_model(), "--workers", "1", NULL);
    ck_assert_int_eq(pool_worker_pids(&pool, &worker, 1), 1);
    const pid_t pids[] = {pool.supervisor, pool_broker_pid(&pool), worker};
    for (size_t i = 0; i < sizeof pids / sizeof *pids; i++)
        ck_assert_int_eq(prlimit(pids[i], RLIMIT_FSIZE, &none, NULL), 0);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "run", "Once", "--raw", "-n", "3", "--connect",
                                 pool.frontend, NULL),
                     0);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0); /* which they say in their log, or would */
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, NULL, forget);
    tcase_add_test(tests, a_second_pool_in_the_same_directory_is_refused);
    tcase_add_test(tests, a_port_in_use_is_one_clear_line);
    tcase_add_test(tests, a_foreign_address_without_keys_is_refused);
    tcase_add_test(tests, a_wrong_name_is_one_line_and_a_status_of_its_own);
    tcase_add_test(tests, a_missing_model_is_one_line_and_no_train_of_restarts);
    tcase_add_test(tests, a_file_that_is_no_model_ends_the_pool_with_its_reason);
    tcase_add_test(tests, workers_of_one_machine_promise_its_memory_once);
    tcase_add_test(tests, a_limit_of_file_sizes_ends_a_pool_with_a_line_before_it_serves_and_not_afterwards);
}

int main(void)
{
    return run_tests("start", add);
}
