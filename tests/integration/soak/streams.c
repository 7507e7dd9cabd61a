/* SPDX-License-Identifier: MIT */
/* One client in this process reads all streams. After a kill it looks for the longest time that each stream
 * was silent, be it between two ids or from the kill to the first one: frames that were under way do not make
 * it look better. An answer that ends is asked for anew; its next first id is no end of a silence. */

#include "tests/integration/soak/streams.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <quern.h>
#include "common/clock.h"
#include "tests/integration/support/pool.h"

#define WATCH_NS  (3 * CLOCK_NS_PER_S)  /* from a kill on */
#define SETTLE_NS (2 * CLOCK_NS_PER_S)  /* for the process to be there again */
#define START_NS  (60 * CLOCK_NS_PER_S) /* for the first ids */
#define TOKENS    1000                  /* of one answer: what another worker has to read again is no more */

struct stream {
    struct quern *client;
    bool begun;
    uint64_t last_ns;    /* when its last id came */
    uint64_t silence_ns; /* the longest since the kill */
    bool came;           /* an id since then */
};

static struct streams {
    struct stream items[SOAK_MOST_STREAMS];
    int n;
    uint64_t killed_ns; /* 0: nothing is watched */
    bool failed;
    bool too_long; /* a silence was longer than the goal */
} all;

static void send(struct stream *stream);

static void note(struct stream *stream, uint64_t now)
{
    uint64_t from = stream->last_ns > all.killed_ns ? stream->last_ns : all.killed_ns;
    if (all.killed_ns != 0 && stream->begun && now - from > stream->silence_ns)
        stream->silence_ns = now - from;
    stream->last_ns = now;
}

static void on_output(void *arg, const struct quern_output *output)
{
    struct stream *stream = arg;
    if (output->n_ids > 0) {
        note(stream, clock_ns());
        stream->begun = stream->came = true;
    }
    if (!output->end)
        return;
    stream->begun = false;
    if (output->end->reason == QUERN_ERROR) {
        fprintf(stderr, "a stream ended: %s: %s\n", output->end->error, output->end->text);
        all.failed = true;
    } else {
        send(stream);
    }
}

static void send(struct stream *stream)
{
    struct quern_request request;
    quern_request_init(&request);
    request.text = "on and on";
    request.max_tokens = TOKENS;
    request.temperature = 0;
    all.failed |= quern_generate(stream->client, &request, on_output, stream, NULL, NULL) != 0;
}

static void read_for(struct quern *client, uint64_t ns)
{
    for (uint64_t until = clock_ns() + ns; clock_ns() < until && !all.failed;)
        all.failed |= quern_dispatch(client, 10, NULL) < 0;
}

static bool all_came(void)
{
    for (int i = 0; i < all.n; i++)
        if (!all.items[i].came)
            return false;
    return true;
}

static int by_size(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* The silences behind one kill, appended to ret_ns. */
static void watch(struct quern *client, pid_t pid, uint64_t *ret_ns)
{
    for (int i = 0; i < all.n; i++)
        all.items[i].silence_ns = all.items[i].came = 0;
    all.killed_ns = clock_ns();
    kill(pid, SIGKILL);
    read_for(client, WATCH_NS);
    for (int i = 0; i < all.n; i++) { /* one that is silent still has been for so long, at least */
        if (all.items[i].begun)
            note(&all.items[i], clock_ns());
        ret_ns[i] = all.items[i].silence_ns;
    }
    all.killed_ns = 0;
    read_for(client, SETTLE_NS);
    all.failed |= !all_came();
}

static const uint64_t goals_ns[2][2] = {
    {1 * CLOCK_NS_PER_S, 1 * CLOCK_NS_PER_S},
    {300 * CLOCK_NS_PER_MS, 1 * CLOCK_NS_PER_S}}; /* of a broker: p50, p99 */

/* The silences, sorted. */
static void judge(const uint64_t *silences, size_t n, bool broker)
{
    uint64_t p50 = silences[n / 2], p99 = silences[n - 1 - n / 100];
    printf("%d streams, %s killed: next id at the client p50 %.0f ms, p99 %.0f ms, most %.0f ms\n", all.n,
           broker ? "broker" : "worker", (double)p50 / 1e6, (double)p99 / 1e6, (double)silences[n - 1] / 1e6);
    if (getenv("QUERN_TEST_SCALE") || (p50 <= goals_ns[broker][0] && p99 <= goals_ns[broker][1]))
        return;
    fprintf(stderr, "the goal is p50 %.0f ms, p99 %.0f ms\n", (double)goals_ns[broker][0] / 1e6,
            (double)goals_ns[broker][1] / 1e6);
    all.too_long = true;
}

static void kill_and_tell(struct quern *client, const struct pool *pool, int workers, int kills, bool broker)
{
    uint64_t *silences = calloc((size_t)(kills * all.n), sizeof *silences);
    size_t n = 0;
    if (!silences)
        abort();
    for (int k = 0; k < kills && !all.failed; k++) {
        pid_t pids[64], pid = pool_broker_pid(pool);
        pool_worker_pids(pool, pids, workers);
        if (!broker)
            pid = pids[k % workers];
        if (pid <= 0)
            continue;
        watch(client, pid, silences + n);
        n += (size_t)all.n;
    }
    qsort(silences, n, sizeof *silences, by_size);
    if (n > 0)
        judge(silences, n, broker);
    fflush(stdout);
    free(silences);
}

bool soak_streams(int streams, int workers, int kills)
{
    char count[16], slots[16];
    struct pool pool = {0};
    struct quern *client = NULL;
    snprintf(count, sizeof count, "%d", workers);
    snprintf(slots, sizeof slots, "%d", streams); /* one worker may have to take all of them */
    pool_start(&pool, tiny_model(), "--workers", count, "--ctx", "2048", "--slots", slots, NULL);
    all = (struct streams){.n = streams};
    all.failed = quern_connect(pool.frontend, 30000, &client, NULL) != 0;
    for (int i = 0; i < streams && !all.failed; i++) {
        all.items[i].client = client;
        send(&all.items[i]);
    }
    for (uint64_t until = clock_ns() + START_NS; !all.failed && !all_came() && clock_ns() < until;)
        all.failed |= quern_dispatch(client, 10, NULL) < 0;
    all.failed |= !all_came();
    if (!all.failed) {
        kill_and_tell(client, &pool, workers, kills, true);
        kill_and_tell(client, &pool, workers, kills, false);
    }
    if (all.failed)
        fprintf(stderr, "the pool's log:\n%s", pool_log(&pool));
    quern_free(client);
    pool_forget(&pool);
    return !all.failed && !all.too_long;
}
