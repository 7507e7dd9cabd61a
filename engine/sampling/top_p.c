/* SPDX-License-Identifier: MIT */
/* The interval begins with all that may matter and is halved by logit, which is the logarithm of the mass; as
 * long as nothing is known to be above it, it is cut off nearer to its lower end, where most ids are.
 *
 * Ids whose mass is less than an n-th of what top-p leaves out cannot all together make up for it, so the
 * border lies above them: for a model that is sure of itself that alone leaves few. Whatever is rounded on
 * the way, the sums of both ends are exact and have been compared with the target. */

#include "engine/sampling/top_p.h"

#include <float.h>
#include <math.h>

#include "engine/sampling/logits.h"
#include "engine/sampling/units.h"

#define MOST_LOOKS 24 /* at parts of what is left: many logits may be the same, or nearly */

static float first_guess(const struct top_p_row *row, uint64_t target)
{
    const double left_out = row->total > target ? (double)(row->total - target) / row->n : 0;
    const double mass =
        (left_out > 1 ? left_out : 1) / (double)MASS_ONE * 0.99; /* what is less than 1 is 0 */
    const double guess = (double)row->best + (double)row->temperature * log(mass);
    return guess < -(double)FLT_MAX ? -FLT_MAX : (float)guess;
}

bool top_p_find(const struct top_p_row *row, uint64_t target, struct top_p_border *ret_border)
{
    struct logits_part above = {.least = INFINITY};
    struct logits_part low = logits_from(row->logits, row->masses, row->n, first_guess(row, target));
    if (low.mass < target)
        low = logits_from(row->logits, row->masses, row->n, -FLT_MAX);
    if (low.mass < target)
        return false;
    for (int looks = 0; looks < MOST_LOOKS && low.n - above.n > TOP_P_FEW; looks++) {
        const double top = (double)(above.n ? above.least : row->best), parts = above.n ? 2 : 4;
        const float middle = (float)((double)low.least + (top - (double)low.least) / parts);
        if (middle <= low.least || middle >= above.least)
            break;
        const struct logits_part part = logits_from(row->logits, row->masses, row->n, middle);
        *(part.mass < target ? &above : &low) = part;
    }
    *ret_border = (struct top_p_border){low.least, above.least, above.n, above.mass};
    return true;
}
