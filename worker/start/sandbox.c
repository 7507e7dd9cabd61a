/* SPDX-License-Identifier: MIT */
/* Landlock for files, seccomp for calls.
 *
 * Landlock refuses with EACCES, as a lack of rights would; it is a list of what stays allowed, by folder. The
 * kernel says which version it has, and is asked for no more than that: what an older one does not know it
 * does not refuse. Its structures are written out here, because headers are older than kernels.
 *
 * Seccomp is a list of calls too. What is not on it is a defect or an intruder, and ends the process: an
 * error code would hide the first and invite the second to try again. libseccomp knows the numbers of this
 * machine. Filters add up: of a call each is asked, and the strictest counts. So the list of a worker that
 * loads has all that one has that serves. */

#include "worker/start/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/program/last_words.h"

/* ---- files ---- */

/* landlock(7), as of its version 6; an older kernel takes what it does not know if it is zero. */
struct ruleset {
    uint64_t files, ports, scopes;
};

#define READ  (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define PORTS 3u /* LANDLOCK_ACCESS_NET_BIND_TCP, …_CONNECT_TCP */

enum { SCOPE_ABSTRACT = 1, SCOPE_SIGNAL = 2 };

static struct ruleset ruleset_of(long version)
{
    /* Rights on files: 13 in version 1; refer, truncate and ioctl on devices came with 2, 3 and 5. */
    int rights = version >= 5 ? 16 : version >= 3 ? 15 : version >= 2 ? 14 : 13;
    struct ruleset ruleset = {.files = (1ull << rights) - 1};
    if (version >= 4)
        ruleset.ports = PORTS;
    if (version >= 6)
        ruleset.scopes = SCOPE_SIGNAL | SCOPE_ABSTRACT;
    return ruleset;
}

/* Allows this of a file, or of all beneath a folder. What is not there needs no rule. */
static int allow(int ruleset, const char *path, uint64_t rights)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = rights,
                                              .parent_fd = open(path, O_PATH | O_CLOEXEC)};
    struct stat st;
    if (rule.parent_fd < 0)
        return errno == ENOENT || errno == EACCES || errno == ENOTDIR ? 0 : -errno;
    int r = fstat(rule.parent_fd, &st) < 0 ? -errno : 0;
    if (r == 0 && !S_ISDIR(st.st_mode))
        rule.allowed_access &= ~(uint64_t)LANDLOCK_ACCESS_FS_READ_DIR;
    if (r == 0 && syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        r = -errno;
    close(rule.parent_fd);
    return r;
}

static int allow_all(int ruleset, const struct sandbox *sandbox)
{
    /* Memory and cores; random numbers; what time it is here. */
    static const char *const always[] = {"/proc",        "/sys",           "/dev/null",
                                         "/dev/urandom", "/etc/localtime", "/usr/share/zoneinfo"};
    int r = 0;
    for (size_t i = 0; i < sizeof always / sizeof *always && r == 0; i++)
        r = allow(ruleset, always[i], READ);
    for (size_t i = 0; i < sandbox->n_files && r == 0; i++)
        r = allow(ruleset, sandbox->files[i], LANDLOCK_ACCESS_FS_READ_FILE);
    return r;
}

int sandbox_confine_files(const struct sandbox *sandbox, struct error *err)
{
    struct stat tasks; /* a folder for each thread, besides itself and the one above */
    if (stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 3)
        return error_set(err, -EBUSY, "%u threads are already running", (unsigned)tasks.st_nlink - 2);
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1)
        return error_set(err, -ENOTSUP, "this kernel has no Landlock: %s", strerror(errno));
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_set(err, -errno, "no_new_privs: %s", strerror(errno));
    struct ruleset attributes = ruleset_of(version);
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
    if (ruleset < 0)
        return error_set(err, -errno, "Landlock: %s", strerror(errno));
    int r = allow_all(ruleset, sandbox);
    if (r == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        r = -errno;
    close(ruleset);
    return r < 0 ? error_set(err, r, "Landlock: %s", strerror(-r)) : 0;
}

/* ---- calls ---- */

#define MOST_CALLS 512 /* numbers of calls that have a name here */

static const char *process_name;
static char *call_names[MOST_CALLS]; /* read by the handler, which cannot ask libseccomp */

static void on_violation(int signal, siginfo_t *info, void *context)
{
    struct last_words words = {0};
    unsigned call = (unsigned)info->si_syscall;
    last_words_text(&words, process_name);
    last_words_text(&words, ": stopped by the sandbox: it called ");
    if (call < MOST_CALLS && call_names[call])
        last_words_text(&words, call_names[call]);
    else
        last_words_number(&words, call);
    last_words_say(&words);
    /* Delivered as soon as this returns: the process ends by the signal, with a core dump where there are
     * any. */
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigaction(signal, &by_default, NULL);
    raise(signal);
}

static void catch_violations(const char *name)
{
    struct sigaction action = {.sa_sigaction = on_violation, .sa_flags = SA_SIGINFO};
    process_name = name;
    for (int i = 0; i < MOST_CALLS; i++)
        if (!call_names[i])
            call_names[i] = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, i);
    sigaction(SIGSYS, &action, NULL);
}

/* Allowed whatever their arguments are. */
static const int calls[] = {
    /* memory; mmap and mprotect are below */
    SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(mincore),
    SCMP_SYS(membarrier), SCMP_SYS(mlock), SCMP_SYS(munlock),
    /* threads and processors */
    SCMP_SYS(futex), SCMP_SYS(futex_time64), SCMP_SYS(set_robust_list), SCMP_SYS(get_robust_list),
    SCMP_SYS(rseq), SCMP_SYS(set_tid_address), SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity),
    SCMP_SYS(sched_getparam), SCMP_SYS(sched_getscheduler), SCMP_SYS(sched_get_priority_max),
    SCMP_SYS(sched_get_priority_min), SCMP_SYS(getcpu), SCMP_SYS(gettid), SCMP_SYS(getpid), SCMP_SYS(getppid),
    SCMP_SYS(exit), SCMP_SYS(exit_group),
    /* time */
    SCMP_SYS(clock_gettime), SCMP_SYS(clock_gettime64), SCMP_SYS(clock_getres), SCMP_SYS(clock_nanosleep),
    SCMP_SYS(clock_nanosleep_time64), SCMP_SYS(nanosleep), SCMP_SYS(gettimeofday), SCMP_SYS(time),
    SCMP_SYS(times), SCMP_SYS(getrusage),
    /* descriptors; opening and fcntl are below */
    SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(lseek),
    SCMP_SYS(_llseek), SCMP_SYS(close), SCMP_SYS(dup), SCMP_SYS(fstat), SCMP_SYS(fstat64), SCMP_SYS(stat),
    SCMP_SYS(stat64), SCMP_SYS(lstat), SCMP_SYS(lstat64), SCMP_SYS(newfstatat), SCMP_SYS(fstatat64),
    SCMP_SYS(statx), SCMP_SYS(statfs), SCMP_SYS(fstatfs), SCMP_SYS(access), SCMP_SYS(faccessat),
    SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getdents64), SCMP_SYS(getcwd),
    /* waiting */
    SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(ppoll_time64), SCMP_SYS(select), SCMP_SYS(pselect6),
    SCMP_SYS(epoll_create), SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait),
    SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_pwait2), SCMP_SYS(eventfd2), SCMP_SYS(pipe2),
    /* those who connect; sending is below */
    SCMP_SYS(accept), SCMP_SYS(accept4), SCMP_SYS(recvfrom), SCMP_SYS(shutdown), SCMP_SYS(getsockname),
    SCMP_SYS(getpeername), SCMP_SYS(getsockopt), SCMP_SYS(setsockopt),
    /* signals */
    SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigpending),
    SCMP_SYS(sigreturn), SCMP_SYS(sigaltstack), SCMP_SYS(restart_syscall),
    /* what it is and where */
    SCMP_SYS(getrandom), SCMP_SYS(uname), SCMP_SYS(sysinfo), SCMP_SYS(getuid), SCMP_SYS(geteuid),
    SCMP_SYS(getgid), SCMP_SYS(getegid), SCMP_SYS(getrlimit), SCMP_SYS(ugetrlimit)};

/* The same of a worker that loads, besides. */
static const int loading_calls[] = {
    /* a segment of packed weights, and on which nodes it lies; the place of a digest */
    SCMP_SYS(fallocate), SCMP_SYS(set_mempolicy), SCMP_SYS(get_mempolicy), SCMP_SYS(mbind),
    SCMP_SYS(pwrite64),
    /* pcre2's compiler, where it maps what it wrote a second time to execute it */
    SCMP_SYS(memfd_create), SCMP_SYS(ftruncate), SCMP_SYS(ftruncate64),
    /* a model that was truncated: one thread says so, the others wait for the end */
    SCMP_SYS(pause),
    /* the next stage */
    SCMP_SYS(seccomp)};

/* Allows a call whose argument `n` has the value under the mask. */
static int allow_call(scmp_filter_ctx filter, int call, unsigned n, uint64_t mask, uint64_t value)
{
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 1, SCMP_CMP(n, SCMP_CMP_MASKED_EQ, mask, value));
}

#define ALL_BITS UINT64_MAX

/* Calls that may do some of what they can. */
static int allow_parts(scmp_filter_ctx filter, enum sandbox_stage stage)
{
    const uint64_t writes = O_ACCMODE | O_CREAT | O_TRUNC;
    /* A worker that loads has the patterns of its tokenizer compiled. */
    const uint64_t executable = stage == SANDBOX_LOADING ? 0 : PROT_EXEC;
    /* A thread may keep the policy that the process was started with: a service can have another. */
    const uint64_t policy = (uint64_t)sched_getscheduler(0);
    /* Not whom a descriptor sends signals to, which may be any process of the user. */
    static const int commands[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD,     F_SETFD,     F_GETFL,
                                   F_SETFL, F_GET_SEALS,     F_ADD_SEALS, F_OFD_SETLK, F_OFD_GETLK};
    const struct {
        int call;
        unsigned n;
        uint64_t mask, value;
    } parts[] = {
        {SCMP_SYS(open), 1, writes, O_RDONLY},
        {SCMP_SYS(openat), 2, writes, O_RDONLY},
        {SCMP_SYS(mmap), 2, executable, 0},
        {SCMP_SYS(mmap2), 2, executable, 0},
        {SCMP_SYS(mprotect), 2, executable, 0},
        /* Threads, not processes. The flags of clone3 are out of sight: libc then takes clone. */
        {SCMP_SYS(clone), 0, CLONE_THREAD, CLONE_THREAD},
        {SCMP_SYS(sched_setaffinity), 0, UINT32_MAX, 0},     /* its own: no thread or process by number */
        {SCMP_SYS(sched_setscheduler), 1, ALL_BITS, policy}, /* libzmq, as its threads start */
        {SCMP_SYS(tgkill), 0, ALL_BITS, (uint64_t)getpid()},
        {SCMP_SYS(prctl), 0, ALL_BITS, PR_SET_NAME},
        {SCMP_SYS(prctl), 0, ALL_BITS, PR_GET_NAME},
        {SCMP_SYS(prctl), 0, ALL_BITS, 0x53564d41}, /* PR_SET_VMA: malloc names what it maps */
        {SCMP_SYS(prlimit64), 2, ALL_BITS, 0},      /* asked, not set */
        {SCMP_SYS(ioctl), 1, ALL_BITS, FIONREAD},
        {SCMP_SYS(ioctl), 1, ALL_BITS, FIONBIO},
        {SCMP_SYS(ioctl), 1, ALL_BITS, TCGETS},
        {SCMP_SYS(sendto), 4, ALL_BITS, 0}, /* to who is connected, no address */
    };
    int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && r == 0; i++)
        r = allow_call(filter, parts[i].call, parts[i].n, parts[i].mask, parts[i].value);
    for (size_t i = 0; i < sizeof commands / sizeof *commands && r == 0; i++) {
        r = allow_call(filter, SCMP_SYS(fcntl), 1, UINT32_MAX, (uint64_t)commands[i]);
        if (r == 0)
            r = allow_call(filter, SCMP_SYS(fcntl64), 1, UINT32_MAX, (uint64_t)commands[i]);
    }
    return r;
}

static int allow_whole(scmp_filter_ctx filter, const int *list, size_t n)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, list[i], 0);
    return r;
}

/* The CPU backend asks for the tiles of AMX when it chooses its kernels: arch_prctl(2), which x86 alone has.
 */
static int allow_tiles(scmp_filter_ctx filter)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(arch_prctl), 2,
                            SCMP_A0(SCMP_CMP_EQ, ARCH_REQ_XCOMP_PERM),
                            SCMP_A1(SCMP_CMP_EQ, XFEATURE_XTILEDATA));
}

static int allow_loading(scmp_filter_ctx filter)
{
    int r = allow_whole(filter, loading_calls, sizeof loading_calls / sizeof *loading_calls);
    if (r == 0)
        r = allow_call(filter, SCMP_SYS(prctl), 0, ALL_BITS, PR_SET_NO_NEW_PRIVS);
    return r == 0 ? allow_tiles(filter) : r;
}

static int load_filter(scmp_filter_ctx filter, enum sandbox_stage stage)
{
    int r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1); /* all threads */
    if (r == 0)
        r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    /* A search tree for a list: futex stands nowhere near the front. And no slower processor for a process
     * that is confined, which kernels before 5.16 meant well. Both cost nothing where they are not known. */
    if (r == 0) {
        seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
        seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
    }
    if (r == 0)
        r = allow_whole(filter, calls, sizeof calls / sizeof *calls);
    if (r == 0)
        r = allow_parts(filter, stage);
    if (r == 0 && stage == SANDBOX_LOADING)
        r = allow_loading(filter);
    return r == 0 ? seccomp_load(filter) : r;
}

int sandbox_confine_calls(enum sandbox_stage stage, const char *name, struct error *err)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_TRAP);
    if (!filter)
        return error_set(err, -ENOMEM, "not enough memory for the filter of system calls");
    catch_violations(name);
    int r = load_filter(filter, stage);
    seccomp_release(filter);
    return r < 0 ? error_set(err, r, "seccomp: %s", strerror(-r)) : 0;
}
