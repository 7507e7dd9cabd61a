/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SAMPLING_UNITS_H
#define ENGINE_SAMPLING_UNITS_H

/* Constants on which the bits of a sample depend, for the sampler of the host and the kernels of a GPU. Sums
 * are of whole numbers of these units, so they have no order. */

#define MASS_ONE (1ull << 40) /* the mass of the most likely id; 2^23 ids cannot overflow the sum */

/* Distances from the largest logit, for top-nσ, and their squares, in units of 2⁻³⁰ and 2⁻²⁰. */
#define FILTERS_FARTHEST 1024.0f /* longer ones count as this */
#define DISTANCE_UNITS   0x1p30f
#define SQUARE_UNITS     0x1p20f

#define LEAST_EXPONENT (-128.0f) /* e^x is nothing from here down, and so is x times it */

#define DRY_LONGEST 1024  /* ids of a repeat; longer ones count as this */
#define DRY_MOST    1e30f /* of a penalty: it takes no logit out of the range of float */

#endif
