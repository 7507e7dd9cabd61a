/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SUPPORT_ZMTP_H
#define TESTS_INTEGRATION_SUPPORT_ZMTP_H

/* Connections that speak hand-written ZMTP, to send what no ZeroMQ socket would. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ZMTP_MORE = 1, ZMTP_LARGE = 2, ZMTP_COMMAND = 4 };

/* Connects to a socket of a run directory without sending anything. Returns the descriptor, or -1 with
 * errno. */
int zmtp_connect(const char *rundir, const char *name);

/* Does the handshake on a connection as a socket of this type. False if it is refused. */
bool zmtp_greet(int fd, const char *type);

/* Connects and does the handshake as a socket of this type ("DEALER", "XSUB"). -1 if it is refused. */
int zmtp_open(const char *rundir, const char *name, const char *type);

/* Sends one frame, or only its header, which promises `len` bytes. False if the other end has closed. */
bool zmtp_send(int fd, uint8_t flags, const void *body, size_t len);
bool zmtp_promise(int fd, uint8_t flags, uint64_t len);

/* Sends raw bytes. */
bool zmtp_write(int fd, const void *bytes, size_t len);

/* Whether the other end closes within this many milliseconds; received data is discarded. */
bool zmtp_closes(int fd, int ms);

#endif
