/* SPDX-License-Identifier: MIT */
/* Holds cublas_lt.h against the toolkit's header, where the toolkit is there: numbers and sizes are asserted,
 * and each member's type has to take a function that hands its arguments on to the call. It is compiled and
 * linked into nothing. */

#include "cuda/device/cublas_lt.h"

#include <cublasLt.h>

#define SAME(ours, theirs) _Static_assert((unsigned)(ours) == (unsigned)(theirs), #theirs)

SAME(CUBLAS_LT_SUCCESS, CUBLAS_STATUS_SUCCESS);
SAME(CUBLAS_LT_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(CUBLAS_LT_COMPUTE_32F, CUBLAS_COMPUTE_32F);
SAME(CUBLAS_LT_R_32F, CUDA_R_32F);
SAME(CUBLAS_LT_R_16BF, CUDA_R_16BF);
SAME(CUBLAS_LT_OP_N, CUBLAS_OP_N);
SAME(CUBLAS_LT_OP_T, CUBLAS_OP_T);
SAME(CUBLAS_LT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS);
SAME(CUBLAS_LT_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(CUBLAS_LT_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(CUBLAS_LT_DESC_BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(CUBLAS_LT_PREF_MAX_WORKSPACE_BYTES, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(CUBLAS_LT_ALGO_ID, CUBLASLT_ALGO_CONFIG_ID);
SAME(CUBLAS_LT_ALGO_TILE_ID, CUBLASLT_ALGO_CONFIG_TILE_ID);
SAME(CUBLAS_LT_ALGO_SPLITK_NUM, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
SAME(sizeof(cublas_lt_status), sizeof(cublasStatus_t));
SAME(sizeof(unsigned), sizeof(cudaDataType_t));
SAME(sizeof(unsigned), sizeof(cublasComputeType_t));
SAME(sizeof(struct cublas_lt_algorithm), sizeof(cublasLtMatmulAlgo_t));
SAME(sizeof(struct cublas_lt_choice), sizeof(cublasLtMatmulHeuristicResult_t));
SAME(offsetof(struct cublas_lt_choice, workspace_bytes),
     offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
SAME(offsetof(struct cublas_lt_choice, state), offsetof(cublasLtMatmulHeuristicResult_t, state));
SAME(offsetof(struct cublas_lt_choice, waves), offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));

static size_t version(void)
{
    return cublasLtGetVersion();
}

static const char *status_name(cublas_lt_status status)
{
    return cublasLtGetStatusName((cublasStatus_t)status);
}

static cublas_lt_status create(cublas_lt_handle *ret_handle)
{
    return cublasLtCreate((cublasLtHandle_t *)ret_handle);
}

static cublas_lt_status destroy(cublas_lt_handle handle)
{
    return cublasLtDestroy(handle);
}

static cublas_lt_status desc_create(cublas_lt_desc *ret_desc, unsigned compute, unsigned scale_type)
{
    return cublasLtMatmulDescCreate((cublasLtMatmulDesc_t *)ret_desc, (cublasComputeType_t)compute,
                                    (cudaDataType_t)scale_type);
}

static cublas_lt_status desc_set(cublas_lt_desc desc, unsigned attribute, const void *value, size_t bytes)
{
    return cublasLtMatmulDescSetAttribute(desc, (cublasLtMatmulDescAttributes_t)attribute, value, bytes);
}

static cublas_lt_status desc_destroy(cublas_lt_desc desc)
{
    return cublasLtMatmulDescDestroy(desc);
}

static cublas_lt_status layout_create(cublas_lt_layout *ret_layout, unsigned type, uint64_t rows,
                                      uint64_t columns, int64_t leading)
{
    return cublasLtMatrixLayoutCreate((cublasLtMatrixLayout_t *)ret_layout, (cudaDataType)type, rows, columns,
                                      leading);
}

static cublas_lt_status layout_destroy(cublas_lt_layout layout)
{
    return cublasLtMatrixLayoutDestroy(layout);
}

static cublas_lt_status preference_create(cublas_lt_preference *ret_preference)
{
    return cublasLtMatmulPreferenceCreate((cublasLtMatmulPreference_t *)ret_preference);
}

static cublas_lt_status preference_set(cublas_lt_preference preference, unsigned attribute, const void *value,
                                       size_t bytes)
{
    return cublasLtMatmulPreferenceSetAttribute(preference, (cublasLtMatmulPreferenceAttributes_t)attribute,
                                                value, bytes);
}

static cublas_lt_status preference_destroy(cublas_lt_preference preference)
{
    return cublasLtMatmulPreferenceDestroy(preference);
}

static cublas_lt_status heuristic(cublas_lt_handle handle, cublas_lt_desc desc, cublas_lt_layout a,
                                  cublas_lt_layout b, cublas_lt_layout c, cublas_lt_layout d,
                                  cublas_lt_preference preference, int n_asked,
                                  struct cublas_lt_choice *ret_choices, int *ret_n)
{
    return cublasLtMatmulAlgoGetHeuristic(handle, desc, a, b, c, d, preference, n_asked,
                                          (cublasLtMatmulHeuristicResult_t *)ret_choices, ret_n);
}

static cublas_lt_status algorithm_get(const struct cublas_lt_algorithm *algorithm, unsigned attribute,
                                      void *ret_value, size_t bytes, size_t *ret_written)
{
    return cublasLtMatmulAlgoConfigGetAttribute((const cublasLtMatmulAlgo_t *)algorithm,
                                                (cublasLtMatmulAlgoConfigAttributes_t)attribute, ret_value,
                                                bytes, ret_written);
}

static cublas_lt_status matmul(cublas_lt_handle handle, cublas_lt_desc desc, const void *alpha, const void *a,
                               cublas_lt_layout a_layout, const void *b, cublas_lt_layout b_layout,
                               const void *beta, const void *c, cublas_lt_layout c_layout, void *d,
                               cublas_lt_layout d_layout, const struct cublas_lt_algorithm *algorithm,
                               void *workspace, size_t workspace_bytes, void *stream)
{
    return cublasLtMatmul(handle, desc, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout,
                          (const cublasLtMatmulAlgo_t *)algorithm, workspace, workspace_bytes, stream);
}

extern const struct cublas_lt cublas_lt_checked;
const struct cublas_lt cublas_lt_checked = {
#define CALL(member, name) .member = member,
    CUBLAS_LT_CALLS(CALL)
#undef CALL
};
