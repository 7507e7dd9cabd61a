/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_LISTEN_H
#define COMMON_SYSTEM_LISTEN_H

/* Listening sockets for HTTP: made here, or by another process that keeps them while serving processes come
 * and go. With `open` false only loopback addresses are allowed: -EPERM otherwise. `ret_address` is the
 * actual address: "127.0.0.1:8080", "[::1]:8080". */

#include <stdbool.h>

#include "common/bytes.h"
#include "common/error.h"

#define LISTEN_ADDRESS 80 /* bytes of such a text */

/* Whether it is HOST:PORT at all. 0, or -EINVAL with a reason. */
int listen_check(const char *host_port, struct error *err);

/* Whether a host, as it stands before the port (IPv6 in brackets), means every address of the machine: "*",
 * or an address of zeros in any notation. Nobody can connect to that from elsewhere. */
bool listen_is_wildcard(struct bytes host);

/* Listens on HOST:PORT: an address (those of IPv6 in brackets), a name, or * for all; port 0: one that is
 * free. The descriptor, which is close-on-exec and does not block, or -errno with a reason that names the
 * address. */
int listen_on(const char *host_port, bool open, char ret_address[LISTEN_ADDRESS], struct error *err);

/* Checks a socket that already listens and sets the same flags. 0; -EINVAL: not a listening socket. It
 * stays the caller's. */
int listen_adopt(int fd, bool open, char ret_address[LISTEN_ADDRESS], struct error *err);

/* The socket that a service manager made and passed to this process, by the variables of sd_listen_fds(3),
 * which are taken out of the environment. 0, with *ret_fd -1 where there is none; -EINVAL: more than one. */
int listen_passed(int *ret_fd, struct error *err);

#endif
