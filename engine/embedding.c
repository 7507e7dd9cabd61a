/* SPDX-License-Identifier: MIT */
/* One thread adds the squares from the first number to the last, so equal sums give equal bits. Sums are of
 * floats, at most a context of them: their squares are far from the end of what a double holds. */

#include "engine/embedding.h"

#include <math.h>

bool embedding_of_sums(const double *sums, uint32_t n, float *ret_embedding)
{
    double squares = 0;
    for (uint32_t i = 0; i < n; i++)
        squares += sums[i] * sums[i];
    const double norm = sqrt(squares);
    if (!isfinite(norm) || norm <= 0)
        return false;
    for (uint32_t i = 0; i < n; i++)
        ret_embedding[i] = (float)(sums[i] / norm);
    return true;
}
