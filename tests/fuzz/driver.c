/* SPDX-License-Identifier: MIT */
/* A small mutation fuzzer without coverage, so that every compiler and CI can hold the parsers to their
 * promises.
 *
 * It runs every seed, every truncation of short seeds, then mutations: a seed, one to eight edits (a byte
 * changed, a bit flipped, a run inserted, removed, copied or repeated, an interesting number written, a piece
 * of another seed spliced in). Each input is an exact allocation of its own, so that a sanitizer sees one
 * byte too many. The random numbers start from $QUERN_FUZZ_SEED or the clock, and are printed: a run can be
 * repeated. When the entry dies, the input is written to fuzz-crash.bin in the working directory. */

#include "tests/fuzz/driver.h"

#include "common/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_INPUT (1u << 20)
#define MAX_SEEDS 4096

struct seed {
    uint8_t *data;
    size_t len;
};

static struct seed seeds[MAX_SEEDS];
static size_t n_seeds;
static uint64_t random_state;
static const uint8_t *running; /* for the crash handler */
static size_t running_len;

void fuzz_add_seed(const void *data, size_t len)
{
    if (n_seeds == MAX_SEEDS || len > MAX_INPUT)
        return;
    uint8_t *copy = malloc(len + 1);
    if (!copy)
        abort();
    memcpy(copy, data, len);
    seeds[n_seeds++] = (struct seed){copy, len};
}

static uint64_t random_next(void)
{
    /* xorshift64*: good enough to pick bytes. */
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545f4914f6cdd1dull;
}

static size_t random_below(size_t n)
{
    return n ? (size_t)(random_next() % n) : 0;
}

static void on_crash(int signal_number)
{
    int fd = open("fuzz-crash.bin", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd >= 0) {
        ssize_t n = write(fd, running, running_len);
        (void)n;
        close(fd);
    }
    static const char text[] = "the input is in fuzz-crash.bin\n";
    ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
    (void)n;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void run(const uint8_t *data, size_t len)
{
    uint8_t *exact = malloc(len ? len : 1);
    if (!exact)
        abort();
    memcpy(exact, data, len);
    running = exact;
    running_len = len;
    LLVMFuzzerTestOneInput(exact, len);
    running_len = 0;
    free(exact);
}

static size_t edit_number(uint8_t *data, size_t len)
{
    static const uint64_t numbers[] = {0,         1,          0x7f,       0x80,       0xff,
                                       0x7fff,    0xffff,     0x7fffffff, 0xffffffff, 1ull << 32,
                                       INT64_MAX, UINT64_MAX, 1ull << 53, 0x80000000, 0xfffffff0};
    uint64_t number = numbers[random_below(sizeof numbers / sizeof *numbers)];
    size_t width = (size_t)1 << random_below(4);
    if (len < width)
        return len;
    size_t at = random_below(len - width + 1);
    bool big_endian = random_next() & 1;
    for (size_t i = 0; i < width; i++)
        data[at + i] = (uint8_t)(number >> 8 * (big_endian ? width - 1 - i : i));
    return len;
}

static size_t insert(uint8_t *data, size_t len, const uint8_t *what, size_t n)
{
    if (len + n > MAX_INPUT)
        return len;
    size_t at = random_below(len + 1);
    memmove(data + at + n, data + at, len - at);
    memcpy(data + at, what, n);
    return len + n;
}

static size_t edit(uint8_t *data, size_t len)
{
    uint8_t piece[64];
    size_t n = 1 + random_below(sizeof piece);
    switch (random_below(8)) {
    case 0:
        if (len)
            data[random_below(len)] = (uint8_t)random_next();
        return len;
    case 1:
        if (len)
            data[random_below(len)] ^= (uint8_t)(1u << random_below(8));
        return len;
    case 2:
        return edit_number(data, len);
    case 3: /* random bytes in */
        for (size_t i = 0; i < n; i++)
            piece[i] = (uint8_t)random_next();
        return insert(data, len, piece, random_below(9));
    case 4: { /* a run out */
        size_t at = random_below(len), out = n < len - at ? n : len - at;
        memmove(data + at, data + at + out, len - at - out);
        return len - out;
    }
    case 5: { /* a run again */
        size_t at = random_below(len), again = n < len - at ? n : len - at;
        memcpy(piece, data + at, again);
        return insert(data, len, piece, again);
    }
    case 6: { /* a run of another seed */
        const struct seed *other = &seeds[random_below(n_seeds)];
        size_t at = random_below(other->len), take = n < other->len - at ? n : other->len - at;
        return insert(data, len, other->data + at, take);
    }
    default:
        return random_below(len + 1);
    }
}

static void run_file(const char *path)
{
    static uint8_t data[MAX_INPUT];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        perror(path);
        exit(1);
    }
    size_t len = 0;
    for (ssize_t n; len < sizeof data && (n = read(fd, data + len, sizeof data - len)) > 0;)
        len += (size_t)n;
    close(fd);
    run(data, len);
    fuzz_add_seed(data, len);
}

static uint64_t environment(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : fallback;
}

/* One file for each, named by its number: what libFuzzer begins with. */
static int write_seeds(const char *folder)
{
    char path[4096];
    for (size_t i = 0; i < n_seeds; i++) {
        snprintf(path, sizeof path, "%s/seed-%04zu", folder, i);
        FILE *file = fopen(path, "w");
        if (!file || fwrite(seeds[i].data, 1, seeds[i].len, file) != seeds[i].len || fclose(file) != 0) {
            perror(path);
            return 1;
        }
    }
    printf("%zu seeds\n", n_seeds);
    return 0;
}

int main(int argc, char **argv)
{
    static uint8_t data[MAX_INPUT + 64];
    const char *told = getenv("QUERN_FUZZ_SECONDS");
    uint64_t seconds = environment("QUERN_FUZZ_SECONDS", 5), most = told && *told ? UINT64_MAX : 50000,
             ran = 0;
    uint64_t start = environment("QUERN_FUZZ_SEED", clock_ns()) | 1;
    random_state = start;
    signal(SIGSEGV, on_crash);
    signal(SIGABRT, on_crash);
    signal(SIGFPE, on_crash);
    fuzz_seeds();
    if (getenv("QUERN_FUZZ_SEEDS_TO"))
        return write_seeds(getenv("QUERN_FUZZ_SEEDS_TO"));
    for (int i = 1; i < argc; i++)
        run_file(argv[i]);
    printf("QUERN_FUZZ_SEED=%" PRIu64 ", %zu seeds\n", start, n_seeds);
    fflush(stdout);
    if (n_seeds == 0)
        return 1;
    const uint64_t begun = clock_ns(), deadline = begun + seconds * CLOCK_NS_PER_S;
    for (size_t i = 0; i < n_seeds; i++) {
        run(seeds[i].data, seeds[i].len);
        for (size_t len = 0; len < seeds[i].len && seeds[i].len < 1024; len++, ran++)
            run(seeds[i].data, len);
    }
    for (uint64_t n = 0; n < most && (ran % 64 != 0 || clock_ns() < deadline); n++) {
        const struct seed *seed = &seeds[random_below(n_seeds)];
        size_t len = seed->len;
        memcpy(data, seed->data, len);
        for (size_t edits = 1 + random_below(8); edits > 0; edits--)
            len = edit(data, len);
        run(data, len);
        ran++;
    }
    printf("%" PRIu64 " inputs in %.1f s, none broke a promise\n", ran,
           (double)(clock_ns() - begun) / CLOCK_NS_PER_S);
    for (size_t i = 0; i < n_seeds; i++)
        free(seeds[i].data);
    return 0;
}
