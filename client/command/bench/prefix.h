/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_BENCH_PREFIX_H
#define CLIENT_COMMAND_BENCH_PREFIX_H

/* What the files of quern bench prefix share: requests, output, and the situations. Functions return 0, or
 * -errno with a reason. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/command/pool/pool.h"
#include <quern.h>
#include "common/clock.h"
#include "common/error.h"

#define STALL_NS     (60 * CLOCK_NS_PER_S) /* without any end: give up */
#define BLOCK        32                    /* ids that are found at once: a KV block */
#define WORKERS      4
#define TENANTS      40
#define AT_ONCE      16
#define TURN_IDS     100 /* of what is asked, and of what is answered */
#define PROMPTS_MOST 64

struct prefix_options {
    const char *model, *device, *llama_server;
    uint32_t ids, turns, requests, repetitions;
    bool json;
};

/* How requests are routed where the pool does not do it. */
enum policy { ITS_OWN, IN_TURN, LEAST_OPEN };

struct prefix_bench {
    const struct prefix_options *options;
    const char *model;           /* a file */
    struct pool *pool;           /* that is asked */
    struct pool *apart[WORKERS]; /* pools of one worker each; NULL: there are none */
    uint32_t open, open_apart[WORKERS];
    uint64_t last_end_ns;
    enum policy policy; /* of the pools apart */
    char wrong[200];    /* what ended otherwise than it should; empty */
};

/* One request, from its sending to its end. */
struct prefix_asked {
    struct prefix_bench *bench;
    uint64_t sent_ns, first_ns;
    uint32_t prompt_tokens, cached_tokens, output_tokens;
    int32_t output[TURN_IDS];
    uint32_t place; /* of its pool, among those apart */
};

/* ---- requests (prefix_requests.c) ---- */

/* A private pool of the bench's model, to be asked from now on. */
int prefix_open_pool(struct prefix_bench *bench, const char *device, uint32_t workers, uint32_t store_mib,
                     struct error *err);

/* Ids that every vocabulary has, and that no other `name` begins with. */
void prefix_make_ids(int32_t *ids, size_t n, uint64_t name);

/* Sends a request; `asked` lives until it has ended. */
int prefix_send(struct prefix_bench *bench, struct prefix_asked *asked, const int32_t *ids, size_t n,
                uint32_t max_tokens, struct error *err);

/* Until no more than `open` are under way. */
int prefix_await(struct prefix_bench *bench, uint32_t open, struct error *err);

/* Both. */
int prefix_ask(struct prefix_bench *bench, struct prefix_asked *asked, const int32_t *ids, size_t n,
               uint32_t max_tokens, struct error *err);

/* Valid until it is asked again. */
int prefix_ask_status(struct prefix_bench *bench, const struct quern_status **ret_status, struct error *err);

/* ---- what is printed (prefix_print.c) ---- */

/* A value beside its goal. */
void prefix_print(const struct prefix_options *options, const char *name, const char *what, double value,
                  double goal, bool at_least);

/* Beside ours; nothing that is to be reached. NAN: it was not run. */
void prefix_print_beside(const struct prefix_options *options, const char *name, const char *what,
                         double value);

/* ---- the situations: each prints what it measured ---- */

int measure_again(struct prefix_bench *bench, struct error *err);
int measure_llama_server(struct prefix_bench *bench, struct error *err);
int measure_restart(struct prefix_bench *bench, struct error *err);
int measure_other(struct prefix_bench *bench, struct error *err);
int measure_chat(struct prefix_bench *bench, struct error *err);
int measure_at_once(struct prefix_bench *bench, struct error *err);

/* prefix_tenants.c; the second beside pools between which simpler rules choose. */
int measure_tenants(struct prefix_bench *bench, struct error *err);
int measure_tenants_apart(struct prefix_bench *bench, struct error *err);

#endif
