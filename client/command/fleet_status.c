/* SPDX-License-Identifier: MIT */
/* See fleet_status.h. Some pools are asked at once, each by a client of its own, and told before the next
 * ones are: a client has threads. */

#include "client/command/fleet_status.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <quern.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/status_json.h"
#include "common/clock.h"
#include "common/files/member_file.h"
#include "common/utf8.h"

#define AT_ONCE    32
#define PATIENCE_S 2
#define WAIT_MS    50

struct asked {
    char name[MEMBER_FILE_MAX_NAME + 1];
    struct member_file file;
    struct quern *client; /* NULL: it cannot be asked */
    bool sent, over;
    const struct quern_status *status; /* NULL: none came */
    char reason[512];
};

/* ---- asking ---- */

static void on_status(void *arg, const struct quern_answer *answer)
{
    struct asked *pool = arg;
    pool->over = true;
    if (answer->code == 0)
        pool->status = answer->status;
    else
        snprintf(pool->reason, sizeof pool->reason, "%s", answer->text);
}

static void begin(struct asked *pool, const char *folder, const char *client_key)
{
    char path[4096];
    struct error err = {0};
    struct quern_error said = {0};
    snprintf(path, sizeof path, "%s/%s", folder, pool->name);
    int r = member_file_read(path, &pool->file, &err);
    if (r < 0) {
        snprintf(pool->reason, sizeof pool->reason, "%s", err.text);
    } else {
        r = quern_connect_begin(pool->file.connect, pool->file.server_key, client_key, &pool->client, &said);
        if (r < 0)
            snprintf(pool->reason, sizeof pool->reason, "%s", said.text);
    }
    pool->over = r < 0;
}

static void turn(struct asked *pool)
{
    struct quern_error said = {0};
    int r = quern_dispatch(pool->client, 0, &said);
    if (r >= 0 && !pool->sent && quern_is_open(pool->client)) {
        r = quern_ask_status(pool->client, PATIENCE_S * 1000, on_status, pool, &said);
        pool->sent = true;
    }
    if (r >= 0 || pool->over)
        return;
    snprintf(pool->reason, sizeof pool->reason, "%s", said.text);
    pool->over = true;
}

/* Until each has answered or the time is over. */
static void ask(struct asked *pools, size_t n)
{
    const uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    struct quern *waiting[AT_ONCE];
    for (;;) {
        size_t n_waiting = 0;
        for (size_t i = 0; i < n; i++) {
            if (!pools[i].over)
                turn(&pools[i]);
            if (!pools[i].over)
                waiting[n_waiting++] = pools[i].client;
        }
        if (n_waiting == 0 || clock_ns() >= until)
            return;
        quern_wait(waiting, n_waiting, -1, WAIT_MS);
    }
}

/* ---- telling ---- */

struct sums {
    uint32_t workers, ready, slots, kv_free, kv_total;
    double found, computed, rate;
};

static struct sums sums_of(const struct quern_status *status)
{
    struct sums sums = {0};
    for (size_t i = 0; status && i < status->n_workers; i++) {
        const struct quern_worker *worker = &status->workers[i];
        sums.workers++;
        sums.ready += strcmp(worker->state, "ready") == 0;
        sums.slots += worker->slots;
        sums.kv_free += worker->kv_free;
        sums.kv_total += worker->kv_total;
        sums.found += (double)worker->cache_hits;
        sums.computed += (double)worker->prefill_tokens;
        sums.rate += worker->tokens_per_s;
    }
    return sums;
}

static const char *state_of(const struct asked *pool, const struct sums *sums)
{
    if (!pool->file.connect[0])
        return "invalid";
    if (!pool->status)
        return "absent";
    if (pool->status->draining)
        return "draining";
    return sums->ready > 0 ? "ready" : "loading";
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static void print_titles(void)
{
    printf("%-16s  %-8s  %7s  %6s  %7s  %7s  %5s  %8s  %s\n", "POOL", "STATE", "WORKERS", "QUEUED", "RUNNING",
           "KV FREE", "HITS", "TOKENS/S", "ADDRESS");
}

static void print_line(const struct asked *pool, const struct sums *sums)
{
    char reason[sizeof pool->reason];
    printf("%-16s  %-8s", pool->name, state_of(pool, sums));
    if (pool->status)
        printf("  %3u/%-3u  %6u  %7u  %6.0f%%  %4.0f%%  %8.1f  %s\n", sums->ready, sums->workers,
               pool->status->queued, pool->status->running, percent(sums->kv_free, sums->kv_total),
               percent(sums->found, sums->found + sums->computed), sums->rate, pool->file.connect);
    else
        printf("  %7s  %6s  %7s  %7s  %5s  %8s  %s%s%s\n", "-", "-", "-", "-", "-", "-", pool->file.connect,
               pool->file.connect[0] ? ": " : "",
               pool->reason[0] ? utf8_printable(bytes_of_string(pool->reason), sizeof reason, reason)
                               : "no answer");
}

static json_t *json_of(const struct asked *pool, const struct sums *sums)
{
    json_t *json = json_pack("{s:s, s:s, s:s, s:s}", "name", pool->name, "connect", pool->file.connect,
                             "state", state_of(pool, sums), "reason", pool->status ? "" : pool->reason);
    if (pool->status)
        json_object_set_new(json, "status", status_json(pool->status));
    return json;
}

static void tell(const struct asked *pool, json_t *list)
{
    const struct sums sums = sums_of(pool->status);
    if (list)
        json_array_append_new(list, json_of(pool, &sums));
    else
        print_line(pool, &sums);
}

/* ---- the folder ---- */

static int is_member(const struct dirent *entry)
{
    const size_t len = strlen(entry->d_name);
    return member_file_is_name(entry->d_name) &&
           (len < 7 || strcmp(entry->d_name + len - 7, "_secret") != 0) && entry->d_type != DT_DIR;
}

static void ask_some(const char *folder, const char *client_key, struct dirent *const *entries, size_t n,
                     json_t *list)
{
    struct asked *pools = calloc(n, sizeof *pools);
    for (size_t i = 0; pools && i < n; i++) {
        snprintf(pools[i].name, sizeof pools[i].name, "%.*s", MEMBER_FILE_MAX_NAME, entries[i]->d_name);
        begin(&pools[i], folder, client_key);
    }
    if (pools)
        ask(pools, n);
    for (size_t i = 0; pools && i < n; i++) {
        tell(&pools[i], list);
        quern_free(pools[i].client);
    }
    free(pools);
}

int fleet_status(const char *folder, const char *client_key, bool json, struct error *err)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, is_member, alphasort);
    if (n < 0)
        return error_set(err, -errno, "%s: %s", folder, strerror(errno));
    json_t *list = json ? json_array() : NULL;
    if (!json && n > 0)
        print_titles();
    for (int i = 0; i < n; i += AT_ONCE)
        ask_some(folder, client_key, entries + i, (size_t)(n - i < AT_ONCE ? n - i : AT_ONCE), list);
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
    if (json) {
        json_t *all = json_pack("{s:o}", "pools", list);
        json_dumpf(all, stdout, JSON_REAL_PRECISION(6));
        putchar('\n');
        json_decref(all);
    }
    return n > 0 ? 0 : error_set(err, -ENOENT, "%s: no member files", folder);
}
