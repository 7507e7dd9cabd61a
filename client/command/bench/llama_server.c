/* SPDX-License-Identifier: MIT */
/* A child process and requests of HTTP/1.0, one connection each: what comes until its end is the answer. */

#include "client/command/bench/llama_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/command/terminal/interrupt.h"
#include "common/clock.h"

#define START_NS (120 * CLOCK_NS_PER_S)
#define ANSWER_S 120
#define END_NS   (5 * CLOCK_NS_PER_S)
#define PAUSE_US 50000

extern char **environ;

struct llama_server {
    pid_t pid;
    struct sockaddr_in address;
};

/* A port that nobody has, for the next who asks. */
static int find_port(struct sockaddr_in *ret_address, struct error *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r = fd < 0 || bind(fd, (struct sockaddr *)&address, size) < 0 ||
                    getsockname(fd, (struct sockaddr *)&address, &size) < 0
                ? -errno
                : 0;
    if (fd >= 0)
        close(fd);
    if (r < 0)
        return error_set(err, r, "llama-server: no port: %s", strerror(-r));
    *ret_address = address;
    return 0;
}

static int spawn(const char *program, const char *model, uint32_t context, struct llama_server *server,
                 struct error *err)
{
    char port[16], tokens[16];
    posix_spawn_file_actions_t actions;
    snprintf(port, sizeof port, "%u", ntohs(server->address.sin_port));
    snprintf(tokens, sizeof tokens, "%u", context);
    const char *const words[] = {program, "-m", model,  "--host", "127.0.0.1", "--port",
                                 port,    "-c", tokens, "-np",    "1",         NULL};
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int r = -posix_spawnp(&server->pid, program, &actions, NULL, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (r == 0)
        return 0;
    server->pid = 0;
    return error_set(err, r, "%s: %s", program, strerror(-r));
}

/* ---- HTTP ---- */

static int send_all(int fd, const void *data, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t sent = send(fd, (const char *)data + done, n - done, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return -errno;
        done += sent > 0 ? (size_t)sent : 0;
    }
    return 0;
}

/* The status of the answer, which is read to its end. -errno. */
static int read_status(int fd)
{
    char first[32] = "", rest[4096];
    size_t len = 0;
    for (;;) {
        bool begins = len < sizeof first - 1;
        ssize_t n =
            begins ? recv(fd, first + len, sizeof first - 1 - len, 0) : recv(fd, rest, sizeof rest, 0);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            return -errno;
        len += n > 0 ? (size_t)n : 0;
    }
    int status;
    return sscanf(first, "HTTP/1.%*d %d", &status) == 1 ? status : -EPROTO;
}

/* `body` NULL: a GET. */
static int exchange(const struct llama_server *server, const char *path, const char *body)
{
    const struct timeval most = {.tv_sec = ANSWER_S};
    char head[256];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    int r = connect(fd, (const struct sockaddr *)&server->address, sizeof server->address) < 0 ? -errno : 0;
    snprintf(
        head, sizeof head,
        "%s %s HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
        body ? "POST" : "GET", path, body ? strlen(body) : 0);
    if (r == 0)
        r = send_all(fd, head, strlen(head));
    if (r == 0 && body)
        r = send_all(fd, body, strlen(body));
    if (r == 0)
        r = read_status(fd);
    close(fd);
    return r;
}

/* ---- the server ---- */

static int await_health(struct llama_server *server, const char *program, struct error *err)
{
    int status;
    for (uint64_t until = clock_ns() + START_NS;;) {
        if (exchange(server, "/health", NULL) == 200)
            return 0;
        if (waitpid(server->pid, &status, WNOHANG) == server->pid) {
            server->pid = 0;
            return error_set(err, -ECHILD, "%s ended before it was ready", program);
        }
        if (interrupt_signal())
            return error_set(err, -EINTR, "interrupted");
        if (clock_ns() > until)
            return error_set(err, -ETIMEDOUT, "%s is not ready after %u s", program,
                             (unsigned)(START_NS / CLOCK_NS_PER_S));
        usleep(PAUSE_US);
    }
}

int llama_server_start(const char *program, const char *model, uint32_t context,
                       struct llama_server **ret_server, struct error *err)
{
    struct llama_server *server = calloc(1, sizeof *server);
    if (!server)
        return error_set(err, -ENOMEM, "out of memory");
    int r = find_port(&server->address, err);
    if (r == 0)
        r = spawn(program, model, context, server, err);
    if (r == 0)
        r = await_health(server, program, err);
    if (r < 0) {
        llama_server_end(server);
        return r;
    }
    *ret_server = server;
    return 0;
}

struct llama_server *llama_server_end(struct llama_server *server)
{
    if (!server)
        return NULL;
    if (server->pid > 0) {
        uint64_t until = clock_ns() + END_NS;
        kill(server->pid, SIGTERM);
        while (waitpid(server->pid, NULL, WNOHANG) == 0) {
            if (clock_ns() > until)
                kill(server->pid, SIGKILL);
            usleep(2000);
        }
    }
    free(server);
    return NULL;
}

int llama_server_ask(struct llama_server *server, const int32_t *ids, size_t n, uint64_t *ret_ns,
                     struct error *err)
{
    json_t *prompt = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(prompt, json_integer(ids[i]));
    json_t *request = json_pack("{s:o, s:i, s:b, s:i}", "prompt", prompt, "n_predict", 1, "cache_prompt", 1,
                                "temperature", 0);
    char *body = request ? json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    if (!body)
        return error_set(err, -ENOMEM, "out of memory");
    uint64_t start = clock_ns();
    int status = exchange(server, "/completion", body);
    free(body);
    if (status != 200)
        return error_set(err, -EPROTO, "llama-server: %s",
                         status < 0 ? strerror(-status) : "it refused a prompt");
    *ret_ns = clock_ns() - start;
    return 0;
}
