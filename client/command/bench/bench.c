/* SPDX-License-Identifier: MIT */
/* What benchmarks share.
 *
 * Memory bandwidth is measured in the same run as what is compared with it: on a shared machine yesterday's
 * figure means little. Threads read disjoint slices of one buffer; each repetition is timed from a barrier to
 * the last thread's end. */

#include "client/command/bench/bench.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/command/terminal/interrupt.h"
#include "client/command/terminal/progress.h"
#include "common/clock.h"
#include "common/program/program.h"
#include "common/system/topology.h"
#include "model/convert/synth.h"
#include "model/model.h"

#define BUFFER_BYTES ((size_t)512 << 20)
#define REPETITIONS  7

struct reader {
    pthread_t thread;
    pthread_barrier_t *barrier;
    const uint64_t *slice;
    size_t n_words;
    uint64_t sum; /* so that reading is not optimized away */
};

int bench_compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct spread spread_of(double *values, uint32_t n)
{
    qsort(values, n, sizeof *values, bench_compare_doubles);
    double median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
    return (struct spread){values[0], median, values[n - 1]};
}

int bench_open_model(const char *path, const char *device, struct model **ret_model,
                     struct backend_choice *ret_choice, struct error *err)
{
    struct model *model;
    int r = model_open(path, true, &model, err);
    if (r < 0)
        return r;
    r = backend_choose(device, model, ret_choice, err);
    if (r < 0) {
        model_free(model);
        return r;
    }
    if (ret_choice->note.text[0])
        program_error("%s", ret_choice->note.text);
    *ret_model = model;
    return 0;
}

int bench_open_engine(struct engine_config *config, struct backend_choice *choice, engine_sink *sink,
                      void *sink_arg, struct engine **ret_engine, struct error *err)
{
    struct progress progress;
    config->backend = choice->ops;
    config->backend_config.loaded = progress_loaded;
    config->backend_config.loaded_arg = &progress;
    progress_start(&progress);
    int r = engine_new(config, sink, sink_arg, ret_engine, err);
    progress_end(&progress);
    if (r < 0 && backend_fall_back(choice, err)) {
        program_error("%s", choice->note.text);
        config->backend = choice->ops;
        r = engine_new(config, sink, sink_arg, ret_engine, err);
        progress_end(&progress);
    }
    return r;
}

static uint64_t sum_slice(const uint64_t *words, size_t n)
{
    uint64_t sums[8] = {0}; /* independent, so that additions do not hold up the loads */
    for (size_t i = 0; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++)
            sums[j] += words[i + (size_t)j];
    uint64_t sum = 0;
    for (int j = 0; j < 8; j++)
        sum += sums[j];
    return sum;
}

static void *reader_main(void *arg)
{
    struct reader *reader = arg;
    for (int i = 0; i < REPETITIONS; i++) {
        pthread_barrier_wait(reader->barrier);
        reader->sum += sum_slice(reader->slice, reader->n_words);
        pthread_barrier_wait(reader->barrier);
    }
    return NULL;
}

static int measure(struct reader *readers, uint32_t n, const void *buffer, double *ret_seconds)
{
    pthread_barrier_t barrier;
    int r = pthread_barrier_init(&barrier, NULL, n + 1);
    if (r)
        return -r;
    size_t words = BUFFER_BYTES / sizeof(uint64_t) / n;
    for (uint32_t i = 0; i < n; i++) {
        readers[i] = (struct reader){
            .barrier = &barrier, .slice = (const uint64_t *)buffer + i * words, .n_words = words};
        /* A thread that cannot be made would leave the others at the barrier for ever: this is a command, and
         * its end takes them along. */
        r = pthread_create(&readers[i].thread, NULL, reader_main, &readers[i]);
        if (r)
            return -r;
    }
    for (int i = 0; i < REPETITIONS; i++) {
        pthread_barrier_wait(&barrier);
        uint64_t start = clock_ns();
        pthread_barrier_wait(&barrier);
        ret_seconds[i] = (double)(clock_ns() - start) / (double)CLOCK_NS_PER_S;
    }
    for (uint32_t i = 0; i < n; i++)
        pthread_join(readers[i].thread, NULL);
    pthread_barrier_destroy(&barrier);
    return 0;
}

int bench_read_bandwidth(uint32_t n_threads, struct spread *ret_bytes_per_second, struct error *err)
{
    uint32_t n = n_threads ? n_threads : topology_threads_here();
    struct reader *readers = calloc(n, sizeof *readers);
    void *buffer = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!readers || buffer == MAP_FAILED) {
        free(readers);
        return error_set(err, -ENOMEM, "not enough memory to measure bandwidth");
    }
    madvise(buffer, BUFFER_BYTES, MADV_HUGEPAGE);
    memset(buffer, 1, BUFFER_BYTES);
    double seconds[REPETITIONS], rates[REPETITIONS];
    int r = measure(readers, n, buffer, seconds);
    for (int i = 0; i < REPETITIONS && r == 0; i++)
        rates[i] = (double)BUFFER_BYTES / seconds[i];
    munmap(buffer, BUFFER_BYTES);
    free(readers);
    if (r < 0)
        return error_set(err, r, "threads to measure bandwidth: %s", strerror(-r));
    *ret_bytes_per_second = spread_of(rates, REPETITIONS);
    return 0;
}

/* Into a temporary file; on failure there is none, and the path is empty. */
static int make_model(const char *shape, char ret_path[PATH_MAX], struct error *err)
{
    const char *folder = getenv("TMPDIR");
    snprintf(ret_path, PATH_MAX, "%s/quern-bench-XXXXXX", folder && *folder ? folder : "/tmp");
    int fd = mkstemp(ret_path), r = 0;
    if (fd < 0)
        r = error_set(err, -errno, "%s: %s", ret_path, strerror(errno));
    else
        close(fd);
    if (r == 0)
        r = synth_write(synth_shape_by_name(shape), mixture_by_name("F32"), 1, ret_path, err);
    if (r < 0 && fd >= 0)
        unlink(ret_path);
    if (r < 0)
        ret_path[0] = 0;
    return r;
}

int bench_with_model(const char *model, const char *shape, bench_measure *run, void *arg)
{
    struct error err = {0};
    char path[PATH_MAX] = "";
    interrupt_catch();
    int r = model ? 0 : make_model(shape, path, &err);
    if (r == 0)
        r = run(arg, model ? model : path, &err);
    if (path[0])
        unlink(path);
    return r < 0 ? verb_fail(r, &err) : EXIT_SUCCESS;
}
