/* SPDX-License-Identifier: MIT */
/* The tenants of quern bench prefix. */

#include "client/command/bench/prefix.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/hash.h"

#define TENANTS_OWN 80 /* ids of each tenant's request that no other has */

/* The k-th tenant has a share of 1/k. */
static uint32_t tenant_of(uint64_t request)
{
    double sum = 0, at = (double)(hash64(&request, sizeof request, 3) >> 11) / (double)(1ull << 53);
    for (uint32_t k = 1; k <= TENANTS; k++)
        sum += 1.0 / k;
    for (uint32_t k = 1; k < TENANTS; k++)
        if ((at -= 1.0 / k / sum) < 0)
            return k - 1;
    return TENANTS - 1;
}

/* Which of the pools apart gets the request. */
static void choose(struct prefix_bench *bench, uint32_t request)
{
    uint32_t place = request % WORKERS;
    if (bench->policy == ITS_OWN)
        return;
    if (bench->policy == LEAST_OPEN)
        for (uint32_t i = 0; i < WORKERS; i++)
            place = bench->open_apart[i] < bench->open_apart[place] ? i : place;
    bench->pool = bench->apart[place];
}

static int ask_as_tenants(struct prefix_bench *bench, struct prefix_asked *asked, double *ret_found,
                          struct error *err)
{
    const struct prefix_options *options = bench->options;
    size_t n = options->ids + TENANTS_OWN;
    int32_t *ids = calloc(n, sizeof *ids);
    bool seen[TENANTS] = {false};
    uint64_t found = 0, could = 0;
    int r = ids ? 0 : error_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; r == 0 && i < options->requests; i++) {
        uint32_t tenant = tenant_of(i);
        prefix_make_ids(ids, options->ids, 3000 + tenant);
        prefix_make_ids(ids + options->ids, TENANTS_OWN, 4000 + i);
        choose(bench, i);
        could += seen[tenant] ? options->ids / BLOCK * BLOCK : 0;
        seen[tenant] = true;
        r = prefix_send(bench, &asked[i], ids, n, 16, err);
        if (r == 0)
            r = prefix_await(bench, AT_ONCE - 1, err);
    }
    if (r == 0)
        r = prefix_await(bench, 0, err);
    for (uint32_t i = 0; r == 0 && i < options->requests; i++)
        found += asked[i].cached_tokens;
    free(ids);
    *ret_found = could > 0 ? (double)found / (double)could : 1;
    return r;
}

/* By the workers' own count, which comes with their next report. */
static int ask_for_work(struct prefix_bench *bench, double *ret_imbalance, struct error *err)
{
    const struct quern_status *status;
    uint64_t most = 0, sum = 0, tokens = 0, start = clock_ns();
    do {
        int r = prefix_ask_status(bench, &status, err);
        if (r < 0)
            return r;
        most = sum = tokens = 0;
        for (size_t i = 0; i < status->n_workers; i++) {
            uint64_t work = status->workers[i].prefill_tokens + status->workers[i].tokens;
            most = work > most ? work : most;
            sum += work;
            tokens += status->workers[i].tokens;
        }
    } while (tokens < status->tokens && clock_ns() - start < STALL_NS && usleep(10000) == 0);
    *ret_imbalance = sum > 0 ? (double)most * (double)status->n_workers / (double)sum : 1;
    return 0;
}

int measure_tenants(struct prefix_bench *bench, struct error *err)
{
    struct prefix_asked *asked = calloc(bench->options->requests, sizeof *asked);
    double found = 0, imbalance = 0;
    if (!asked)
        return error_set(err, -ENOMEM, "out of memory");
    int r = ask_as_tenants(bench, asked, &found, err);
    if (r == 0)
        r = ask_for_work(bench, &imbalance, err);
    free(asked);
    if (r == 0) {
        prefix_print(bench->options, "tenants", "prompt tokens found / found with one shared cache", found,
                     0.95, true);
        prefix_print(bench->options, "tenants", "work of the busiest of 4 workers / the mean", imbalance, 1.3,
                     false);
    }
    return r;
}

static int open_apart(struct prefix_bench *bench, struct error *err)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < WORKERS; i++) {
        r = prefix_open_pool(bench, "null", 1, 0, err);
        bench->apart[i] = r == 0 ? bench->pool : NULL;
    }
    return r;
}

/* The same requests to four pools of one worker, between which a simpler rule chooses. */
static int measure_apart(struct prefix_bench *bench, enum policy policy, const char *what, struct error *err)
{
    struct prefix_asked *asked = calloc(bench->options->requests, sizeof *asked);
    double found = 0;
    int r = asked ? open_apart(bench, err) : error_set(err, -ENOMEM, "out of memory");
    bench->policy = policy;
    if (r == 0)
        r = ask_as_tenants(bench, asked, &found, err);
    bench->policy = ITS_OWN;
    for (uint32_t i = 0; i < WORKERS; i++)
        bench->apart[i] = pool_close(bench->apart[i]);
    bench->pool = NULL;
    free(asked);
    if (r == 0)
        prefix_print_beside(bench->options, "tenants", what, found);
    return r;
}

int measure_tenants_apart(struct prefix_bench *bench, struct error *err)
{
    int r =
        measure_apart(bench, LEAST_OPEN, "found, with routing to the worker with the fewest requests", err);
    return r == 0 ? measure_apart(bench, IN_TURN, "found, with round-robin routing", err) : r;
}
