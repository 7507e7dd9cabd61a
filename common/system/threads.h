/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_THREADS_H
#define COMMON_SYSTEM_THREADS_H

/* A small team of threads that together run one function at a time.
 *
 * threads_run forks: every member calls the function once with its index (the caller is member 0), and the
 * call returns when all are done. Inside, members divide work by claiming pieces of a range, and meet at
 * barriers. Each barrier and the end of the run begin all claims anew, so between two barriers a run
 * divides one range. With one member nothing locks or waits. */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct threads;

typedef void threads_work(void *arg, uint32_t index);

/* Starts n_threads − 1 threads; 0 means one per listed core, or without a list topology_threads_here. With a
 * list, member i (including the caller, until threads_free) is pinned to cpus[i % n_cpus]. -EINVAL names a
 * core that cannot be used; -EAGAIN if threads cannot be created. */
int threads_new(uint32_t n_threads, const int *cpus, uint32_t n_cpus, struct threads **ret_threads,
                struct error *err);
struct threads *threads_free(struct threads *threads);

uint32_t threads_count(const struct threads *threads);

/* By the thread that made the team only. */
void threads_run(struct threads *threads, threads_work *work, void *arg);

/* The same with the caller as the only member, for work too small to wake others. */
void threads_run_alone(struct threads *threads, threads_work *work, void *arg);

/* Inside a run: waits for every member. Writes before it are visible to all after it. */
void threads_barrier(struct threads *threads);

/* Inside a run: claims up to `grain` pieces of the range 0 … n − 1. False when all are taken. */
bool threads_claim(struct threads *threads, uint32_t n, uint32_t grain, uint32_t *ret_first,
                   uint32_t *ret_end);

/* The same with larger pieces while much is left: a quarter of a member's equal share of the rest, 1 to
 * `most` times `grain`. So members read long stretches and finish together. */
bool threads_claim_run(struct threads *threads, uint32_t n, uint32_t grain, uint32_t most,
                       uint32_t *ret_first, uint32_t *ret_end);

/* The same for member `index`, from its own equal share of the range first and then from what others have
 * left of theirs. So one member mostly works on the same pieces between all barriers, and their data stay in
 * its cache. Of fewer than eight pieces for each member all are claimed one by one. Not to be mixed with
 * other claims between the same two barriers. */
bool threads_claim_own(struct threads *threads, uint32_t index, uint32_t n, uint32_t *ret_first,
                       uint32_t *ret_end);

#endif
