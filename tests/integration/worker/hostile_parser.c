/* SPDX-License-Identifier: MIT */
/* Stands between a worker and its parsers (ld --wrap), and is a model's author who has taken one of them
 * over: as soon as the parser QUERN_HOSTILE_IN is called it does what QUERN_HOSTILE says, to the file
 * QUERN_VICTIM or the socket QUERN_NEIGHBOUR, says on stderr how it went, and lets the parser go on. Linked
 * into a worker of the tests only. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "gguf/gguf_internal.h"
#include "text/template/chat_template.h"
#include "text/tokenizer/tokenizer.h"

int __real_gguf_parse_file(struct bytes file, struct gguf *part, struct error *err);
int __wrap_gguf_parse_file(struct bytes file, struct gguf *part, struct error *err);
int __real_tokenizer_new(const struct gguf *gguf, struct tokenizer **ret_tokenizer, struct error *err);
int __wrap_tokenizer_new(const struct gguf *gguf, struct tokenizer **ret_tokenizer, struct error *err);
int __real_chat_template_new(struct bytes source, struct bytes bos, struct bytes eos,
                             struct chat_template **ret_template, struct error *err);
int __wrap_chat_template_new(struct bytes source, struct bytes bos, struct bytes eos,
                             struct chat_template **ret_template, struct error *err);

static int read_victim(void)
{
    return open(getenv("QUERN_VICTIM"), O_RDONLY | O_CLOEXEC);
}

static int write_victim(void)
{
    return open(getenv("QUERN_VICTIM"), O_WRONLY | O_CLOEXEC);
}

static void *read_in_a_thread(void *arg)
{
    *(int *)arg = read_victim() < 0 ? errno : 0;
    return NULL;
}

static int read_by_a_thread(void)
{
    int failure;
    pthread_t thread;
    if (pthread_create(&thread, NULL, read_in_a_thread, &failure) != 0)
        return -1;
    pthread_join(thread, NULL);
    errno = failure;
    return failure ? -1 : 0;
}

/* What another process of the same user has open. */
static int look_at_parent(void)
{
    char path[64], target[256];
    snprintf(path, sizeof path, "/proc/%d/fd/2", (int)getppid());
    return (int)readlink(path, target, sizeof target);
}

static int make_a_socket(void)
{
    return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static int start_a_process(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid;
}

static int signal_parent(void)
{
    return kill(getppid(), SIGCONT);
}

/* A descriptor of the board, which could be mapped again. */
static int find_the_board(void)
{
    static const char begin[] = "/memfd:quern-board";
    char path[64], target[64];
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, target, sizeof target) >= (ssize_t)sizeof begin &&
            memcmp(target, begin, sizeof begin - 1) == 0)
            return fd;
    }
    errno = ENOENT;
    return -1;
}

/* A socket of the same user: the pool's own, another worker's, one of a service that starts programs. */
static struct sockaddr_un neighbour(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", getenv("QUERN_NEIGHBOUR"));
    return address;
}

static int speak_to_neighbour(void)
{
    const struct sockaddr_un address = neighbour();
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? -1 : connect(fd, (const struct sockaddr *)&address, sizeof address);
}

static int remove_neighbour(void)
{
    return unlinkat(AT_FDCWD, neighbour().sun_path, 0);
}

/* Whoever comes to it from now on comes to us. */
static int take_neighbours_place(void)
{
    const struct sockaddr_un address = neighbour();
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || (unlinkat(AT_FDCWD, address.sun_path, 0) < 0 && errno != ENOENT))
        return -1;
    return bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 ? -1 : listen(fd, 1);
}

/* A signal to another process, by way of a descriptor that has something to read. */
static int own_parent(void)
{
    int pipe_fds[2];
    return pipe2(pipe_fds, O_CLOEXEC) < 0 ? -1 : fcntl(pipe_fds[0], F_SETOWN, getppid());
}

static int move_parent(void)
{
    cpu_set_t set;
    return sched_getaffinity(getppid(), sizeof set, &set) < 0
               ? -1
               : sched_setaffinity(getppid(), sizeof set, &set);
}

static void act(const char *parser)
{
    static const struct {
        const char *name;
        int (*act)(void);
    } acts[] = {{"read", read_victim},        {"write", write_victim},
                {"thread", read_by_a_thread}, {"look", look_at_parent},
                {"socket", make_a_socket},    {"process", start_a_process},
                {"signal", signal_parent},    {"speak", speak_to_neighbour},
                {"remove", remove_neighbour}, {"replace", take_neighbours_place},
                {"own", own_parent},          {"move", move_parent},
                {"board", find_the_board}};
    const char *where = getenv("QUERN_HOSTILE_IN"), *what = getenv("QUERN_HOSTILE");
    if (!where || !what || strcmp(where, parser) != 0)
        return;
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        if (strcmp(acts[i].name, what) == 0)
            dprintf(STDERR_FILENO, "hostile %s: %s: %s\n", parser, what,
                    acts[i].act() < 0 ? strerror(errno) : "done");
}

int __wrap_gguf_parse_file(struct bytes file, struct gguf *part, struct error *err)
{
    act("file");
    return __real_gguf_parse_file(file, part, err);
}

int __wrap_tokenizer_new(const struct gguf *gguf, struct tokenizer **ret_tokenizer, struct error *err)
{
    act("tokenizer");
    return __real_tokenizer_new(gguf, ret_tokenizer, err);
}

int __wrap_chat_template_new(struct bytes source, struct bytes bos, struct bytes eos,
                             struct chat_template **ret_template, struct error *err)
{
    act("template");
    return __real_chat_template_new(source, bos, eos, ret_template, err);
}
