/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SAMPLING_UNITS_H
#define ENGINE_SAMPLING_UNITS_H

/* Constants that affect the bits of a sample, for the host's sampler and a GPU's kernels. Sums are of
 * integers in these units, so their order does not matter. */

#define MASS_ONE (1ull << 40) /* the mass of the most likely id; 2^23 ids cannot overflow the sum */

/* Distances from the largest logit, for top-nσ, and their squares, in units of 2⁻³⁰ and 2⁻²⁰. */
#define FILTERS_FARTHEST 1024.0f /* longer distances are clamped to this */
#define DISTANCE_UNITS   0x1p30f
#define SQUARE_UNITS     0x1p20f

#define LEAST_EXPONENT (-128.0f) /* from here down e^x counts as 0, and so does x times it */
#define DRY_LONGEST    1024      /* ids of a repetition; longer ones are clamped to this */
#define DRY_MOST       1e30f     /* the largest penalty: it takes no logit out of the range of float */

#endif
