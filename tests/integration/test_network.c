/* SPDX-License-Identifier: MIT */
/* A pool on the network, as docs/SERVING.md describes it: the commands of its section are run as they stand
 * there, but for the addresses, the model and where the programs are. */

#include "common/bytes.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/child.h"
#include "tests/unit/run.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_COMMANDS 4

enum { KEYS, CLIENT_KEYS, SERVE, ASK }; /* what the commands of docs/SERVING.md do */

static char dir[RUNDIR_PATH_MAX + 1], started_in[4096], port[8];
static char commands[MAX_COMMANDS][512];
static char configuration[1024];
static char out[65536];

/* ---- what docs/SERVING.md says ---- */

static char *read_whole(const char *path)
{
    static char text[65536];
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
    size_t n = fread(text, 1, sizeof text - 1, file);
    ck_assert_uint_lt(n, sizeof text - 1);
    text[n] = 0;
    fclose(file);
    return text;
}

/* The next fenced block after `from`, without its fences. */
static char *take_block(char *from, char **ret_after)
{
    char *begin = strstr(from, "\n```\n");
    ck_assert_ptr_nonnull(begin);
    begin += 5;
    char *end = strstr(begin, "\n```\n");
    ck_assert_ptr_nonnull(end);
    *end = 0;
    *ret_after = end + 5;
    return begin;
}

static void replace(char *text, size_t size, const char *from, const char *to)
{
    char *at = strstr(text, from);
    ck_assert_msg(at != NULL, "docs/SERVING.md does not say \"%s\" in: %s", from, text);
    size_t tail = strlen(at + strlen(from)) + 1;
    ck_assert_uint_lt((size_t)(at - text) + strlen(to) + tail, size);
    memmove(at + strlen(to), at + strlen(from), tail);
    memcpy(at, to, strlen(to));
}

static void read_guide(void)
{
    char *guide = read_whole(GUIDE), *after;
    char *section = strstr(guide, "from other machines");
    ck_assert_ptr_nonnull(section);
    char *block = take_block(section, &after), *line;
    int n = 0;
    while ((line = strsep(&block, "\n"))) {
        ck_assert_int_lt(n, MAX_COMMANDS);
        char *comment = strstr(line, " #");
        if (comment)
            *comment = 0;
        snprintf(commands[n], sizeof commands[n], "%s", line);
        n++;
    }
    ck_assert_int_eq(n, MAX_COMMANDS);
    snprintf(configuration, sizeof configuration, "%s\n", take_block(after, &after));
}

/* ---- doing it ---- */

static void set_up(void)
{
    char path[8192];
    ck_assert_ptr_nonnull(getcwd(started_in, sizeof started_in));
    snprintf(path, sizeof path, "%s:%s", build_path(""), getenv("PATH"));
    setenv("PATH", path, 1);
    setenv("MODEL", tiny_model(), 1);
    ck_assert_int_eq(rundir_temporary(dir, NULL), 0);
    setenv("XDG_RUNTIME_DIR", dir, 1);
    ck_assert_int_eq(chdir(dir), 0);
    /* Far from the range of ports that the kernel gives out. */
    snprintf(port, sizeof port, "%d", pool_free_ports());
    read_guide();
}

static void tear_down(void)
{
    char inner[RUNDIR_PATH_MAX + 16];
    ck_assert_int_eq(chdir(started_in), 0);
    snprintf(inner, sizeof inner, "%s/quern", dir);
    rundir_remove(inner);
    rundir_remove(dir);
}

/* Runs a line of shell; its output, both kinds, is in `out`. The exit status. */
static int shell(const char *line)
{
    char all[4096];
    snprintf(all, sizeof all, "( %s ) 2>&1", line);
    FILE *pipe = popen(all, "r");
    ck_assert_ptr_nonnull(pipe);
    size_t n = fread(out, 1, sizeof out - 1, pipe);
    out[n] = 0;
    return WEXITSTATUS(pclose(pipe));
}

static pid_t start_pool(const char *line)
{
    char all[4096];
    snprintf(all, sizeof all, "exec %s 2>serve.log", line);
    pid_t pid = fork_child();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", all, (char *)NULL);
        _exit(127);
    }
    /* Whoever asks it does not wait for long. */
    for (int i = 0; i < 6000 && shell("grep -q ^ready: serve.log") != 0; i++)
        usleep(10000);
    return pid;
}

static void stop_pool(pid_t pid)
{
    int status = 0;
    kill(pid, SIGTERM);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", read_whole("serve.log"));
}

/* A command of docs/SERVING.md with the address that this test uses. */
static const char *here(char *command, const char *address)
{
    char to[64];
    snprintf(to, sizeof to, "127.0.0.1:%s", port);
    replace(command, sizeof *commands, address, to);
    return command;
}

/* ---- what the processes of a pool show to the outside ---- */

/* Whether the socket listens on an address of the network, or in the abstract name space, where any user
 * could connect. */
static bool is_open_to_others(unsigned long inode)
{
    static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6", "/proc/net/unix"};
    char line[1024], own[32];
    bool found = false;
    snprintf(own, sizeof own, " %lu ", inode);
    for (int i = 0; i < 3; i++) {
        FILE *file = fopen(tables[i], "r");
        while (file && !found && fgets(line, sizeof line, file))
            found = strstr(line, own) && strstr(line, i < 2 ? " 0A " : " @");
        if (file)
            fclose(file);
    }
    return found;
}

/* Sockets, not descriptors, of which one may have several. */
static int n_open_to_others(pid_t pid)
{
    char folder[64], path[512], target[256];
    int n = 0;
    struct dirent *entry;
    unsigned long inode, found[16];
    snprintf(folder, sizeof folder, "/proc/%d/fd", pid);
    DIR *listing = opendir(folder);
    ck_assert_ptr_nonnull(listing);
    while ((entry = readdir(listing))) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        ssize_t len = readlink(path, target, sizeof target - 1);
        target[len > 0 ? len : 0] = 0;
        if (sscanf(target, "socket:[%lu]", &inode) != 1 || !is_open_to_others(inode))
            continue;
        int i = 0;
        while (i < n && found[i] != inode)
            i++;
        ck_assert_int_lt(i, 16);
        found[i] = inode;
        n = i == n ? n + 1 : n;
    }
    closedir(listing);
    return n;
}

/* The text that stands behind this name in a file of /proc/PID; "" when the process has ended. */
static void find_in_proc(pid_t pid, const char *file, const char *name, char ret_text[64])
{
    char path[64], line[256];
    size_t len = strlen(name);
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    FILE *opened = fopen(path, "r");
    ret_text[0] = 0;
    while (opened && fgets(line, sizeof line, opened))
        if (strncmp(line, name, len) == 0)
            snprintf(ret_text, 64, "%s", line + len + strspn(line + len, " \t"));
    if (opened)
        fclose(opened);
}

/* The broker listens for clients; nothing else of the pool can be reached but in its run directory, and no
 * process of it leaves its memory in a core dump. */
static void check_processes(pid_t supervisor)
{
    char name[64], parent[64], cores[64];
    int n_workers = 0;
    struct dirent *entry;
    DIR *listing = opendir("/proc");
    ck_assert_ptr_nonnull(listing);
    while ((entry = readdir(listing))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        snprintf(name, sizeof name, "/proc/%d/status", pid);
        if (pid <= 0 || access(name, R_OK) < 0)
            continue;
        find_in_proc(pid, "status", "PPid:", parent);
        if (strtol(parent, NULL, 10) != supervisor)
            continue;
        find_in_proc(pid, "status", "Name:", name);
        bool is_worker = strncmp(name, "quern-worker", 12) == 0;
        n_workers += is_worker;
        ck_assert_msg(n_open_to_others(pid) == (is_worker ? 0 : 2), "%s", name);
        find_in_proc(pid, "limits", "Max core file size", cores);
        ck_assert_msg(cores[0] == '1' || cores[0] == '0', "%s: %s", name, cores);
    }
    closedir(listing);
    ck_assert_int_gt(n_workers, 0);
    ck_assert_int_eq(n_open_to_others(supervisor), 0);
}

START_TEST(the_commands_of_the_guide_make_an_encrypted_pool)
{
    struct stat st;
    ck_assert_msg(shell(commands[KEYS]) == 0, "%s", out);
    ck_assert_int_eq(stat("quern.cert_secret", &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    /* What it says is next names the two files. */
    ck_assert_ptr_nonnull(strstr(out, "--curve-key ./quern.cert_secret"));
    ck_assert_ptr_nonnull(strstr(out, "--server-key ./quern.cert"));
    ck_assert_int_eq(shell(commands[KEYS]), 1);
    ck_assert_ptr_nonnull(strstr(out, "quern.cert already exists"));
    ck_assert_msg(shell(commands[CLIENT_KEYS]) == 0, "%s", out);
    ck_assert_int_eq(stat("clients/alice.cert_secret", &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    ck_assert_ptr_nonnull(strstr(out, "--client-key clients/alice.cert_secret"));

    replace(commands[SERVE], sizeof *commands, "MODEL.gguf", "\"$MODEL\"");
    pid_t pool = start_pool(here(commands[SERVE], "0.0.0.0:7700"));
    ck_assert_msg(shell(here(commands[ASK], "HOST:7700")) == 0, "%s\n%s", out, read_whole("serve.log"));
    ck_assert_uint_gt(strlen(out), 0);
    check_processes(pool);
    ck_assert_int_eq(stat("quern", &st), 0); /* the run directory */
    ck_assert_uint_eq(st.st_mode & 0777, 0700);
    /* The secret certificate has the public key too; a key of somebody else's gets no answer. */
    replace(commands[ASK], sizeof *commands, "quern.cert", "quern.cert_secret");
    ck_assert_msg(shell(commands[ASK]) == 0, "%s", out);
    /* Nobody else is let in: neither without a key, nor with one that is not in the folder. */
    char line[256];
    snprintf(line, sizeof line, "quern status --connect tcp://127.0.0.1:%s --server-key quern.cert", port);
    ck_assert_int_eq(shell(line), 1);
    ck_assert_msg(strstr(out, "does not know this client's key"), "%s", out);
    snprintf(line, sizeof line,
             "quern keys --client mallory elsewhere && quern status --connect tcp://127.0.0.1:%s "
             "--server-key quern.cert --client-key elsewhere/mallory.cert",
             port);
    ck_assert_int_eq(shell(line), 1);
    ck_assert_msg(strstr(out, "does not know this client's key"), "%s", out);
    ck_assert_int_eq(shell("chmod 644 clients/alice.cert_secret && quern status --connect tcp://127.0.0.1:1 "
                           "--server-key quern.cert --client-key clients/alice.cert"),
                     1);
    ck_assert_msg(strstr(out, "client key: clients/alice.cert_secret holds a secret key"), "%s", out);
    ck_assert_int_eq(mkdir("other", 0700), 0);
    snprintf(line, sizeof line,
             "quern keys other && quern status --connect tcp://127.0.0.1:%s --server-key other/quern.cert",
             port);
    ck_assert_int_eq(shell(line), 1);
    ck_assert_msg(strstr(out, "the server key may belong to another pool"), "%s", out);
    snprintf(line, sizeof line, "quern status --connect tcp://127.0.0.1:%s", port);
    ck_assert_int_eq(shell(line), 1);
    ck_assert_msg(strstr(out, "it may require a server key"), "%s", out);
    ck_assert_int_eq(shell("quern status --server-key quern.cert"), 1);
    ck_assert_msg(strstr(out, "takes no key"), "%s", out);
    ck_assert_int_eq(shell("quern run --server-key quern.cert x"), 1);
    ck_assert_msg(strstr(out, "--server-key requires --connect"), "%s", out);
    ck_assert_int_eq(shell("quern run --connect tcp://127.0.0.1:1 --client-key quern.cert x"), 1);
    ck_assert_msg(strstr(out, "--client-key requires --server-key"), "%s", out);
    stop_pool(pool);
    ck_assert_int_eq(shell("rm -r other elsewhere clients"), 0);
}
END_TEST

START_TEST(the_configuration_file_of_the_guide_works)
{
    char line[256], path[RUNDIR_PATH_MAX + 32], address[32];
    snprintf(path, sizeof path, "%s/quern.cert_secret", dir);
    snprintf(address, sizeof address, "127.0.0.1:%s", port);
    replace(configuration, sizeof configuration, "/models/llama.gguf", getenv("MODEL"));
    replace(configuration, sizeof configuration, "0.0.0.0:7700", address);
    replace(configuration, sizeof configuration, "/etc/quern/quern.cert_secret", path);
    replace(configuration, sizeof configuration, "/etc/quern/clients", "clients");
    FILE *file = fopen("pool.conf", "w");
    fputs(configuration, file);
    fclose(file);
    ck_assert_msg(shell(commands[KEYS]) == 0, "%s", out);
    ck_assert_msg(shell(commands[CLIENT_KEYS]) == 0, "%s", out);
    pid_t pool = start_pool("quern serve --config pool.conf");
    ck_assert_msg(shell(here(commands[ASK], "HOST:7700")) == 0, "%s\n%s", out, read_whole("serve.log"));
    snprintf(line, sizeof line,
             "quern status --connect tcp://%s --server-key quern.cert --client-key clients/alice.cert",
             address);
    ck_assert_int_eq(shell(line), 0);
    ck_assert_msg(strstr(out, "worker-1"), "%s", out); /* workers = 2 */
    stop_pool(pool);
    ck_assert_int_eq(shell("rm -r clients"), 0);
}
END_TEST

START_TEST(a_secret_that_others_can_read_or_that_is_no_pair_is_refused)
{
    char line[256];
    ck_assert_msg(shell(commands[KEYS]) == 0, "%s", out);
    ck_assert_int_eq(chmod("quern.cert_secret", 0644), 0);
    snprintf(line, sizeof line, "quern serve \"$MODEL\" --tcp 127.0.0.1:%s --curve-key quern.cert_secret",
             port);
    ck_assert_int_ne(shell(line), 0);
    ck_assert_msg(strstr(out, "others can read it (mode 0644): chmod 600 quern.cert_secret"), "%s", out);
    ck_assert_int_eq(chmod("quern.cert_secret", 0600), 0);
    ck_assert_int_eq(shell("sed -i 's/public-key = \".\\{5\\}/public-key = \"abcde/' quern.cert_secret"), 0);
    ck_assert_int_ne(shell(line), 0);
    ck_assert_msg(strstr(out, "are not a pair"), "%s", out);
    ck_assert_int_eq(truncate("quern.cert_secret", 0), 0);
    ck_assert_int_ne(shell(line), 0);
    ck_assert_msg(strstr(out, "quern.cert_secret: not a CURVE certificate"), "%s", out);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_commands_of_the_guide_make_an_encrypted_pool);
    tcase_add_test(tests, the_configuration_file_of_the_guide_works);
    tcase_add_test(tests, a_secret_that_others_can_read_or_that_is_no_pair_is_refused);
}

int main(void)
{
    return run_tests("network", add);
}
