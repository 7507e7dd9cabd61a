/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_OUTPUT_H
#define CLIENT_COMMAND_OUTPUT_H

/* Streaming to stdout, past stdio: stdio takes a signal in the middle of a write for a failure. */

#include <stddef.h>

/* Writes all of it at once. 0; or -errno, and a line on stderr has said so. */
int output_write(const void *data, size_t len);

#endif
