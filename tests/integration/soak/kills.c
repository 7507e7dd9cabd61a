/* SPDX-License-Identifier: MIT */
/* Kills: workers that read and write the prefix store and the packed weights are killed at random moments.
 *
 *   kills [--kills N] [--workers N] [--seed N]
 *
 * Pools, one after the other, of real workers with few KV blocks and a store that holds a part of what is
 * asked for, so that prefixes are written to it and brought from it all the time. A client asks, and compares
 * every id with what was answered once without any cache. Meanwhile workers are killed (SIGKILL): while they
 * serve; as soon as they have been started, so while they read and pack the model; and all at once, so that
 * the weights are gone and whoever comes first packs them again. Each place of a pool is killed a few times
 * only: a supervisor lets those wait who die often.
 *
 * Nothing may be answered otherwise, and nothing may hang. When a pool has been left alone again, its workers
 * have one segment of weights together, every place of the store can be written and read, though whoever had
 * claimed it is dead; and when it has ended, nobody has a segment of it open or mapped. Exits 1 otherwise. */

#include <argp.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <quern.h>
#include "common/clock.h"
#include "common/hash.h"
#include "tests/integration/support/pool.h"
#include "engine/cache/prefix_store.h"

enum {
    KINDS = 60,
    FAMILIES = 6,
    AT_ONCE = 12,
    MOST_PROMPT = 200,
    MOST_IDS = 12,
    MOST_WORKERS = 16,
    DEATHS = 4, /* of a place, in one pool: five that never were ready would be a crash loop */
    MOST_SEGMENTS = 1 << 14,
    PATIENCE_S = 120,
    LEFT_MS = 120000 /* until neighbours have looked */
};

struct options {
    int kills, workers;
    unsigned seed;
};

struct answer {
    uint32_t n;
    int32_t ids[MOST_IDS];
};

struct job {
    int kind;
    bool busy, learns;
    uint64_t since_ns;
    struct answer answer;
};

static struct answer right[KINDS];
static struct pool pool;
static long n_answered, n_moved_out, n_ids;

/* Segments of memory that processes of our pools had. */
static struct {
    ino_t all[MOST_SEGMENTS];
    int n;
} segments;

static void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void fail(const char *format, ...)
{
    va_list args;
    fputs("kills: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\nthe pool's log:\n%s", pool.rundir[0] ? pool_log(&pool) : "");
    pool_forget(&pool);
    exit(EXIT_FAILURE);
}

static void nap_ms(int ms)
{
    usleep((useconds_t)ms * 1000);
}

/* ---- requests ---- */

/* Long beginnings that a few have in common, and an end of each's own. */
static struct quern_request request_of(int kind, int32_t ids[MOST_PROMPT])
{
    struct quern_request request;
    const uint64_t family = (uint64_t)kind % FAMILIES, same = 60 + family * 16;
    quern_request_init(&request);
    request.ids = ids;
    request.n_ids = same + 1 + (size_t)kind * 7 % 40;
    for (uint64_t i = 0; i < request.n_ids; i++)
        ids[i] = (int32_t)(3 + hash64(&i, sizeof i, i < same ? family : 1000 + (uint64_t)kind) % 256);
    request.max_tokens = 1 + (uint32_t)kind % MOST_IDS;
    request.temperature = kind % 2 ? 1 : 0;
    request.has_seed = true;
    request.seed = (uint64_t)kind + 1;
    return request;
}

static void on_output(void *arg, const struct quern_output *output)
{
    struct job *job = arg;
    struct answer *answer = &job->answer;
    const struct answer *expected = &right[job->kind];
    for (size_t i = 0; i < output->n_ids; i++) {
        if (answer->n == MOST_IDS || output->index + i != answer->n)
            fail("request %d: an id too many, or out of order", job->kind);
        if (!job->learns && (answer->n >= expected->n || output->ids[i] != expected->ids[answer->n]))
            fail("request %d: id %u is another", job->kind, answer->n);
        answer->ids[answer->n++] = output->ids[i];
    }
    const struct quern_end *end = output->end;
    if (!end)
        return;
    bool promised = end->reason == QUERN_ERROR && strcmp(end->error, "worker_lost") == 0 &&
                    strstr(end->text, "2 workers running this request had died before");
    if (end->reason == QUERN_ERROR && !promised)
        fail("request %d: %s: %s", job->kind, end->error, end->text);
    if (!promised && !job->learns && answer->n != expected->n)
        fail("request %d: %u of %u ids", job->kind, answer->n, expected->n);
    if (job->learns)
        right[job->kind] = *answer;
    n_moved_out += promised;
    n_answered++;
    n_ids += answer->n;
    job->busy = false;
}

static void send(struct quern *client, struct job *job, int kind, bool learns)
{
    int32_t ids[MOST_PROMPT];
    struct quern_request request = request_of(kind, ids);
    struct quern_error err = {0};
    request.cache_prompt = !learns;
    *job = (struct job){.kind = kind, .busy = true, .learns = learns, .since_ns = clock_ns()};
    if (quern_generate(client, &request, on_output, job, NULL, &err) != 0)
        fail("generate: %s", err.text);
}

static void dispatch(struct quern *client, struct job *jobs, int n, int ms)
{
    struct quern_error err = {0};
    if (quern_dispatch(client, ms, &err) < 0)
        fail("dispatch: %s", err.text);
    for (int i = 0; i < n; i++)
        if (jobs[i].busy && clock_ns() - jobs[i].since_ns > PATIENCE_S * CLOCK_NS_PER_S)
            fail("request %d has not ended for %d s", jobs[i].kind, PATIENCE_S);
}

static bool any_busy(const struct job *jobs, int n)
{
    for (int i = 0; i < n; i++)
        if (jobs[i].busy)
            return true;
    return false;
}

static void learn(struct quern *client)
{
    static struct job jobs[KINDS];
    for (int i = 0; i < KINDS; i++)
        send(client, &jobs[i], i, true);
    while (any_busy(jobs, KINDS))
        dispatch(client, jobs, KINDS, 100);
}

/* ---- segments ---- */

/* Calls for each memfd of ours that a process has open; `link` is its place in /proc. */
static void each_segment(pid_t pid, void (*call)(const char *link, const struct stat *st, bool weights))
{
    char path[64], link[400], target[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        snprintf(link, sizeof link, "%s/%s", path, entry->d_name);
        ssize_t n = readlink(link, target, sizeof target - 1);
        target[n > 0 ? n : 0] = 0;
        bool weights = strncmp(target, "/memfd:quern-weights", 20) == 0;
        if ((weights || strncmp(target, "/memfd:quern-prefixes", 21) == 0) && stat(link, &st) == 0)
            call(link, &st, weights);
    }
    if (dir)
        closedir(dir);
}

static bool is_ours(ino_t inode)
{
    for (int i = 0; i < segments.n; i++)
        if (segments.all[i] == inode)
            return true;
    return false;
}

static struct {
    ino_t inode;
    bool found;
} sought;

static void compare(const char *link, const struct stat *st, bool weights)
{
    sought.found |= st->st_ino == sought.inode;
}

/* The parent of a process; 0: it is gone. */
static pid_t parent_of(pid_t pid)
{
    char path[64], line[512];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file && fgets(line, sizeof line, file) && strrchr(line, ')'))
        sscanf(strrchr(line, ')') + 1, " %*c %d", &parent);
    if (file)
        fclose(file);
    return (pid_t)parent;
}

static bool descends_from_us(pid_t pid)
{
    while (pid > 1 && pid != getpid())
        pid = parent_of(pid);
    return pid == getpid();
}

/* Whether a process that is not of our pools has it. A worker of ours that loads opens every segment that
 * there is, to see whether it is of its model: another pool's too, if one runs. */
static bool is_foreign(ino_t inode)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    sought.inode = inode;
    sought.found = false;
    while (proc && !sought.found && (entry = readdir(proc))) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid > 0 && !descends_from_us(pid))
            each_segment(pid, compare);
    }
    if (proc)
        closedir(proc);
    return sought.found;
}

static void remember(const char *link, const struct stat *st, bool weights)
{
    if (is_ours(st->st_ino) || is_foreign(st->st_ino))
        return;
    if (segments.n == MOST_SEGMENTS)
        fail("more than %d segments", MOST_SEGMENTS);
    segments.all[segments.n++] = st->st_ino;
}

static char held[512]; /* who has one of ours, and where; "": nobody */

static void note_ours(const char *link, const struct stat *st, bool weights)
{
    if (is_ours(st->st_ino))
        snprintf(held, sizeof held, "%s is", link);
}

/* Whoever has mapped one without having it open. */
static void note_mapped(pid_t pid)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        unsigned long long inode;
        if (strstr(line, "/memfd:quern-") && sscanf(line, "%*s %*s %*s %*s %llu", &inode) == 1 &&
            is_ours((ino_t)inode))
            snprintf(held, sizeof held, "process %d has mapped", (int)pid);
    }
    if (file)
        fclose(file);
}

static void look_at_all(void)
{
    held[0] = 0;
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc && (entry = readdir(proc))) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid <= 0)
            continue;
        each_segment(pid, note_ours);
        note_mapped(pid);
    }
    if (proc)
        closedir(proc);
}

/* Another pool's worker that loads just now has every segment open, to see whether it is of its model. */
static void check_nothing_is_left(void)
{
    for (int round = 0; round < LEFT_MS / 50; round++, usleep(50000)) {
        look_at_all();
        if (!held[0])
            return;
    }
    fail("%s a segment of a pool that has ended", held);
}

static struct {
    ino_t weights;
    int n_weights; /* different ones */
    char store[400];
} seen;

static void look(const char *link, const struct stat *st, bool weights)
{
    remember(link, st, weights);
    if (weights && st->st_ino != seen.weights) {
        seen.weights = st->st_ino;
        seen.n_weights++;
    } else if (!weights) {
        snprintf(seen.store, sizeof seen.store, "%s", link);
    }
}

/* All workers of the pool. How many there are. */
static int look_at_workers(int n)
{
    pid_t pids[MOST_WORKERS];
    int found = pool_worker_pids(&pool, pids, n);
    seen.weights = 0;
    seen.n_weights = 0;
    for (int i = 0; i < n; i++)
        if (pids[i] > 0)
            each_segment(pids[i], look);
    return found;
}

/* ---- the store ---- */

/* Block i of those that nobody else asks for, and its bytes. */
static struct prefix_place make_block(uint32_t i, int32_t ids[32], uint8_t *bytes, size_t size)
{
    for (int j = 0; j < 32; j++)
        ids[j] = (int32_t)i;
    memset(bytes, (int)(i % 251), size);
    return (struct prefix_place){.ids = ids, .use = UINT32_MAX + (uint64_t)i}; /* the latest of all */
}

/* Fills every set many times over; then each place has one of our blocks, if it can be used. How many do. */
static uint32_t fill_store(struct prefix_store *store, size_t size)
{
    const uint32_t n = prefix_store_room(store) * 12;
    uint8_t *bytes = malloc(size), *got = malloc(size);
    uint32_t found = 0;
    int32_t ids[32];
    for (uint32_t i = 0; i < n; i++) {
        const struct prefix_place place = make_block(i, ids, bytes, size);
        prefix_store_put(store, &place, bytes);
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct prefix_place place = make_block(i, ids, bytes, size);
        if (prefix_store_get(store, &place, got) == 0)
            continue;
        found++;
        if (memcmp(got, bytes, size) != 0)
            fail("the store gives other bytes");
    }
    free(bytes);
    free(got);
    return found;
}

/* Claims of the dead are given up after a while, and workers may still copy what they have just computed. */
static void check_store(void)
{
    struct prefix_store_kind kind = {.model = "kills", .layout = 1};
    struct prefix_store *store;
    struct error err = {0};
    uint64_t shape = 0, until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    each_segment(pool.broker, look);
    int fd = open(seen.store, O_RDWR | O_CLOEXEC);
    if (fd < 0 || pread(fd, &shape, sizeof shape, 0) != sizeof shape) /* its lower half: bytes of a block */
        fail("the store cannot be read");
    kind.block_bytes = (size_t)(shape & UINT32_MAX);
    if (prefix_store_open(fd, &kind, &store, &err) < 0)
        fail("%s", err.text);
    for (;;) {
        const uint32_t found = fill_store(store, kind.block_bytes), room = prefix_store_room(store);
        if (found == room)
            break;
        if (clock_ns() > until)
            fail("of %u places of the store %u can be used", room, found);
        nap_ms(200);
    }
    prefix_store_close(store);
    close(fd);
}

/* ---- one pool ---- */

struct places {
    pid_t seen[MOST_WORKERS]; /* last */
    int deaths[MOST_WORKERS];
};

static bool kill_worker(struct places *places, int i, pid_t pid)
{
    if (pid <= 0 || places->deaths[i] == DEATHS || kill(pid, SIGKILL) < 0)
        return false;
    places->deaths[i]++;
    return true;
}

/* Now and then everybody, else somebody; of those who were just started, half at once. How many died. */
static int disturb(struct places *places, int n)
{
    pid_t pids[MOST_WORKERS];
    int killed = 0, who = rand() % n;
    bool all = rand() % 12 == 0, somebody = rand() % 4 == 0;
    pool_worker_pids(&pool, pids, n);
    for (int i = 0; i < n; i++) {
        if (pids[i] > 0)
            each_segment(pids[i], remember);
        bool young = pids[i] > 0 && pids[i] != places->seen[i] && places->seen[i] != 0;
        /* Not thrice before it was ready: others may be slow. */
        bool early = young && places->deaths[i] % 2 && rand() % 2;
        places->seen[i] = pids[i] > 0 ? pids[i] : places->seen[i];
        if (early)
            nap_ms(rand() % 40);
        if (early || all || (somebody && i == who))
            killed += kill_worker(places, i, pids[i]);
    }
    return killed;
}

static bool all_dead_enough(const struct places *places, int n)
{
    for (int i = 0; i < n; i++)
        if (places->deaths[i] < DEATHS)
            return false;
    return true;
}

/* Until all workers serve again and have one segment of weights: others of them were packed meanwhile. */
static void await_rest(struct quern *client, int n)
{
    const struct quern_status *status;
    uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    for (;;) {
        size_t ready = 0;
        quern_dispatch(client, 20, NULL);
        if (quern_status(client, 60000, &status, NULL) == 0)
            for (size_t i = 0; i < status->n_workers; i++)
                ready += strcmp(status->workers[i].state, "ready") == 0;
        if (ready == (size_t)n && look_at_workers(n) == n && seen.n_weights == 1)
            return;
        if (clock_ns() > until)
            fail("after %d s %zu of %d workers serve, with %d segments of weights", PATIENCE_S, ready, n,
                 seen.n_weights);
    }
}

static struct quern *connect_to_pool(void)
{
    struct quern *client = NULL;
    struct quern_error err = {0};
    if (quern_connect(pool.frontend, PATIENCE_S * 1000, &client, &err) != 0)
        fail("connect: %s", err.text);
    quern_set_patience(client, PATIENCE_S * 1000);
    return client;
}

/* Kills up to `most` workers of one pool. How many it were. */
static int run_pool(const char *model, const struct options *options, int most, uint64_t *ret_restores)
{
    static struct job jobs[AT_ONCE];
    struct places places = {0};
    const struct quern_status *status;
    char workers[16];
    int killed = 0;
    snprintf(workers, sizeof workers, "%d", options->workers);
    pool_start(&pool, model, "--workers", workers, "--device", "cpu", "--ctx", "512", "--slots", "3",
               "--kv-blocks", "24", "--prefix-store", "2", "--threads", "1", NULL);
    struct quern *client = connect_to_pool();
    each_segment(pool.broker, remember);
    if (right[0].n == 0)
        learn(client);
    while (killed < most && !all_dead_enough(&places, options->workers)) {
        for (int i = 0; i < AT_ONCE; i++)
            if (!jobs[i].busy)
                send(client, &jobs[i], rand() % KINDS, false);
        dispatch(client, jobs, AT_ONCE, rand() % 30);
        killed += disturb(&places, options->workers);
    }
    while (any_busy(jobs, AT_ONCE))
        dispatch(client, jobs, AT_ONCE, 100);
    await_rest(client, options->workers);
    if (quern_status(client, 60000, &status, NULL) == 0)
        for (size_t i = 0; i < status->n_workers; i++)
            *ret_restores += status->workers[i].restores;
    check_store();
    quern_free(client);
    int end = pool_stop(&pool, SIGTERM, 60);
    if (end != 0)
        fail("the pool ended with %d", end);
    pool_forget(&pool);
    check_nothing_is_left();
    return killed;
}

/* ---- the whole ---- */

/* A model that no other pool of this machine has, so that nobody else has its weights. */
static void copy_model(char path[])
{
    char bytes[4096];
    size_t n;
    int fd = mkstemp(path);
    FILE *from = fopen(tiny_model(), "re"), *to = fd >= 0 ? fdopen(fd, "w") : NULL;
    const pid_t self = getpid();
    if (!from || !to)
        fail("%s cannot be copied", tiny_model());
    while ((n = fread(bytes, 1, sizeof bytes, from)) > 0)
        fwrite(bytes, 1, n, to);
    fclose(from);
    /* Some of the last quants. */
    if (fseek(to, -8, SEEK_END) != 0 || fwrite(&self, sizeof self, 1, to) != 1 || fclose(to) != 0)
        fail("%s cannot be written", path);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case 'k':
        options->kills = atoi(arg);
        break;
    case 'w':
        options->workers = atoi(arg);
        break;
    case 's':
        options->seed = (unsigned)atoi(arg);
        break;
    case ARGP_KEY_END:
        if (options->kills < 1 || options->workers < 2 || options->workers > MOST_WORKERS)
            argp_error(state, "a number is out of range");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp_option table[] = {{"kills", 'k', "N", 0, "How many (100)", 0},
                                               {"workers", 'w', "N", 0, "Of a pool (6)", 0},
                                               {"seed", 's', "N", 0, "Of what is done to whom (1)", 0},
                                               {0}};
    const struct argp argp = {table, parse, NULL, "Kills workers, and compares what the others answer.",
                              NULL,  NULL,  NULL};
    struct options options = {.kills = 100, .workers = 6, .seed = 1};
    char model[] = "/tmp/quern-kills-XXXXXX";
    uint64_t restores = 0;
    int killed = 0, pools = 0;
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    srand(options.seed);
    copy_model(model);
    while (killed < options.kills) {
        killed += run_pool(model, &options, options.kills - killed, &restores);
        pools++;
    }
    unlink(model);
    printf(
        "%d workers of %d pools killed; %ld requests and %ld ids answered as without caches, %ld moved too "
        "often; at the end %llu blocks had been brought from the store; %d segments, none is left\n",
        killed, pools, n_answered, n_ids, n_moved_out, (unsigned long long)restores, segments.n);
    return EXIT_SUCCESS;
}
