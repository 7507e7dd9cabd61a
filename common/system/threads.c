/* SPDX-License-Identifier: MIT */
/* The thread team: fork, barrier, claim.
 *
 * Two futex words move everything. `job` counts runs: a member that sees it change runs the posted work.
 * `phase` counts barriers: the last member to arrive sets the counter back and bumps it, which ends all
 * shares too; leaving a run is a barrier as well, which is how the caller joins. A waiter spins briefly,
 * because members of one step arrive within microseconds of each other, and then sleeps, because two pools
 * may share a core and a spinner would then starve the one it waits for. A team with more members than
 * processors always has one to wait for that does not run, so it does not spin. `sleepers` saves the wake-up
 * call when all were still spinning.
 *
 * All shared words are C11 atomics; the futex calls only sleep and wake, they order nothing. */

#include "common/system/threads.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/system/topology.h"

/* Some ten microseconds: longer than members of one step usually differ, shorter than a scheduler's slice. */
#define SPINS 1500

#define MAX_THREADS 1024u

struct member {
    struct threads *threads;
    uint32_t index;
    pthread_t thread;
};

/* How far a member's share of a range is claimed: the number of the next piece, below the number of barriers
 * so far. One that belongs to another number is not begun. */
struct share {
    _Alignas(64) _Atomic uint64_t next;
};

struct threads {
    uint32_t n;
    uint32_t running;   /* members of the present run: n, or the caller alone. Written between runs */
    uint32_t n_started; /* threads running, without the caller */
    uint32_t spins;     /* looks at a word before it sleeps */
    threads_work *work;
    void *arg;
    bool stop;
    bool bound; /* the caller was bound; `before` is its old mask */
    cpu_set_t before;
    struct member *members; /* [n − 1] */
    struct share *shares;   /* [n] */

    /* Apart from the rest, and the claim counter apart from what waiters watch: each on its own line. */
    _Alignas(64) _Atomic uint32_t job;
    _Atomic uint32_t sleepers;
    _Alignas(64) _Atomic uint32_t phase;
    _Alignas(64) _Atomic uint32_t arrived;
    _Alignas(64) _Atomic uint32_t next;
};

static inline void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* yield does nothing on a core of one thread */
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

static void wait_for_change(struct threads *threads, _Atomic uint32_t *word, uint32_t value)
{
    for (uint32_t i = 0; i < threads->spins; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != value)
            return;
        pause_briefly();
    }
    /* Sequentially consistent on both sides: either the waker sees the sleeper, or this sees the new word. */
    atomic_fetch_add(&threads->sleepers, 1);
    while (atomic_load(word) == value)
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
    atomic_fetch_sub(&threads->sleepers, 1);
}

static void change(struct threads *threads, _Atomic uint32_t *word)
{
    atomic_fetch_add(word, 1);
    if (atomic_load(&threads->sleepers) > 0)
        syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void threads_barrier(struct threads *threads)
{
    /* Read before arriving: once all have, the caller may be setting up the next run. */
    uint32_t running = threads->running;
    if (running == 1) {
        atomic_store_explicit(&threads->next, 0, memory_order_relaxed);
        return;
    }
    uint32_t phase = atomic_load_explicit(&threads->phase, memory_order_acquire);
    if (atomic_fetch_add_explicit(&threads->arrived, 1, memory_order_acq_rel) + 1 < running) {
        wait_for_change(threads, &threads->phase, phase);
        return;
    }
    atomic_store_explicit(&threads->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&threads->next, 0, memory_order_relaxed);
    change(threads, &threads->phase);
}

bool threads_claim(struct threads *threads, uint32_t n, uint32_t grain, uint32_t *ret_first,
                   uint32_t *ret_end)
{
    uint32_t first;
    if (threads->running == 1) {
        first = atomic_load_explicit(&threads->next, memory_order_relaxed);
        atomic_store_explicit(&threads->next, first + grain, memory_order_relaxed);
    } else {
        first = atomic_fetch_add_explicit(&threads->next, grain, memory_order_relaxed);
    }
    if (first >= n)
        return false;
    *ret_first = first;
    *ret_end = n - first < grain ? n : first + grain;
    return true;
}

/* Moves the counter on from `*first`. False: another member has done it, and `*first` is where it is now. */
static bool advance(struct threads *threads, uint32_t *first, uint32_t size)
{
    if (threads->running > 1)
        return atomic_compare_exchange_weak_explicit(&threads->next, first, *first + size,
                                                     memory_order_relaxed, memory_order_relaxed);
    atomic_store_explicit(&threads->next, *first + size, memory_order_relaxed);
    return true;
}

bool threads_claim_run(struct threads *threads, uint32_t n, uint32_t grain, uint32_t most,
                       uint32_t *ret_first, uint32_t *ret_end)
{
    uint32_t first = atomic_load_explicit(&threads->next, memory_order_relaxed), size;
    do {
        if (first >= n)
            return false;
        uint32_t times = (n - first) / (4 * threads->running) / grain;
        size = grain * (times < 1 ? 1 : times < most ? times : most);
        size = size < n - first ? size : n - first;
    } while (!advance(threads, &first, size));
    *ret_first = first;
    *ret_end = first + size;
    return true;
}

/* Claims an eighth of a share, which has the pieces begin … end − 1. */
static bool claim_of(struct share *share, uint32_t phase, uint32_t begin, uint32_t end, uint32_t *ret_first,
                     uint32_t *ret_end)
{
    const uint32_t grain = (end - begin + 7) / 8;
    uint64_t next = atomic_load_explicit(&share->next, memory_order_relaxed);
    uint32_t first, to;
    do {
        first = next >> 32 == phase ? (uint32_t)next : begin;
        if (first >= end)
            return false;
        to = end - first < grain ? end : first + grain;
    } while (!atomic_compare_exchange_weak_explicit(&share->next, &next, (uint64_t)phase << 32 | to,
                                                    memory_order_relaxed, memory_order_relaxed));
    *ret_first = first;
    *ret_end = to;
    return true;
}

bool threads_claim_own(struct threads *threads, uint32_t index, uint32_t n, uint32_t *ret_first,
                       uint32_t *ret_end)
{
    const uint32_t running = threads->running;
    if (running == 1 || n / 8 < running)
        return threads_claim(threads, n, 1, ret_first, ret_end);
    const uint32_t phase = atomic_load_explicit(&threads->phase, memory_order_relaxed);
    for (uint32_t i = 0; i < running; i++) {
        const uint64_t member = (index + i) % running;
        if (claim_of(&threads->shares[member], phase, (uint32_t)(n * member / running),
                     (uint32_t)(n * (member + 1) / running), ret_first, ret_end))
            return true;
    }
    return false;
}

void threads_run(struct threads *threads, threads_work *work, void *arg)
{
    threads->running = threads->n;
    if (threads->n > 1) {
        threads->work = work;
        threads->arg = arg;
        change(threads, &threads->job);
    }
    work(arg, 0);
    threads_barrier(threads);
}

void threads_run_alone(struct threads *threads, threads_work *work, void *arg)
{
    threads->running = 1;
    work(arg, 0);
    threads_barrier(threads);
}

static void *member_main(void *arg)
{
    struct member *member = arg;
    struct threads *threads = member->threads;
    for (uint32_t job = 0;; job++) {
        wait_for_change(threads, &threads->job, job);
        if (threads->stop)
            return NULL;
        threads->work(threads->arg, member->index);
        threads_barrier(threads);
    }
}

/* Keeps the calling thread, and those that it starts from now on, to the cores of member i. A thread may do
 * that to itself alone: in a sandbox no other is within reach. */
static int bind_as(const struct threads *threads, uint32_t i, const int *cpus, uint32_t n_cpus)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (n_cpus > threads->n)
        for (uint32_t c = 0; c < n_cpus; c++)
            CPU_SET((size_t)cpus[c], &set);
    else
        CPU_SET((size_t)cpus[i % n_cpus], &set);
    return sched_setaffinity(0, sizeof set, &set) < 0 ? -errno : 0;
}

static int start_member(struct threads *threads, uint32_t i, const int *cpus, uint32_t n_cpus)
{
    struct member *member = &threads->members[i - 1];
    *member = (struct member){.threads = threads, .index = i};
    int r = n_cpus ? bind_as(threads, i, cpus, n_cpus) : 0; /* which it inherits */
    if (r == 0)
        r = -pthread_create(&member->thread, NULL, member_main, member);
    if (r < 0)
        return r;
    threads->n_started++; /* whatever comes of the rest, it has to be joined */
    return n_cpus ? bind_as(threads, 0, cpus, n_cpus) : 0;
}

static int bind_caller(struct threads *threads, const int *cpus, uint32_t n_cpus, struct error *err)
{
    for (uint32_t i = 0; i < n_cpus; i++)
        if (cpus[i] < 0 || cpus[i] >= CPU_SETSIZE)
            return error_set(err, -EINVAL, "no core %d", cpus[i]);
    if (sched_getaffinity(0, sizeof threads->before, &threads->before) < 0)
        return error_set(err, -errno, "sched_getaffinity: %s", strerror(errno));
    int r = bind_as(threads, 0, cpus, n_cpus);
    if (r < 0)
        return error_set(err, r, "core %d: %s", cpus[0], strerror(-r));
    threads->bound = true;
    return 0;
}

static uint32_t spins_of(uint32_t n_threads, uint32_t n_cpus)
{
    cpu_set_t allowed;
    uint32_t n =
        sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? (uint32_t)CPU_COUNT(&allowed) : n_threads;
    n = n_cpus && n_cpus < n ? n_cpus : n;
    return n_threads > n ? 0 : SPINS;
}

int threads_new(uint32_t n_threads, const int *cpus, uint32_t n_cpus, struct threads **ret_threads,
                struct error *err)
{
    if (n_threads == 0) {
        n_threads = n_cpus ? n_cpus : topology_threads_here();
        n_threads = n_threads < MAX_THREADS ? n_threads : MAX_THREADS;
    }
    if (n_threads > MAX_THREADS)
        return error_out_of_range(err, -EINVAL, "threads", n_threads, 1, MAX_THREADS);
    struct threads *threads = aligned_alloc(64, sizeof *threads);
    if (!threads)
        return error_set(err, -ENOMEM, "not enough memory for the threads");
    memset(threads, 0, sizeof *threads);
    threads->n = threads->running = n_threads;
    threads->spins = spins_of(n_threads, n_cpus);
    int r = 0;
    if (n_threads > 1 && !(threads->members = calloc(n_threads - 1, sizeof *threads->members)))
        r = error_set(err, -ENOMEM, "not enough memory for %u threads", n_threads);
    threads->shares = aligned_alloc(64, n_threads * sizeof *threads->shares);
    if (threads->shares)
        memset(threads->shares, 0xff, n_threads * sizeof *threads->shares); /* of no phase to come soon */
    else if (r == 0)
        r = error_set(err, -ENOMEM, "not enough memory for %u threads", n_threads);
    if (r == 0 && n_cpus)
        r = bind_caller(threads, cpus, n_cpus, err);
    for (uint32_t i = 1; i < n_threads && r == 0; i++) {
        r = start_member(threads, i, cpus, n_cpus);
        if (r < 0)
            error_set(err, r, "thread %u of %u: %s", i, n_threads, strerror(-r));
    }
    if (r < 0) {
        threads_free(threads);
        return r;
    }
    *ret_threads = threads;
    return 0;
}

struct threads *threads_free(struct threads *threads)
{
    if (!threads)
        return NULL;
    threads->stop = true;
    change(threads, &threads->job);
    for (uint32_t i = 0; i < threads->n_started; i++)
        pthread_join(threads->members[i].thread, NULL);
    if (threads->bound)
        sched_setaffinity(0, sizeof threads->before, &threads->before);
    free(threads->members);
    free(threads->shares);
    free(threads);
    return NULL;
}

uint32_t threads_count(const struct threads *threads)
{
    return threads->n;
}
