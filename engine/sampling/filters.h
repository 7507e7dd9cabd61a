/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SAMPLING_FILTERS_H
#define ENGINE_SAMPLING_FILTERS_H

/* Filters that drop candidates, and the dynamic temperature, in the order of sampling.h. Each filter takes
 * the first n candidates and returns how many are left, at least one.
 *
 * Sums are of integers, so their order does not matter: distances from the largest logit in units of 2⁻³⁰,
 * their squares in units of 2⁻²⁰ (distances above FILTERS_FARTHEST are clamped to it), and a probability
 * times its logarithm in units of 2⁻⁴⁰. */

#include "common/sampling.h"
#include "engine/sampling/candidates.h"

/* Scales a logit: (logit − best) / temperature. */
struct scale {
    float best, temperature;
};

/* Whether a filter that needs all candidates, or the dynamic temperature, is on. */
bool filters_are_rare(const struct sampling *sampling);

/* Top-nσ: keeps logits of at least best − top_n_sigma · σ, where σ is the standard deviation of the
 * candidates' logits (Tang et al. 2024, arXiv:2411.07641). */
uint32_t filters_top_n_sigma(struct candidates *all, uint32_t n, const struct sampling *sampling, float best);

uint32_t filters_top_k(struct candidates *all, uint32_t n, const struct sampling *sampling);

/* temperature ± dynatemp_range by the entropy H of the candidates at temperature 1: low + (high − low) · (H /
 * ln n)^exponent (Nugent's "entropy sampling", as in llama.cpp). Without a range, the temperature itself. */
float filters_temperature(const struct candidates *all, uint32_t n, const struct sampling *sampling,
                          float best);

/* typical_p, top_p, min_p and XTC, in this order; masses are set. */
uint32_t filters_apply(struct candidates *all, uint32_t n, const struct sampling *sampling,
                       struct scale scale, uint64_t position);

/* The mass that top-p takes of `total`; the least mass that min-p keeps, given the most likely id's. */
uint64_t filters_top_p_target(uint64_t total, const struct sampling *sampling);
uint64_t filters_min_p_mass(uint64_t most, const struct sampling *sampling);

#endif
