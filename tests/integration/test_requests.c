/* SPDX-License-Identifier: MIT */
/* quern run, status, bench pool and bench prefix, as a shell calls them. */

#include "tests/integration/support/pool.h"
#include "tests/unit/child.h"
#include "tests/unit/run.h"

#include "common/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

static char dir[RUNDIR_PATH_MAX + 1];
static char out[1 << 20], again[1 << 20];

static void set_up(void)
{
    environment_open(dir);
}

static void tear_down(void)
{
    environment_close(dir);
}

static int files_left(void)
{
    int n = 0;
    DIR *folder = opendir(dir);
    for (struct dirent *entry; (entry = readdir(folder));)
        n += entry->d_name[0] != '.';
    closedir(folder);
    return n;
}

/* Starts `quern` with stdout and stderr to files of `dir`; the pid. */
static pid_t start(const char *const *argv, const char *stdout_path, const char *stderr_path)
{
    char program[4096];
    snprintf(program, sizeof program, "%s", build_path("quern"));
    pid_t pid = fork_child();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int o = open(stdout_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        int e = open(stderr_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(o, STDOUT_FILENO);
        dup2(e, STDERR_FILENO);
        execv(program, (char *const *)argv);
        _exit(127);
    }
    return pid;
}

static int wait_for(pid_t pid)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Waits until the file has more than n bytes. */
static void wait_for_bytes(const char *path, long n)
{
    for (int i = 0; i < 6000; i++) {
        FILE *file = fopen(path, "r");
        long size = -1;
        if (file) {
            fseek(file, 0, SEEK_END);
            size = ftell(file);
            fclose(file);
        }
        if (size > n)
            return;
        usleep(10000);
    }
    ck_abort_msg("%s stayed short", path);
}

static bool file_says(const char *path, const char *text)
{
    static char content[65536];
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    content[fread(content, 1, sizeof content - 1, file)] = 0;
    fclose(file);
    return strstr(content, text) != NULL;
}

START_TEST(a_private_pool_answers_and_leaves_nothing_behind)
{
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "run", "--model", tiny_model(), "-n", "20",
                                 "--seed", "7", "--raw", "Once upon", NULL),
                     0);
    ck_assert_int_eq(run_program(again, sizeof again, "quern", "run", "--model", tiny_model(), "-n", "20",
                                 "--seed", "7", "--raw", "Once upon", NULL),
                     0);
    ck_assert_uint_gt(strlen(out), 0);
    ck_assert_str_eq(out, again);
    ck_assert_int_eq(files_left(), 0);
}
END_TEST

START_TEST(json_and_ids_tell_the_same_as_the_text)
{
    struct pool pool = {0};
    pool_start(&pool, tiny_model(), NULL);
#define RUN(to, ...)                                                                                         \
    ck_assert_int_eq(run_program(to, sizeof to, "quern", "run", "--connect", pool.rundir, "-n", "12",        \
                                 "--seed", "3", __VA_ARGS__ "Hello", NULL),                                  \
                     0)
    RUN(again, );
    RUN(out, "--json", "--logprobs", "2", );
    json_t *json = json_loads(out, 0, NULL);
    ck_assert_ptr_nonnull(json);
    /* On stdout the text ends with a newline, its own or one more. */
    const char *text = json_string_value(json_object_get(json, "text"));
    ck_assert_int_eq(strncmp(again, text, strlen(text)), 0);
    ck_assert_int_eq(again[strlen(again) - 1], '\n');
    ck_assert_uint_le(strlen(again), strlen(text) + 1);
    ck_assert_str_eq(json_string_value(json_object_get(json, "reason")), "length");
    ck_assert_str_eq(json_string_value(json_object_get(json, "seed")), "3");
    json_t *ids = json_object_get(json, "ids"), *logprobs = json_object_get(json, "logprobs");
    ck_assert_uint_eq(json_array_size(ids), 12);
    ck_assert_uint_eq(json_array_size(logprobs), 12);
    for (size_t i = 0; i < 12; i++) {
        json_t *row = json_array_get(logprobs, i);
        ck_assert_uint_eq(json_array_size(row), 3);
        ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(row, 0), "id")),
                         json_integer_value(json_array_get(ids, i)));
        double most = json_real_value(json_object_get(json_array_get(row, 1), "logprob"));
        ck_assert_double_le(json_real_value(json_object_get(json_array_get(row, 2), "logprob")), most);
        ck_assert_double_le(most, 0);
    }
    char expected[256] = "";
    for (size_t i = 0; i < 12; i++)
        sprintf(expected + strlen(expected), "%s%lld", i ? " " : "",
                json_integer_value(json_array_get(ids, i)));
    RUN(out, "--ids", );
    ck_assert_str_eq(strtok(out, "\n"), expected);
    json_decref(json);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "run", "--connect", pool.rundir, "-n", "1000000",
                                 "--json", "Hello", NULL),
                     1);
    json = json_loads(out, 0, NULL);
    ck_assert_str_eq(json_string_value(json_object_get(json, "reason")), "error");
    ck_assert_str_eq(json_string_value(json_object_get(json, "text")), "");
    json_decref(json);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
    pool_forget(&pool);
}
END_TEST

START_TEST(status_counts_what_was_done)
{
    struct pool pool = {0};
    pool_start(&pool, tiny_model(), "--workers", "2", NULL);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "run", "--connect", pool.frontend, "-n", "9",
                                 "--stop-none", "x", NULL),
                     2);
    ck_assert_int_eq(
        run_program(out, sizeof out, "quern", "run", "--connect", pool.frontend, "-n", "9", "x", NULL), 0);
    ck_assert_int_eq(
        run_program(out, sizeof out, "quern", "status", "--json", "--connect", pool.rundir, NULL), 0);
    json_t *json = json_loads(out, 0, NULL);
    ck_assert_ptr_nonnull(json);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "admitted")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "ended")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "running")), 0);
    json_t *workers = json_object_get(json, "workers");
    ck_assert_uint_eq(json_array_size(workers), 2);
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(workers, 1), "state")), "ready");
    json_decref(json);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "status", "--connect", pool.rundir, NULL), 0);
    ck_assert_ptr_nonnull(strstr(out, "worker-0"));
    ck_assert_ptr_nonnull(strstr(out, "worker-1"));
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
    pool_forget(&pool);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "status", NULL), 1);
}
END_TEST

START_TEST(an_interrupt_cancels_and_the_private_pool_goes_too)
{
    char o[128], e[128];
    const char *argv[] = {"quern", "run",     "--model", tiny_model(), "--device", "null",
                          "--ctx", "1000000", "-n",      "900000",     "x",        NULL};
    snprintf(o, sizeof o, "%s/out", dir);
    snprintf(e, sizeof e, "%s/err", dir);
    pid_t pid = start(argv, o, e);
    wait_for_bytes(o, 1000);
    kill(pid, SIGINT);
    ck_assert_int_eq(wait_for(pid), 130);
    ck_assert(file_says(e, "interrupted"));
    ck_assert_int_eq(files_left(), 2);
}
END_TEST

/* How often the process has waited by itself. */
static unsigned long naps_of(pid_t pid)
{
    char path[64], line[256];
    unsigned long naps = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "voluntary_ctxt_switches: %lu", &naps) == 1)
            break;
    fclose(file);
    return naps;
}

/* Until it has gone around its loop some times more. */
static void wait_for_naps(pid_t pid, unsigned long more)
{
    const unsigned long wanted = naps_of(pid) + more;
    for (int i = 0; i < 6000 && naps_of(pid) < wanted; i++)
        usleep(10000);
    ck_assert_uint_ge(naps_of(pid), wanted);
}

START_TEST(a_second_interrupt_does_not_wait_for_the_pool)
{
    char o[128], e[128];
    struct pool pool = {0};
    pool_start(&pool, tiny_model(), "--device", "null", "--ctx", "1000000", NULL);
    const char *argv[] = {"quern", "run", "--connect", pool.rundir, "-n", "900000", "x", NULL};
    snprintf(o, sizeof o, "%s/out", dir);
    snprintf(e, sizeof e, "%s/err", dir);
    pid_t pid = start(argv, o, e);
    wait_for_bytes(o, 1000);
    kill(pool.broker, SIGSTOP); /* or it would start another broker, which answers */
    kill(pool_broker_pid(&pool), SIGSTOP);
    kill(pid, SIGINT);
    wait_for_naps(pid, 5);
    ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0); /* for the end that the pool owes it */
    uint64_t then = clock_ns();
    kill(pid, SIGINT);
    ck_assert_int_eq(wait_for(pid), 130);
    ck_assert_uint_lt(clock_ns() - then, 20 * CLOCK_NS_PER_S); /* its patience is 30 s */
    kill(pool_broker_pid(&pool), SIGCONT);
    kill(pool.broker, SIGCONT);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
    pool_forget(&pool);
}
END_TEST

/* A reader that reads no more and stays, as a pager does: the first interrupt must do. */
START_TEST(an_interrupt_gets_through_to_a_write_that_waits)
{
    char e[128];
    int ends[2], status, queued = 0;
    snprintf(e, sizeof e, "%s/err", dir);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    char fd[32];
    snprintf(fd, sizeof fd, "/proc/self/fd/%d", ends[1]);
    const char *argv[] = {"quern", "run",     "--model", tiny_model(), "--device", "null",
                          "--ctx", "1000000", "-n",      "900000",     "x",        NULL};
    pid_t pid = start(argv, fd, e);
    close(ends[1]);
    for (int i = 0, before = -1; i < 1000 && (queued <= 4096 || queued != before);
         i++) { /* full when it grows no more */
        before = queued;
        usleep(50000);
        ioctl(ends[0], FIONREAD, &queued);
    }
    ck_assert_int_gt(queued, 4096);
    kill(pid, SIGINT);
    for (int i = 0; i < 6000 && waitpid(pid, &status, WNOHANG) == 0; i++)
        usleep(10000);
    ck_assert_msg(kill(pid, 0) < 0, "it still waits");
    ck_assert_int_eq(WEXITSTATUS(status), 130);
    close(ends[0]);
}
END_TEST

START_TEST(a_killed_command_leaves_nothing_behind)
{
    char o[128], e[128];
    const char *argv[] = {"quern", "run",     "--model", tiny_model(), "--device", "null",
                          "--ctx", "1000000", "-n",      "900000",     "x",        NULL};
    snprintf(o, sizeof o, "%s/out", dir);
    snprintf(e, sizeof e, "%s/err", dir);
    pid_t pid = start(argv, o, e);
    wait_for_bytes(o, 1000);
    kill(pid, SIGKILL);
    ck_assert_int_eq(wait_for(pid), 128 + SIGKILL);
    for (int i = 0; i < 6000 && files_left() > 2; i++)
        usleep(10000); /* its broker first takes it for a client that may come back */
    ck_assert_int_eq(files_left(), 2);
}
END_TEST

START_TEST(an_output_that_cannot_be_written_is_a_failure)
{
    char e[128];
    const char *argv[] = {"quern", "run", "--model", tiny_model(), "-n", "50", "x", NULL};
    snprintf(e, sizeof e, "%s/err", dir);
    ck_assert_int_eq(wait_for(start(argv, "/dev/full", e)), 1);
    ck_assert(file_says(e, "stdout: No space left on device"));
    ck_assert_int_eq(files_left(), 1);
}
END_TEST

START_TEST(what_cannot_be_done_is_said)
{
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "run", "--model", "/nowhere.gguf", "x", NULL), 1);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "run", "--model", "/etc/passwd", "x", NULL), 1);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "run", "--model", tiny_model(), "", NULL), 1);
    ck_assert_int_eq(
        run_program(out, sizeof out, "quern", "run", "--model", tiny_model(), "-n", "1000000", "x", NULL), 1);
    char command[8192];
    snprintf(command, sizeof command, "printf 'a\\0b' | '%s' run --model '%s'", build_path("quern"),
             tiny_model());
    ck_assert_int_eq(WEXITSTATUS(system(command)), 1);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "run", "--temp", "nan", "x", NULL), 2);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "run", "-n", "-5", "x", NULL), 2);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "run", "--logprobs", "1", "x", NULL), 2);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "run", "x", "y", NULL), 2);
    ck_assert_int_eq(files_left(), 0);
}
END_TEST

START_TEST(an_encrypted_pool_answers_whoever_has_its_key)
{
    char public_key[41], secret_key[41], wrong_key[41], certificate[128], tcp[64], endpoint[80];
    struct pool pool = {0};
    ck_assert_int_eq(zmq_curve_keypair(public_key, secret_key), 0);
    snprintf(certificate, sizeof certificate, "%s/server", dir);
    FILE *file = fopen(certificate, "w");
    fprintf(file, "metadata\ncurve\n    public-key = \"%s\"\n    secret-key = \"%s\"\n", public_key,
            secret_key);
    fclose(file);
    chmod(certificate, 0600);
    /* Far from the range of ports that the kernel gives out. */
    snprintf(tcp, sizeof tcp, "127.0.0.1:%d", pool_free_ports());
    snprintf(endpoint, sizeof endpoint, "tcp://%s", tcp);
    pool_start(&pool, tiny_model(), "--tcp", tcp, "--curve-key", certificate, NULL);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "run", "--connect", endpoint, "--server-key",
                                 public_key, "-n", "5", "--ids", "x", NULL),
                     0);
    ck_assert_uint_gt(strlen(out), 8);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "status", "--connect", endpoint, "--server-key",
                                 certificate, NULL),
                     0);
    ck_assert_int_eq(
        run_program(out, sizeof out, "quern", "status", "--connect", endpoint, "--server-key", "short", NULL),
        1);
    ck_assert_int_eq(zmq_curve_keypair(wrong_key, secret_key), 0);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "status", "--connect", endpoint, "--server-key",
                                 wrong_key, NULL),
                     1);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
    pool_forget(&pool);
}
END_TEST

START_TEST(a_deadline_ends_the_run_with_a_failure)
{
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "run", "--model", tiny_model(), "--device", "null",
                                 "--ctx", "1000000", "-n", "900000", "--deadline-ms", "100", "x", NULL),
                     1);
}
END_TEST

START_TEST(the_pool_benchmark_checks_every_token_of_a_client_that_was_stopped)
{
    char o[128], e[128];
    const char *argv[] = {"quern", "bench", "pool", "--json", "-s", "16", "-n", "8000",
                          "-r",    "1",     "-p",   "20",     "-f", "0",  NULL};
    snprintf(o, sizeof o, "%s/out", dir);
    snprintf(e, sizeof e, "%s/err", dir);
    pid_t pid = start(argv, o, e);
    /* Stopped and continued while it streams: what the stream drops must come by replay. */
    for (int i = 0; i < 4; i++) {
        usleep(150000);
        kill(pid, SIGSTOP);
        usleep(250000);
        kill(pid, SIGCONT);
    }
    ck_assert_int_eq(wait_for(pid), 0);
    json_t *json = json_load_file(o, 0, NULL);
    ck_assert_ptr_nonnull(json);
    ck_assert_double_gt(json_real_value(json_object_get(json, "tokens_per_s")), 0);
    ck_assert_double_gt(json_real_value(json_object_get(json, "latency_p50_us")), 0);
    json_decref(json);
    ck_assert_int_eq(files_left(), 2);
}
END_TEST

START_TEST(the_pool_benchmark_takes_an_odd_number_of_requests)
{
    char text[4096];
    ck_assert_int_eq(run_program(text, sizeof text, "quern", "bench", "pool", "--json", "-s", "3", "-n", "50",
                                 "-r", "1", "-p", "20", "-f", "0", NULL),
                     0);
    json_t *json = json_loads(text, 0, NULL);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "requests")), 3);
    json_decref(json);
}
END_TEST

/* As much of a llama-server as the benchmark asks for; it wants a prompt of so many ids. */
static const char llama_server[] =
    "#!/usr/bin/env python3\n"
    "import json, sys, http.server\n"
    "class Handler(http.server.BaseHTTPRequestHandler):\n"
    "    def log_message(self, *args): pass\n"
    "    def do_GET(self): self.answer(200 if self.path == '/health' else 404)\n"
    "    def do_POST(self):\n"
    "        asked = json.loads(self.rfile.read(int(self.headers['Content-Length'])))\n"
    "        good = len(asked['prompt']) == %d and asked['n_predict'] == 1 and asked['cache_prompt'] is "
    "True\n"
    "        self.answer(200 if good and self.path == '/completion' else 400)\n"
    "    def answer(self, status):\n"
    "        self.send_response(status); self.end_headers(); self.wfile.write(b'{}')\n"
    "host, port = (sys.argv[sys.argv.index(option) + 1] for option in ('--host', '--port'))\n"
    "http.server.HTTPServer((host, int(port)), Handler).serve_forever()\n";

static void write_program(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, 0700), 0);
}

/* Of a time nothing can be said here, and who gets what tenants ask depends a little on how fast the machine
 * is.
 */
START_TEST(the_prefix_benchmark_reaches_what_can_be_counted)
{
    static const struct {
        const char *situation;
        double least, most;
    } expected[] = {{"again", 0, 1000}, {"llama", 0, 1000},  {"restart", 0, 1000}, {"other", 0, 1000},
                    {"chat", 0, 1.1},   {"tenants", 0.8, 1}, {"tenants", 1, 2},    {"tenants", 0, 1},
                    {"tenants", 0, 1},  {"at once", 1, 1.5}};
    const bool few = test_is_scaled();
    char text[4096], *line = text, server[RUNDIR_PATH_MAX + 32], program[sizeof llama_server + 16];
    snprintf(server, sizeof server, "%s/llama-server", dir);
    snprintf(program, sizeof program, llama_server, few ? 512 : 2000);
    write_program(server, program);
    ck_assert_int_eq(run_program(text, sizeof text, "quern", "bench", "prefix", "--json", "-r", "1", "-n",
                                 few ? "512" : "2000", "-s", few ? "200" : "400", "--llama-server", server,
                                 NULL),
                     0);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        json_t *json = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);
        ck_assert_str_eq(json_string_value(json_object_get(json, "situation")), expected[i].situation);
        double value = json_real_value(json_object_get(json, "value"));
        ck_assert_msg(value >= expected[i].least && value <= expected[i].most, "%s", line);
        json_decref(json);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    ck_assert_str_eq(line, "");
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_private_pool_answers_and_leaves_nothing_behind);
    tcase_add_test(tests, json_and_ids_tell_the_same_as_the_text);
    tcase_add_test(tests, status_counts_what_was_done);
    tcase_add_test(tests, an_interrupt_cancels_and_the_private_pool_goes_too);
    tcase_add_test(tests, a_second_interrupt_does_not_wait_for_the_pool);
    tcase_add_test(tests, an_interrupt_gets_through_to_a_write_that_waits);
    tcase_add_test(tests, a_killed_command_leaves_nothing_behind);
    tcase_add_test(tests, an_output_that_cannot_be_written_is_a_failure);
    tcase_add_test(tests, what_cannot_be_done_is_said);
    tcase_add_test(tests, an_encrypted_pool_answers_whoever_has_its_key);
    tcase_add_test(tests, a_deadline_ends_the_run_with_a_failure);
    tcase_add_test(tests, the_pool_benchmark_takes_an_odd_number_of_requests);
    tcase_add_test(tests, the_pool_benchmark_checks_every_token_of_a_client_that_was_stopped);
    tcase_add_test(tests, the_prefix_benchmark_reaches_what_can_be_counted);
}

int main(void)
{
    return run_tests("requests", add);
}
