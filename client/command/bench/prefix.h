/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_BENCH_PREFIX_H
#define CLIENT_COMMAND_BENCH_PREFIX_H

/* Shared by the files of `quern bench prefix`: requests, output, and the situations. Functions return 0, or
 * -errno with a reason. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/command/pool/pool.h"
#include <quern.h>
#include "common/clock.h"
#include "common/error.h"

#define STALL_NS     (60 * CLOCK_NS_PER_S) /* give up if no request ends for this long */
#define BLOCK        32                    /* ids per KV block, the unit of cache hits */
#define WORKERS      4
#define TENANTS      40
#define AT_ONCE      16
#define TURN_IDS     100 /* of a question, and of an answer */
#define PROMPTS_MOST 64

struct prefix_options {
    const char *model, *device, *llama_server;
    uint32_t ids, turns, requests, repetitions;
    bool json;
};

/* How requests are routed if the pool does not do it. */
enum policy { ITS_OWN, IN_TURN, LEAST_OPEN };

struct prefix_bench {
    const struct prefix_options *options;
    const char *model;           /* a file */
    struct pool *pool;           /* the pool that gets the requests */
    struct pool *apart[WORKERS]; /* pools of one worker each; NULL: there are none */
    uint32_t open, open_apart[WORKERS];
    uint64_t last_end_ns;
    enum policy policy; /* for the separate pools */
    char wrong[200];    /* a request that ended unexpectedly; "": none */
};

/* One request, from its sending to its end. */
struct prefix_asked {
    struct prefix_bench *bench;
    uint64_t sent_ns, first_ns;
    uint32_t prompt_tokens, cached_tokens, output_tokens;
    int32_t output[TURN_IDS];
    uint32_t place; /* of its pool, among the separate ones */
};

/* ---- requests (prefix_requests.c) ---- */

/* Starts a private pool of the bench's model, which gets the requests from now on. */
int prefix_open_pool(struct prefix_bench *bench, const char *device, uint32_t workers, uint32_t store_mib,
                     struct error *err);

/* Makes ids that every vocabulary has; the first ids differ for each `name`. */
void prefix_make_ids(int32_t *ids, size_t n, uint64_t name);

/* Sends a request; `asked` must live until it has ended. */
int prefix_send(struct prefix_bench *bench, struct prefix_asked *asked, const int32_t *ids, size_t n,
                uint32_t max_tokens, struct error *err);

/* Waits until at most `open` requests are in progress. */
int prefix_await(struct prefix_bench *bench, uint32_t open, struct error *err);

/* Sends a request and waits for its end. */
int prefix_ask(struct prefix_bench *bench, struct prefix_asked *asked, const int32_t *ids, size_t n,
               uint32_t max_tokens, struct error *err);

/* The pool's status, valid until the next call. */
int prefix_ask_status(struct prefix_bench *bench, const struct quern_status **ret_status, struct error *err);

/* ---- output (prefix_print.c) ---- */

/* Prints a value beside its goal. */
void prefix_print(const struct prefix_options *options, const char *name, const char *what, double value,
                  double goal, bool at_least);

/* Prints a value for comparison, which has no goal. NAN: it was not measured. */
void prefix_print_beside(const struct prefix_options *options, const char *name, const char *what,
                         double value);

/* ---- the situations: each prints what it measured ---- */

int measure_again(struct prefix_bench *bench, struct error *err);
int measure_llama_server(struct prefix_bench *bench, struct error *err);
int measure_restart(struct prefix_bench *bench, struct error *err);
int measure_other(struct prefix_bench *bench, struct error *err);
int measure_chat(struct prefix_bench *bench, struct error *err);
int measure_at_once(struct prefix_bench *bench, struct error *err);

/* In prefix_tenants.c; the second compares with separate pools among which simpler rules choose. */
int measure_tenants(struct prefix_bench *bench, struct error *err);
int measure_tenants_apart(struct prefix_bench *bench, struct error *err);

#endif
