/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_BENCH_LLAMA_SERVER_H
#define CLIENT_COMMAND_BENCH_LLAMA_SERVER_H

/* A llama-server for comparison: started for a model, used over HTTP, and ended. */

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct llama_server;

/* Starts `program`, on a free port of the loopback interface, with a context of this many tokens, and waits
 * until it serves. -errno with a reason; -EINTR if the user interrupted. */
int llama_server_start(const char *program, const char *model, uint32_t context,
                       struct llama_server **ret_server, struct error *err);
struct llama_server *llama_server_end(struct llama_server *server);

/* Requests one token for a prompt, with cache_prompt, and returns the nanoseconds until the answer. -errno
 * with a reason. */
int llama_server_ask(struct llama_server *server, const int32_t *ids, size_t n, uint64_t *ret_ns,
                     struct error *err);

#endif
