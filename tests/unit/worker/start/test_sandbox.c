/* SPDX-License-Identifier: MIT */
/* What a confined process can and cannot do: each case in a child of its own, whose end and stderr are read.
 */

#include "worker/start/sandbox.h"
#include "tests/unit/child.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/files/rundir.h"

#define GIVEN_FD 101 /* a socket that every case is given */

#define UNDONE 99 /* exit status of a child whose case did what it should not have been able to */

static char folder[RUNDIR_PATH_MAX + 1];
static char secret[RUNDIR_PATH_MAX + 20];

static void set_up(void)
{
    ck_assert_int_eq(rundir_temporary(folder, NULL), 0);
    snprintf(secret, sizeof secret, "%s/secret", folder);
    int fd = open(secret, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_ge(dup2(fd, GIVEN_FD), 0);
    close(fd);
}

static void tear_down(void)
{
    close(GIVEN_FD);
    rundir_remove(folder);
}

static bool kernel_confines_files(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 1;
}

/* Of what cannot be shown here, a line. */
static bool confines_files_or_says(const char *what)
{
    if (!kernel_confines_files())
        fprintf(stderr, "SKIPPED: %s (this kernel has no Landlock)\n", what);
    return kernel_confines_files();
}

/* Runs the case in a child that is confined to the first stage, then to the last; returns its exit status, or
 * 1000 + the signal, and its stderr. */
static int run_in(enum sandbox_stage first, enum sandbox_stage last, void (*act)(void),
                  const struct sandbox *sandbox, char ret_said[512])
{
    struct child child;
    if (child_begin(&child)) {
        struct error err = {0};
        if (kernel_confines_files() && sandbox_confine_files(sandbox, &err) < 0)
            dprintf(STDERR_FILENO, "files: %s", err.text);
        else if (sandbox_confine_calls(first, "child", &err) < 0 ||
                 (first != last && sandbox_confine_calls(last, "child", &err) < 0))
            dprintf(STDERR_FILENO, "calls: %s", err.text);
        else
            act();
        _exit(EXIT_SUCCESS);
    }
    const int status = child_end(&child, ret_said, 512);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int run(void (*act)(void), const struct sandbox *sandbox, char ret_said[512])
{
    return run_in(SANDBOX_SERVING, SANDBOX_SERVING, act, sandbox, ret_said);
}

/* ---- what ends it ---- */

static void start_a_program(void)
{
    execl("/bin/true", "true", NULL);
}

static void start_a_process(void)
{
    if (fork() == 0)
        _exit(0);
}

static void open_to_write(void)
{
    (void)!open(secret, O_WRONLY);
}

static void make_a_file(void)
{
    (void)!open("/dev/shm/quern-test", O_RDONLY | O_CREAT, 0600);
}

static void speak_tcp(void)
{
    socket(AF_INET, SOCK_STREAM, 0);
}

static void speak_raw(void)
{
    socket(AF_PACKET, SOCK_RAW, 0);
}

/* To a socket of its user: another worker, the pool's own, what starts programs for him. */
static void speak_to_a_neighbour(void)
{
    socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static void make_a_pair(void)
{
    int pair[2];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
}

/* With sockets that it was given, which it could be made to have. */
static void connect_one_that_was_given(void)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/run/systemd/private"};
    connect(GIVEN_FD, (const struct sockaddr *)&address, sizeof address);
}

static void bind_one_that_was_given(void)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX}; /* a name that the kernel makes up */
    bind(GIVEN_FD, (const struct sockaddr *)&address, sizeof address.sun_family);
}

static void listen_with_one_that_was_given(void)
{
    listen(GIVEN_FD, 1);
}

static void send_from_one_that_was_given(void)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/run/systemd/notify"};
    sendto(GIVEN_FD, "x", 1, MSG_NOSIGNAL, (const struct sockaddr *)&address, sizeof address);
}

static void send_a_descriptor(void)
{
    struct msghdr message = {0};
    sendmsg(GIVEN_FD, &message, MSG_NOSIGNAL);
}

static void remove_a_file(void)
{
    unlinkat(AT_FDCWD, secret, 0);
}

/* Whom a descriptor sends signals to: any process of the user. */
static void choose_whom_to_signal(void)
{
    fcntl(GIVEN_FD, F_SETOWN, getppid());
}

static void choose_the_signal(void)
{
    fcntl(GIVEN_FD, F_SETSIG, SIGKILL);
}

static void move_another_process(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    sched_setaffinity(getppid(), sizeof set, &set);
}

static void trace(void)
{
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static void send_a_signal(void)
{
    kill(getppid(), SIGCONT);
}

static void run_what_was_written(void)
{
    mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void rename_a_file(void)
{
    (void)!rename(secret, "/tmp/elsewhere");
}

static void type_for_another(void)
{
    ioctl(STDIN_FILENO, TIOCSTI, "x");
}

static void ask_for_the_processor(void)
{
    sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
}

static void *open_to_write_in_a_thread(void *arg)
{
    open_to_write();
    return arg;
}

static void act_in_a_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, open_to_write_in_a_thread, NULL);
    pthread_join(thread, NULL);
}

static void check_ends(enum sandbox_stage first, enum sandbox_stage last, void (*act)(void),
                       const struct sandbox *sandbox, const char *called)
{
    char said[512], expected[128];
    int status = run_in(first, last, act, sandbox, said);
    snprintf(expected, sizeof expected, "child: stopped by the sandbox: it called %s", called);
    ck_assert_msg(status == 1000 + SIGSYS && strncmp(said, expected, strlen(expected)) == 0, "%s: %d, %s",
                  called, status, said);
}

struct forbidden {
    void (*act)(void);
    const char *called;
};

/* At any time: whoever it is that takes it over reaches nobody, and takes nobody's place. */
static const struct forbidden always_forbidden[] = {{speak_to_a_neighbour, "socket"},
                                                    {make_a_pair, "socketpair"},
                                                    {connect_one_that_was_given, "connect"},
                                                    {bind_one_that_was_given, "bind"},
                                                    {listen_with_one_that_was_given, "listen"},
                                                    {send_from_one_that_was_given, "sendto"},
                                                    {send_a_descriptor, "sendmsg"},
                                                    {remove_a_file, "unlinkat"},
                                                    {choose_whom_to_signal, "fcntl"},
                                                    {choose_the_signal, "fcntl"},
                                                    {move_another_process, "sched_setaffinity"}};

START_TEST(nobody_else_is_within_reach_of_a_worker_that_loads_or_serves)
{
    static const enum sandbox_stage stages[] = {SANDBOX_LOADING, SANDBOX_SERVING};
    const struct sandbox sandbox = {0};
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < sizeof always_forbidden / sizeof *always_forbidden; i++)
            check_ends(stages[k], stages[k], always_forbidden[i].act, &sandbox, always_forbidden[i].called);
}
END_TEST

START_TEST(what_serving_does_not_need_ends_the_process_with_its_name)
{
    static const struct forbidden cases[] = {{start_a_program, "execve"},
                                             {start_a_process, "clone"},
                                             {open_to_write, "openat"},
                                             {make_a_file, "openat"},
                                             {speak_tcp, "socket"},
                                             {speak_raw, "socket"},
                                             {trace, "ptrace"},
                                             {send_a_signal, "kill"},
                                             {run_what_was_written, "mmap"},
                                             {rename_a_file, "rename"},
                                             {act_in_a_thread, "openat"},
                                             {type_for_another, "ioctl"},
                                             {ask_for_the_processor, "sched_setscheduler"}};
    const struct sandbox sandbox = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_ends(SANDBOX_SERVING, SANDBOX_SERVING, cases[i].act, &sandbox, cases[i].called);
}
END_TEST

/* ---- while it loads ---- */

#ifdef __x86_64__
/* As the CPU backend does; a processor without AMX refuses, and no process is harmed. */
static void ask_for_tiles(void)
{
    syscall(SYS_arch_prctl, 0x1023, 18);
}

static void move_the_thread_register(void)
{
    syscall(SYS_arch_prctl, 0x1002 /* ARCH_SET_FS */, 0);
}
#endif

START_TEST(what_loading_does_not_need_ends_the_process_too)
{
    static const struct forbidden cases[] = {
        {start_a_program, "execve"}, {start_a_process, "clone"}, {open_to_write, "openat"},
        {make_a_file, "openat"},     {speak_tcp, "socket"},      {speak_raw, "socket"},
        {trace, "ptrace"},           {send_a_signal, "kill"},    {rename_a_file, "rename"},
        {act_in_a_thread, "openat"}, {type_for_another, "ioctl"}};
    const struct sandbox sandbox = {0};
#ifdef __x86_64__
    check_ends(SANDBOX_LOADING, SANDBOX_LOADING, move_the_thread_register, &sandbox, "arch_prctl");
#endif
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_ends(SANDBOX_LOADING, SANDBOX_LOADING, cases[i].act, &sandbox, cases[i].called);
}
END_TEST

static void get_memory(void)
{
    if (fallocate(100, 0, 0, 8192) < 0)
        _exit(UNDONE);
}

START_TEST(what_only_loading_needs_ends_with_it)
{
    static const struct forbidden cases[] = {
#ifdef __x86_64__
        {ask_for_tiles, "arch_prctl"},
#endif
        {get_memory, "fallocate"},
        {run_what_was_written, "mmap"}};
    const struct sandbox sandbox = {0};
    int memory = memfd_create("test", 0);
    ck_assert_int_ge(dup2(memory, 100), 0);
    close(memory);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char said[512];
        int status = run_in(SANDBOX_LOADING, SANDBOX_LOADING, cases[i].act, &sandbox, said);
        ck_assert_msg(status == 0, "%s: %d, %s", cases[i].called, status, said);
        check_ends(SANDBOX_LOADING, SANDBOX_SERVING, cases[i].act, &sandbox, cases[i].called);
    }
    close(100);
}
END_TEST

/* ---- what is refused ---- */

static void read_elsewhere(void)
{
    if (open(secret, O_RDONLY) >= 0 || open("/etc/passwd", O_RDONLY) >= 0 || open("/", O_RDONLY) >= 0)
        _exit(UNDONE);
}

START_TEST(files_elsewhere_are_out_of_reach)
{
    const struct sandbox sandbox = {0};
    char said[512];
    if (!confines_files_or_says("files elsewhere"))
        return;
    ck_assert_msg(run(read_elsewhere, &sandbox, said) == 0, "%s", said);
}
END_TEST

/* `secret` is of the model; its neighbour is not. */
static void read_the_model(void)
{
    char neighbour[sizeof secret + 8];
    snprintf(neighbour, sizeof neighbour, "%s.not", secret);
    if (open(secret, O_RDONLY) < 0 || open(neighbour, O_RDONLY) >= 0 || open(folder, O_RDONLY) >= 0)
        _exit(UNDONE);
}

START_TEST(of_the_model_its_own_files_are_read_and_no_others)
{
    char neighbour[sizeof secret + 8], said[512];
    const char *const files[] = {"/nowhere/at/all", secret};
    const struct sandbox sandbox = {.files = files, .n_files = 2};
    if (!confines_files_or_says("files beside the model"))
        return;
    snprintf(neighbour, sizeof neighbour, "%s.not", secret);
    close(open(neighbour, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    int status = run_in(SANDBOX_LOADING, SANDBOX_LOADING, read_the_model, &sandbox, said);
    ck_assert_msg(status == 0, "%d, %s", status, said);
    check_ends(SANDBOX_LOADING, SANDBOX_LOADING, open_to_write, &sandbox, "openat");
}
END_TEST

/* ---- what goes on ---- */

#define NEED(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            dprintf(STDERR_FILENO, "%s: %m", #condition);                                                    \
            _exit(UNDONE);                                                                                   \
        }                                                                                                    \
    } while (0)

static void *do_nothing(void *arg)
{
    return arg;
}

static void serve(void)
{
    pthread_t thread;
    int pair[2], fd;
    char bytes[64];
    time_t now = time(NULL);
    struct tm date;
    NEED(pthread_create(&thread, NULL, do_nothing, NULL) == 0);
    NEED(pthread_join(thread, NULL) == 0);
    char *large = malloc(300 << 20);
    NEED(large != NULL);
    large[200 << 20] = 1;
    free(large);
    NEED((fd = open("/proc/self/status", O_RDONLY)) >= 0);
    NEED(read(fd, bytes, sizeof bytes) > 0);
    NEED(pipe2(pair, O_CLOEXEC | O_NONBLOCK) == 0);
    NEED(write(pair[1], "x", 1) == 1 && read(pair[0], bytes, 1) == 1);
    NEED(fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0 && fcntl(pair[0], F_GETFD) == FD_CLOEXEC);
    NEED(eventfd(0, EFD_CLOEXEC) >= 0);
    int n = 1;
    isatty(STDIN_FILENO); /* whatever it is */
    NEED(ioctl(pair[0], FIONREAD, &n) == 0 && n == 0 && ioctl(pair[0], FIONBIO, &n) == 0);
    NEED(localtime_r(&now, &date) != NULL);
}

/* On a socket that listened before: a connection that its broker has made. */
static void answer(void)
{
    char byte;
    int fd = accept4(GIVEN_FD, NULL, NULL, SOCK_CLOEXEC);
    NEED(fd >= 0 && recv(fd, &byte, 1, 0) == 1 && send(fd, "x", 1, MSG_NOSIGNAL) == 1);
}

/* Runs `answer` in both stages. */
static void check_answers(enum sandbox_stage stage)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t len = sizeof address;
    const struct sandbox sandbox = {0};
    char said[512];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
        peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof address.sun_family), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    ck_assert_int_eq(connect(peer, (const struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(send(peer, "x", 1, 0), 1);
    ck_assert_int_eq(dup2(fd, GIVEN_FD), GIVEN_FD);
    int status = run_in(stage, stage, answer, &sandbox, said);
    ck_assert_msg(status == 0, "%d, %s", status, said);
    close(fd);
    close(peer);
}

START_TEST(what_serving_needs_goes_on)
{
    char said[512];
    const struct sandbox plain = {0};
    ck_assert_msg(run(serve, &plain, said) == 0, "%s", said);
    ck_assert_msg(run_in(SANDBOX_LOADING, SANDBOX_LOADING, serve, &plain, said) == 0, "%s", said);
    ck_assert_msg(run_in(SANDBOX_LOADING, SANDBOX_SERVING, serve, &plain, said) == 0, "%s", said);
    check_answers(SANDBOX_LOADING);
    check_answers(SANDBOX_SERVING);
    /* A defect ends it as it always did. */
    ck_assert_int_eq(run(abort, &plain, said), 1000 + SIGABRT);
}
END_TEST

/* As libzmq does when a thread of it starts, which on a busy machine is after the filter was set. */
static void *set_the_policy_it_has(void *arg)
{
    int policy;
    struct sched_param param;
    NEED(pthread_getschedparam(pthread_self(), &policy, &param) == 0);
    NEED(pthread_setschedparam(pthread_self(), policy, &param) == 0);
    return arg;
}

static void start_a_thread_of_libzmq(void)
{
    pthread_t thread;
    NEED(pthread_create(&thread, NULL, set_the_policy_it_has, NULL) == 0);
    NEED(pthread_join(thread, NULL) == 0);
}

START_TEST(threads_keep_the_scheduling_that_the_pool_was_started_with)
{
    char said[512];
    const struct sandbox sandbox = {0};
    const struct sched_param none = {0};
    int before = sched_getscheduler(0);
    ck_assert_msg(run(start_a_thread_of_libzmq, &sandbox, said) == 0, "%s", said);
    if (sched_setscheduler(0, before == SCHED_BATCH ? SCHED_OTHER : SCHED_BATCH, &none) < 0)
        ck_assert_int_eq(before, SCHED_IDLE); /* which not everybody may leave */
    int status = run(start_a_thread_of_libzmq, &sandbox, said);
    sched_setscheduler(0, before, &none);
    ck_assert_msg(status == 0, "%d, %s", status, said);
}
END_TEST

static void *wait_then_write(void *arg)
{
    char byte;
    (void)!read(*(int *)arg, &byte, 1);
    open_to_write();
    return NULL;
}

START_TEST(threads_that_were_there_before_are_confined_too)
{
    int gate[2], status;
    pid_t pid = fork_child();
    if (pid == 0) {
        struct error err;
        pthread_t thread;
        if (pipe2(gate, O_CLOEXEC) < 0 || pthread_create(&thread, NULL, wait_then_write, &gate[0]) != 0 ||
            sandbox_confine_calls(SANDBOX_SERVING, "child", &err) < 0)
            _exit(1);
        (void)!write(gate[1], "x", 1);
        pthread_join(thread, NULL);
        _exit(UNDONE);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}
END_TEST

START_TEST(a_process_that_has_threads_is_left_alone)
{
    int gate[2], status;
    pid_t pid = fork_child();
    if (pid == 0) {
        struct error err;
        pthread_t thread;
        if (pipe2(gate, O_CLOEXEC) < 0 || pthread_create(&thread, NULL, wait_then_write, &gate[0]) != 0 ||
            sandbox_confine_files(&(struct sandbox){0}, &err) != -EBUSY)
            _exit(1);
        (void)!write(gate[1], "x", 1);
        pthread_join(thread, NULL);
        _exit(strcmp(err.text, "2 threads are already running") == 0 ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, nobody_else_is_within_reach_of_a_worker_that_loads_or_serves);
    tcase_add_test(tests, what_serving_does_not_need_ends_the_process_with_its_name);
    tcase_add_test(tests, what_loading_does_not_need_ends_the_process_too);
    tcase_add_test(tests, what_only_loading_needs_ends_with_it);
    tcase_add_test(tests, files_elsewhere_are_out_of_reach);
    tcase_add_test(tests, of_the_model_its_own_files_are_read_and_no_others);
    tcase_add_test(tests, what_serving_needs_goes_on);
    tcase_add_test(tests, threads_keep_the_scheduling_that_the_pool_was_started_with);
    tcase_add_test(tests, a_process_that_has_threads_is_left_alone);
    tcase_add_test(tests, threads_that_were_there_before_are_confined_too);
}

int main(void)
{
    return run_tests("sandbox", add);
}
