/* SPDX-License-Identifier: MIT */
#ifndef CUDA_DEVICE_CUBLAS_LT_H
#define CUDA_DEVICE_CUBLAS_LT_H

/* The calls of NVIDIA's cuBLASLt that large products need (library_products.h), as a table.
 *
 * The library is looked up when a backend wants it. It is not a dependency: builds do not need it, and a
 * plugin runs without it. cublas_lt_find has two implementations: cublas_lt.c loads the library,
 * emu/cublas_lt.cc is one for the emulated device. So the calls are declared here with their binary
 * interface; if the toolkit is installed, cublas_lt_check.c compares each declaration with NVIDIA's header.
 * The "cuBLASLt API" chapter of NVIDIA's cuBLAS documentation describes the calls. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "common/error.h"

/* ---- numbers of the header ---- */

typedef unsigned cublas_lt_status; /* CUBLAS_STATUS_… */
#define CUBLAS_LT_SUCCESS       0u
#define CUBLAS_LT_NOT_SUPPORTED 15u

enum { CUBLAS_LT_COMPUTE_32F = 68 };                 /* CUBLAS_COMPUTE_32F */
enum { CUBLAS_LT_R_32F = 0, CUBLAS_LT_R_16BF = 14 }; /* CUDA_R_… */
enum { CUBLAS_LT_OP_N = 0, CUBLAS_LT_OP_T = 1 };     /* CUBLAS_OP_… */
enum { CUBLAS_LT_EPILOGUE_BIAS = 4 };                /* CUBLASLT_EPILOGUE_BIAS */

/* CUBLASLT_MATMUL_DESC_… */
enum { CUBLAS_LT_DESC_TRANSA = 3, CUBLAS_LT_DESC_EPILOGUE = 7, CUBLAS_LT_DESC_BIAS_POINTER = 8 };
enum { CUBLAS_LT_PREF_MAX_WORKSPACE_BYTES = 1 }; /* CUBLASLT_MATMUL_PREF_… */
/* CUBLASLT_ALGO_CONFIG_… */
enum { CUBLAS_LT_ALGO_ID = 0, CUBLAS_LT_ALGO_TILE_ID = 1, CUBLAS_LT_ALGO_SPLITK_NUM = 2 };

/* ---- arguments ---- */

typedef void *cublas_lt_handle; /* cublasLtHandle_t, and so on */
typedef void *cublas_lt_desc;
typedef void *cublas_lt_layout;
typedef void *cublas_lt_preference;

struct cublas_lt_algorithm {
    uint64_t data[8];
};

struct cublas_lt_choice { /* cublasLtMatmulHeuristicResult_t */
    struct cublas_lt_algorithm algorithm;
    size_t workspace_bytes;
    cublas_lt_status state;
    float waves;
    int reserved[4];
};

/* ---- calls ---- */

struct cublas_lt {
    size_t (*version)(void); /* 10000 · major + 100 · minor + patch; 1000 · major before 12 */
    const char *(*status_name)(cublas_lt_status status);
    cublas_lt_status (*create)(cublas_lt_handle *ret_handle);
    cublas_lt_status (*destroy)(cublas_lt_handle handle);
    cublas_lt_status (*desc_create)(cublas_lt_desc *ret_desc, unsigned compute, unsigned scale_type);
    cublas_lt_status (*desc_set)(cublas_lt_desc desc, unsigned attribute, const void *value, size_t bytes);
    cublas_lt_status (*desc_destroy)(cublas_lt_desc desc);
    cublas_lt_status (*layout_create)(cublas_lt_layout *ret_layout, unsigned type, uint64_t rows,
                                      uint64_t columns, int64_t leading);
    cublas_lt_status (*layout_destroy)(cublas_lt_layout layout);
    cublas_lt_status (*preference_create)(cublas_lt_preference *ret_preference);
    cublas_lt_status (*preference_set)(cublas_lt_preference preference, unsigned attribute, const void *value,
                                       size_t bytes);
    cublas_lt_status (*preference_destroy)(cublas_lt_preference preference);
    cublas_lt_status (*heuristic)(cublas_lt_handle handle, cublas_lt_desc desc, cublas_lt_layout a,
                                  cublas_lt_layout b, cublas_lt_layout c, cublas_lt_layout d,
                                  cublas_lt_preference preference, int n_asked,
                                  struct cublas_lt_choice *ret_choices, int *ret_n);
    cublas_lt_status (*algorithm_get)(const struct cublas_lt_algorithm *algorithm, unsigned attribute,
                                      void *ret_value, size_t bytes, size_t *ret_written);
    cublas_lt_status (*matmul)(cublas_lt_handle handle, cublas_lt_desc desc, const void *alpha, const void *a,
                               cublas_lt_layout a_layout, const void *b, cublas_lt_layout b_layout,
                               const void *beta, const void *c, cublas_lt_layout c_layout, void *d,
                               cublas_lt_layout d_layout, const struct cublas_lt_algorithm *algorithm,
                               void *workspace, size_t workspace_bytes, void *stream);
};

/* Member and name of each call. */
#define CUBLAS_LT_CALLS(ROW)                                                                                 \
    ROW(version, cublasLtGetVersion)                                                                         \
    ROW(status_name, cublasLtGetStatusName)                                                                  \
    ROW(create, cublasLtCreate)                                                                              \
    ROW(destroy, cublasLtDestroy)                                                                            \
    ROW(desc_create, cublasLtMatmulDescCreate)                                                               \
    ROW(desc_set, cublasLtMatmulDescSetAttribute)                                                            \
    ROW(desc_destroy, cublasLtMatmulDescDestroy)                                                             \
    ROW(layout_create, cublasLtMatrixLayoutCreate)                                                           \
    ROW(layout_destroy, cublasLtMatrixLayoutDestroy)                                                         \
    ROW(preference_create, cublasLtMatmulPreferenceCreate)                                                   \
    ROW(preference_set, cublasLtMatmulPreferenceSetAttribute)                                                \
    ROW(preference_destroy, cublasLtMatmulPreferenceDestroy)                                                 \
    ROW(heuristic, cublasLtMatmulAlgoGetHeuristic)                                                           \
    ROW(algorithm_get, cublasLtMatmulAlgoConfigGetAttribute)                                                 \
    ROW(matmul, cublasLtMatmul)

/* Major versions that have these calls, each in a separate library. */
#define CUBLAS_LT_NEWEST 13u
#define CUBLAS_LT_OLDEST 12u

/* Fills the table from this major version. 0; -ENOENT with the reason: there is no such library, or it lacks
 * a call. A loaded library stays loaded: its kernels may run until the process ends. */
int cublas_lt_find(uint32_t version, struct cublas_lt *ret_calls, struct error *err);

#ifdef __cplusplus
}
#endif

#endif
