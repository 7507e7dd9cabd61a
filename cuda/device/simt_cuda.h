/* SPDX-License-Identifier: MIT */
#ifndef CUDA_DEVICE_SIMT_CUDA_H
#define CUDA_DEVICE_SIMT_CUDA_H

/* simt.h under nvcc. All PTX is here. */

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "cuda/device/device_cuda.h"

#define SIMT_ALL          0xffffffffu /* the lanes of a warp */
#define SIMT_UNROLL       _Pragma("unroll")
#define SIMT_PRAGMA(text) _Pragma(#text)
#define SIMT_UNROLL_BY(n) SIMT_PRAGMA(unroll(n))
#define SIMT_APART        __noinline__

template <class T> __device__ static inline T *simt_shared()
{
    extern __shared__ uint4 simt_shared_memory[];
    return (T *)simt_shared_memory;
}

/* ---- the launch before ---- */

__device__ static inline void simt_start(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ static inline void simt_prefetch(const void *at)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(at)));
#endif
}

/* ---- meetings ---- */

__device__ static inline void simt_barrier(void)
{
    __syncthreads();
}

__device__ static inline void simt_warp_barrier(void)
{
    __syncwarp();
}

template <class T> __device__ static inline T simt_shuffle(T value, uint32_t lane)
{
    return __shfl_sync(SIMT_ALL, value, (int)lane);
}

template <class T> __device__ static inline T simt_shuffle_xor(T value, uint32_t mask)
{
    return __shfl_xor_sync(SIMT_ALL, value, (int)mask);
}

__device__ static inline uint32_t simt_ballot(bool vote)
{
    return __ballot_sync(SIMT_ALL, vote);
}

template <class T> __device__ static inline T simt_warp_sum(T value)
{
    for (uint32_t mask = 16; mask > 0; mask /= 2)
        value += simt_shuffle_xor(value, mask);
    return value;
}

template <class T> __device__ static inline T simt_warp_max(T value)
{
    for (uint32_t mask = 16; mask > 0; mask /= 2) {
        T other = simt_shuffle_xor(value, mask);
        value = other > value ? other : value;
    }
    return value;
}

/* ---- warp matrix products ---- */

__device__ static inline void simt_mma_s8(int32_t *d, const uint32_t *a, const uint32_t *b)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ static inline void simt_mma_f16(float *d, const uint32_t *a, const uint32_t *b)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* ---- arithmetic ---- */

__device__ static inline int32_t simt_dp4a(int32_t a, int32_t b, int32_t c)
{
    return __dp4a(a, b, c);
}

__device__ static inline uint32_t simt_permute(uint32_t a, uint32_t b, uint32_t places)
{
    return __byte_perm(a, b, places);
}

__device__ static inline uint32_t simt_add_halves(uint32_t a, uint32_t b)
{
    asm("add.rn.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    return a;
}

__device__ static inline uint32_t simt_multiply_halves(uint32_t a, uint32_t b)
{
    asm("mul.rn.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    return a;
}

__device__ static inline int32_t simt_nearest(float x)
{
    return __float2int_rn(x);
}

__device__ static inline float simt_float(half_t x)
{
    return __half2float(__ushort_as_half(x.bits));
}

__device__ static inline float simt_float(bf16_t x)
{
    return __uint_as_float((uint32_t)x.bits << 16);
}

__device__ static inline half_t simt_half(float x)
{
    return half_t{__half_as_ushort(__float2half_rn(x))};
}

__device__ static inline bf16_t simt_bf16(float x)
{
    uint32_t bits = __float_as_uint(x);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return bf16_t{(uint16_t)(bits >> 16 | 0x40)};
    return bf16_t{(uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

/* A rounded product that is never fused with a sum: for results whose bits must be those of plain C. */
__device__ static inline float simt_multiply(float a, float b)
{
    return __fmul_rn(a, b);
}

__device__ static inline uint32_t simt_bits(float x)
{
    return __float_as_uint(x);
}

__device__ static inline float simt_of_bits(uint32_t bits)
{
    return __uint_as_float(bits);
}

__device__ static inline uint32_t simt_atomic_add(uint32_t *at, uint32_t value)
{
    return atomicAdd(at, value);
}

__device__ static inline float simt_atomic_add(float *at, float value)
{
    return atomicAdd(at, value);
}

__device__ static inline uint64_t simt_atomic_add(uint64_t *at, uint64_t value)
{
    return atomicAdd((unsigned long long *)at, (unsigned long long)value);
}

__device__ static inline uint32_t simt_atomic_max(uint32_t *at, uint32_t value)
{
    return atomicMax(at, value);
}

__device__ static inline uint64_t simt_atomic_max(uint64_t *at, uint64_t value)
{
    return atomicMax((unsigned long long *)at, (unsigned long long)value);
}

__device__ static inline uint32_t simt_atomic_and(uint32_t *at, uint32_t value)
{
    return atomicAnd(at, value);
}

__device__ static inline void simt_fence(void)
{
    __threadfence();
}

__device__ static inline void simt_fence_system(void)
{
    __threadfence_system();
}

struct alignas(16) simt_16 {
    uint32_t words[4];
};

__device__ static inline struct simt_16 simt_load16(const void *from)
{
    struct simt_16 value;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.words[0]), "=r"(value.words[1]), "=r"(value.words[2]), "=r"(value.words[3])
                 : "l"(__cvta_generic_to_global(from)));
    return value;
}

__device__ static inline struct simt_16 simt_fresh16(const void *from)
{
    const uint4 value = __ldcg((const uint4 *)from);
    return simt_16{{value.x, value.y, value.z, value.w}};
}

/* ---- launches ---- */

template <class... P, class... A>
static inline int simt_launch(struct device_stream *stream, const char *name, void (*kernel)(P...),
                              struct simt_dim grid, struct simt_dim block, size_t shared_bytes, A... args)
{
    int r = device_cuda_before_launch(stream, name, (const void *)kernel, shared_bytes);
    if (r < 0)
        return r;
    cudaLaunchAttribute overlap = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(grid.x, grid.y, grid.z);
    config.blockDim = dim3(block.x, block.y, block.z);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = device_cuda_stream(stream);
    config.attrs = &overlap;
    config.numAttrs = device_cuda_overlaps(stream) ? 1 : 0;
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchKernelEx(&config, kernel, args...); /* device_cuda_after_launch gets its result */
    return device_cuda_after_launch(stream, name, config.gridDim, config.blockDim);
}

#endif
