/* SPDX-License-Identifier: MIT */
#ifndef CPU_THREADS_H
#define CPU_THREADS_H

/* A small team of threads that runs one function at a time together.
 *
 * threads_run forks: every member calls the function once with its index, the caller being member 0, and
 * returns when all are done. Inside, members divide work by claiming pieces of a range and meet at barriers.
 * One claim counter serves a whole run: each barrier, and the end of the run, sets it back to 0, so between
 * two barriers a run shares out one range. With one member nothing is locked and nothing waits. */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct threads;

typedef void threads_work(void *arg, uint32_t index);

/* Starts n_threads − 1 threads; 0 means one per listed core, or without a list topology_threads_here. With a
 * list, member i (the caller too, until threads_free) is pinned to cpus[i % n_cpus]. -EINVAL names a core
 * that cannot be used; -EAGAIN when threads cannot be made. */
int threads_new(uint32_t n_threads, const int *cpus, uint32_t n_cpus, struct threads **ret_threads,
                struct error *err);
struct threads *threads_free(struct threads *threads);

uint32_t threads_count(const struct threads *threads);

/* By the thread that made the team only. */
void threads_run(struct threads *threads, threads_work *work, void *arg);

/* The same with the caller as the only member: for work that is too small to wake others for. */
void threads_run_alone(struct threads *threads, threads_work *work, void *arg);

/* Inside a run: waits for every member. What was written before it is seen by all after it. */
void threads_barrier(struct threads *threads);

/* Inside a run: takes up to `grain` pieces of the range 0 … n − 1 for the caller. False when all are taken.
 */
bool threads_claim(struct threads *threads, uint32_t n, uint32_t grain, uint32_t *ret_first,
                   uint32_t *ret_end);

/* The same, of what lies in one piece as long as much is left: a quarter of a member's equal share of that, a
 * multiple of `grain` from 1 to `most` of them. So members read on for long, and end together. */
bool threads_claim_run(struct threads *threads, uint32_t n, uint32_t grain, uint32_t most,
                       uint32_t *ret_first, uint32_t *ret_end);

#endif
