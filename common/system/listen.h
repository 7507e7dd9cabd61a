/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_LISTEN_H
#define COMMON_SYSTEM_LISTEN_H

/* Listening sockets for HTTP: created here, or by another process that keeps them while serving processes are
 * replaced. With `open` false only loopback addresses are allowed: -EPERM otherwise. `ret_address` is the
 * actual address: "127.0.0.1:8080", "[::1]:8080". */

#include <stdbool.h>

#include "common/bytes.h"
#include "common/error.h"

#define LISTEN_ADDRESS 80 /* bytes of such a text */
/* Whether the text has the form HOST:PORT. 0, or -EINVAL with a reason. */
int listen_check(const char *host_port, struct error *err);

/* Whether a host, as written before the port (IPv6 in brackets), means every address of the machine: "*", or
 * an all-zero address in any notation. Other machines cannot connect to that. */
bool listen_is_wildcard(struct bytes host);

/* Listens on HOST:PORT: an address (IPv6 in brackets), a name, or * for all; port 0: any free port. Returns
 * the descriptor, which is close-on-exec and non-blocking, or -errno with a reason that names the address. */
int listen_on(const char *host_port, bool open, char ret_address[LISTEN_ADDRESS], struct error *err);

/* Checks a socket that already listens and sets the same flags. 0; -EINVAL: not a listening socket. The
 * caller keeps ownership. */
int listen_adopt(int fd, bool open, char ret_address[LISTEN_ADDRESS], struct error *err);

/* The socket that a service manager passed to this process with the variables of sd_listen_fds(3), which are
 * removed from the environment. 0, with *ret_fd -1 if there is none; -EINVAL: more than one. */
int listen_passed(int *ret_fd, struct error *err);

#endif
