/* SPDX-License-Identifier: MIT */
/* Where HTTP is listened for. A name may resolve to anything, so what counts is the address. */

#include "common/system/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/number.h"

#define FIRST_PASSED 3 /* descriptor of what a service manager passes */

static int split(const char *host_port, char ret_host[256], char ret_port[8], struct error *err)
{
    const char *colon = strrchr(host_port, ':');
    uint32_t port;
    if (!colon || colon == host_port || colon - host_port > 255 ||
        number_read_u32(colon + 1, 0, 65535, &port, NULL) < 0)
        return error_set(err, -EINVAL, "\"%.80s\" is not HOST:PORT with a port from 0 to 65535", host_port);
    size_t len = (size_t)(colon - host_port);
    if (host_port[0] == '[' && host_port[len - 1] == ']') {
        host_port++;
        len -= 2;
    }
    memcpy(ret_host, host_port, len);
    ret_host[len] = 0;
    snprintf(ret_port, 8, "%u", port);
    return 0;
}

bool listen_is_wildcard(struct bytes host)
{
    const char *start = host.data;
    char text[LISTEN_ADDRESS];
    struct in_addr v4;
    struct in6_addr v6;
    const bool brackets = host.len > 1 && start[0] == '[' && start[host.len - 1] == ']';
    const size_t len = brackets ? host.len - 2 : host.len;
    if (len >= sizeof text)
        return false;
    memcpy(text, start + brackets, len);
    text[len] = 0;
    if (!brackets)
        return strcmp(text, "*") == 0 || (inet_aton(text, &v4) != 0 && v4.s_addr == INADDR_ANY);
    if (inet_pton(AF_INET6, text, &v6) != 1)
        return false;
    memcpy(&v4, v6.s6_addr + 12, sizeof v4);
    return IN6_IS_ADDR_UNSPECIFIED(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v4.s_addr == INADDR_ANY);
}

int listen_check(const char *host_port, struct error *err)
{
    char host[256], port[8];
    return split(host_port, host, port, err);
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
    const struct sockaddr_in *v4 = (const void *)address;
    return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
}

static int listen_at(const struct addrinfo *info, struct error *err)
{
    int one = 1, fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_set(err, -errno, "socket: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, info->ai_addr, info->ai_addrlen) < 0 || listen(fd, SOMAXCONN) < 0) {
        int r = error_set(err, -errno, "%s", strerror(errno));
        close(fd);
        return r;
    }
    return fd;
}

static void say_address(int fd, char ret_address[LISTEN_ADDRESS])
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    char host[64] = "?", port[8] = "?";
    if (getsockname(fd, (struct sockaddr *)&address, &len) == 0)
        getnameinfo((struct sockaddr *)&address, len, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(ret_address, LISTEN_ADDRESS, address.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

/* 0; -EPERM where others could come in who are not let in. */
static int check_reach(const struct sockaddr *address, bool open, const char *name, struct error *err)
{
    if (open || is_loopback(address))
        return 0;
    return error_set(
        err, -EPERM,
        "%s is reachable from other machines, so anyone there could use the pool: give a key file (--keys; "
        "with serve, --http-keys) or allow it with --open (with serve, --http-open)",
        name);
}

int listen_on(const char *host_port, bool open, char ret_address[LISTEN_ADDRESS], struct error *err)
{
    char host[256], port[8];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found;
    int r = split(host_port, host, port, err);
    if (r < 0)
        return r;
    r = getaddrinfo(strcmp(host, "*") == 0 ? NULL : host, port, &hints, &found);
    if (r != 0)
        return error_set(err, -EINVAL, "%s: %s", host_port, gai_strerror(r));
    r = check_reach(found->ai_addr, open, host_port, err);
    int fd = r == 0 ? listen_at(found, err) : r;
    freeaddrinfo(found);
    if (fd < 0)
        return r == 0 ? error_prefix(err, fd, "%s", host_port) : fd;
    say_address(fd, ret_address);
    return fd;
}

int listen_adopt(int fd, bool open, char ret_address[LISTEN_ADDRESS], struct error *err)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address, size = sizeof(int);
    int listens = 0, flags = fcntl(fd, F_GETFL);
    char name[LISTEN_ADDRESS];
    if (flags < 0 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) < 0 || !listens ||
        getsockname(fd, (struct sockaddr *)&address, &len) < 0 ||
        (address.ss_family != AF_INET && address.ss_family != AF_INET6))
        return error_set(err, -EINVAL, "descriptor %d is not a listening TCP socket", fd);
    say_address(fd, name);
    int r = check_reach((const struct sockaddr *)&address, open, name, err);
    if (r < 0)
        return r;
    if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        return error_set(err, -errno, "descriptor %d: %s", fd, strerror(errno));
    memcpy(ret_address, name, sizeof name);
    return 0;
}

int listen_passed(int *ret_fd, struct error *err)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    uint32_t owner = 0, n = 0;
    if (pid && number_read_u32(pid, 1, INT32_MAX, &owner, err) < 0)
        return error_prefix(err, -EINVAL, "LISTEN_PID");
    if (count && number_read_u32(count, 0, INT32_MAX, &n, err) < 0)
        return error_prefix(err, -EINVAL, "LISTEN_FDS");
    if (owner != (uint32_t)getpid()) /* meant for another process */
        n = 0;
    if (n > 1)
        return error_set(err, -EINVAL, "LISTEN_FDS: %u sockets passed, expected one", n);
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    *ret_fd = n == 1 ? FIRST_PASSED : -1;
    return 0;
}
