/* SPDX-License-Identifier: MIT */
/* Where the gateway listens. A name may resolve to anything, so what counts is the address. */

#include "gateway/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/number.h"

#define BACKLOG 1024

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
    if (bind(fd, info->ai_addr, info->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        int r = error_set(err, -errno, "%s", strerror(errno));
        close(fd);
        return r;
    }
    return fd;
}

static void say_address(int fd, char ret_address[80])
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    char host[64] = "?", port[8] = "?";
    if (getsockname(fd, (struct sockaddr *)&address, &len) == 0)
        getnameinfo((struct sockaddr *)&address, len, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(ret_address, 80, address.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

int listen_on(const char *host_port, bool open, char ret_address[80], struct error *err)
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
    if (!open && !is_loopback(found->ai_addr))
        r = error_set(err, -EPERM,
                      "%s can be reached from other machines, and anybody there could use the pool: "
                      "give a file of keys (--keys; with serve, --http-keys), or --open if that is meant",
                      host_port);
    int fd = r == 0 ? listen_at(found, err) : r;
    freeaddrinfo(found);
    if (fd < 0)
        return r == 0 ? error_prefix(err, fd, "%s", host_port) : fd;
    say_address(fd, ret_address);
    return fd;
}
