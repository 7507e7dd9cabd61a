/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_LISTEN_H
#define GATEWAY_LISTEN_H

#include <stdbool.h>

#include "common/error.h"

/* Listens on HOST:PORT: an address (those of IPv6 in brackets), a name, or * for all; port 0: one that is
 * free. With `open` false only this machine's own addresses are taken: -EPERM otherwise. The descriptor;
 * ret_address is where it listens in truth. */
int listen_on(const char *host_port, bool open, char ret_address[80], struct error *err);

#endif
