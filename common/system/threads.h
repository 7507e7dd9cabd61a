/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_THREADS_H
#define COMMON_SYSTEM_THREADS_H

/* A small team of threads that together run one function at a time.
 *
 * In threads_run every member calls the function once with its index (the caller is member 0); it returns
 * when all are done. Inside, members divide work by claiming pieces of a range, and meet at barriers. Each
 * barrier, and the end of the run, resets the claims, so a run divides one range between two barriers. With
 * one member nothing locks or waits. */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct threads;

typedef void threads_work(void *arg, uint32_t index);

/* Starts n_threads − 1 threads; 0 means one per listed core, or without a list topology_threads_here. With a
 * list, members (including the caller, until threads_free) are bound: each to all cores of a list that is
 * longer than the team, else member i to cpus[i % n_cpus]. -EINVAL names a core that cannot be used (of a
 * longer list, if none can); -EAGAIN if threads cannot be created. */
int threads_new(uint32_t n_threads, const int *cpus, uint32_t n_cpus, struct threads **ret_threads,
                struct error *err);
struct threads *threads_free(struct threads *threads);

uint32_t threads_count(const struct threads *threads);

/* Call it only from the thread that created the team. */
void threads_run(struct threads *threads, threads_work *work, void *arg);

/* The same with the caller as the only member, for work too small to wake others. */
void threads_run_alone(struct threads *threads, threads_work *work, void *arg);

/* Inside a run: waits for every member. Writes before it are visible to all after it. */
void threads_barrier(struct threads *threads);

/* Inside a run: claims up to `grain` pieces of the range 0 … n − 1. False: all are taken. */
bool threads_claim(struct threads *threads, uint32_t n, uint32_t grain, uint32_t *ret_first,
                   uint32_t *ret_end);

/* The same with larger pieces while much is left: a quarter of a member's equal share of the rest, 1 to
 * `most` times `grain`. So members read long stretches and finish at about the same time. */
bool threads_claim_run(struct threads *threads, uint32_t n, uint32_t grain, uint32_t most,
                       uint32_t *ret_first, uint32_t *ret_end);

/* The same for member `index`, first from its equal share of the range, then from the rest of other members'
 * shares. So a member mostly works on the same pieces between all barriers, and their data stay in its cache.
 * If there are fewer than eight pieces per member, all are claimed one by one. Do not mix it with other
 * claims between the same two barriers. */
bool threads_claim_own(struct threads *threads, uint32_t index, uint32_t n, uint32_t *ret_first,
                       uint32_t *ret_end);

#endif
