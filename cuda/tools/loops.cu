/* SPDX-License-Identifier: MIT */
/* The products' inner loops, a kernel for each format, so that scripts/roofline can count what a weight costs
 * in instructions. The real kernels (multiply.cu, tiles.cu) choose among all formats by a switch, in which
 * nobody finds one loop again. Nothing runs these, and no program has them. */

#include "cuda/kernels/products/gemv.h"

#include "cuda/kernels/products/tile.h"

template <enum format F, uint32_t N>
static __device__ __forceinline__ void sum_rows(const struct task &task, float *out)
{
    float sums[ROWS_EACH][N] = {};
    add_rows_of<F, N>(task, sums);
    out[threadIdx.x] = sum_of_lane<N>(sums);
}

template <enum format F, uint32_t NB, class S>
static __device__ __forceinline__ void sum_part(const struct tile_task &task, uint32_t w_row, uint32_t x_row,
                                                struct tile<S::M, S::N> *shared, float *out)
{
    float sums[NB][4] = {};
    add_part_of<F, NB, S>(task, blockIdx.y, shared, w_row, x_row, sums);
    for (uint32_t n = 0; n < NB; n++)
        for (uint32_t i = 0; i < 4; i++)
            out[(n * 4 + i) * blockDim.x + threadIdx.x] = sums[n][i];
}

/* loop_few1_Q4_K: of so many rows of x. */
#define FEW(format, n)                                                                                       \
    extern "C" __global__ void __launch_bounds__(WARPS *SIMT_LANES, blocks_at_once(n))                       \
        loop_few##n##_##format(const __grid_constant__ struct device_matrix matrix,                          \
                               const __grid_constant__ struct device_activations x, float *out)              \
    {                                                                                                        \
        const uint32_t row = (blockIdx.x * WARPS + threadIdx.x / SIMT_LANES) * ROWS_EACH;                    \
        sum_rows<FORMAT_##format, n>(task{&matrix, &x, row, matrix.n_rows, 0, n}, out);                      \
    }

/* loop_thin2_Q4_K: of 8 · nb rows of x. */
#define THIN(format, nb)                                                                                     \
    extern "C" __global__ void __launch_bounds__(PARTS *SIMT_LANES, 2)                                       \
        loop_thin##nb##_##format(const __grid_constant__ struct device_matrix matrix,                        \
                                 const __grid_constant__ struct device_activations x, float *out)            \
    {                                                                                                        \
        typedef struct shape<THIN_ROWS, 8 * nb, SIMT_LANES, false> Shape;                                    \
        sum_part<FORMAT_##format, nb, Shape>(                                                                \
            tile_task{&matrix, &x, blockIdx.x * THIN_ROWS, 0, 8 * nb, 0, NULL}, 0, 0,                        \
            &simt_shared<union thin_shared<nb>>()->tiles[threadIdx.x / SIMT_LANES], out);                    \
    }

/* loop_wide_Q4_K: of 64. */
#define WIDE(format)                                                                                         \
    extern "C" __global__ void __launch_bounds__(WIDE_THREADS, STREAM_K_AT_ONCE)                             \
        loop_wide_##format(const __grid_constant__ struct device_matrix matrix,                              \
                           const __grid_constant__ struct device_activations x, float *out)                  \
    {                                                                                                        \
        typedef struct shape<WIDE_ROWS, WIDE_X_ROWS, WIDE_THREADS, false> Shape;                             \
        const struct wide_place place = wide_place();                                                        \
        sum_part<FORMAT_##format, WIDE_NB, Shape>(                                                           \
            tile_task{&matrix, &x, blockIdx.x * WIDE_ROWS, 0, WIDE_X_ROWS, 0, NULL}, place.w_row,            \
            place.x_row, simt_shared<wide_shared>(), out);                                                   \
    }

#define ALL(name, id, number, elements, bytes)                                                               \
    FEW(name, 1) FEW(name, 4) THIN(name, 1) THIN(name, 2) WIDE(name)
FORMATS(ALL)
