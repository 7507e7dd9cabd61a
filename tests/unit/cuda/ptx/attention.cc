/* SPDX-License-Identifier: MIT */
/* Attention on the emulator, with its arguments as attention.cu makes them. */

#include "tests/unit/cuda/ptx/primitives.h"

#include <errno.h>

#include "cuda/kernels/attention/attention_piece.h"
#include "cuda/kernels/attention/kv_f16.h"
#include "cuda/kernels/state.h"

/* The grid is smaller than that of attention.cu may be: blocks go over the list, however many they are. */
int launch_attention(struct device_stream *stream, const struct attention_step *step,
                     const struct slots *slots, const struct step_row *rows, uint32_t n_rows,
                     struct kept_launch *ret_launch)
{
    struct attention_geometry g;
    if (n_rows > SMALL_BATCH || step->kv.type != BACKEND_KV_F16)
        return -EINVAL;
    lay_out(&g, &step->kv, &step->scratch, TILE);
    const size_t shared = sizeof(struct attention_shared<TILE>) +
                          TILE * (2 * g.query_stride * sizeof(half_t) + g.value_stride * sizeof(float));
    *ret_launch = {{2, 1}, THREADS, (uint32_t)shared, 0, {}};
    keep(ret_launch, *step);
    keep(ret_launch, g);
    keep(ret_launch, *slots);
    keep(ret_launch, rows);
    return kernels_attention(stream, step, slots, rows, n_rows);
}
