/* SPDX-License-Identifier: MIT */
/* cublas_lt.h for the emulated device: a library that multiplies in plain loops, on the emulator's queue as
 * any kernel, so that what it reads and writes is watched like theirs. It multiplies as the real one is asked
 * to here: bfloat16 in, float sums and results, column-major, the first matrix transposed or not, a bias for
 * each row or none. What the documentation forbids it refuses with the status that is named there; what would
 * go unnoticed there ends the process. An algorithm is good for the one problem that it was chosen for.
 *
 * $QUERN_EMU_CUBLAS is "missing", or CALL=STATUS: that call gives that number, each time; with CALL=STATUS:N
 * from its N-th time on. "13: " before it says of which version alone. */

#include "cuda/device/cublas_lt.h"

#include <errno.h>
#include <stdio.h>

#include "cuda/emu/emu.h"

#define INVALID_VALUE   7u
#define WORKSPACE_BYTES ((size_t)256 << 10) /* of every algorithm; both ends are written */
#define ALIGNMENT       16

struct layout_of_matrix {
    unsigned type;
    uint64_t rows, columns;
    int64_t leading;
};

struct description {
    unsigned compute, scale_type;
    int32_t transposed;
    uint32_t epilogue;
    const float *bias;
};

struct preference {
    uint64_t workspace_bytes;
};

struct problem { /* what an algorithm is for: fills its data */
    uint32_t m, n, k, transposed, epilogue, number;
    size_t workspace_bytes;
};
static_assert(sizeof(struct problem) <= sizeof(struct cublas_lt_algorithm), "an algorithm holds its problem");

/* ---- faults that are asked for ---- */

static uint32_t version; /* that was found last */

static const char *wanted(void)
{
    const char *text = getenv("QUERN_EMU_CUBLAS");
    unsigned of = version;
    int n = 0;
    if (!text)
        return "";
    sscanf(text, "%u: %n", &of, &n);
    return of == version ? text + n : "";
}

/* How often each call was made since the library was found, for faults that come late. */
#define COUNT(member, name) n_##member,
enum call { CUBLAS_LT_CALLS(COUNT) N_CALLS };
#undef COUNT

static uint32_t counts[N_CALLS];

/* What the call is to give before it does anything. */
static cublas_lt_status begin(enum call call)
{
#define NAME(member, name) #name,
    static const char *const names[] = {CUBLAS_LT_CALLS(NAME)};
#undef NAME
    const char *text = wanted();
    const size_t length = strlen(names[call]);
    unsigned status = 0, from = 1;
    counts[call]++;
    if (strncmp(text, names[call], length) != 0 || text[length] != '=')
        return CUBLAS_LT_SUCCESS;
    sscanf(text + length + 1, "%u:%u", &status, &from);
    return counts[call] >= from ? status : CUBLAS_LT_SUCCESS;
}

static const char *status_name(cublas_lt_status status)
{
    switch (status) {
    case 0:
        return "CUBLAS_STATUS_SUCCESS";
    case 1:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case 3:
        return "CUBLAS_STATUS_ALLOC_FAILED";
    case 7:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case 13:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    case 15:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
        return "CUBLAS_STATUS_INTERNAL_ERROR";
    }
}

static size_t get_version(void)
{
    return version * (size_t)10000;
}

/* ---- objects ---- */

template <class T> static cublas_lt_status make(enum call call, void **ret_object, const T &value)
{
    const cublas_lt_status status = begin(call);
    if (status != CUBLAS_LT_SUCCESS)
        return status;
    T *object = (T *)malloc(sizeof *object);
    if (!object)
        return 3;
    *object = value;
    *ret_object = object;
    return CUBLAS_LT_SUCCESS;
}

static cublas_lt_status drop(enum call call, void *object)
{
    free(object);
    return begin(call);
}

static cublas_lt_status create(cublas_lt_handle *ret_handle)
{
    return make(n_create, ret_handle, version);
}

static cublas_lt_status destroy(cublas_lt_handle handle)
{
    return drop(n_destroy, handle);
}

static cublas_lt_status desc_create(cublas_lt_desc *ret_desc, unsigned compute, unsigned scale_type)
{
    return make(n_desc_create, ret_desc, description{compute, scale_type, CUBLAS_LT_OP_N, 1, NULL});
}

static cublas_lt_status desc_destroy(cublas_lt_desc desc)
{
    return drop(n_desc_destroy, desc);
}

static cublas_lt_status layout_create(cublas_lt_layout *ret_layout, unsigned type, uint64_t rows,
                                      uint64_t columns, int64_t leading)
{
    return make(n_layout_create, ret_layout, layout_of_matrix{type, rows, columns, leading});
}

static cublas_lt_status layout_destroy(cublas_lt_layout layout)
{
    return drop(n_layout_destroy, layout);
}

static cublas_lt_status preference_create(cublas_lt_preference *ret_preference)
{
    return make(n_preference_create, ret_preference, preference{0});
}

static cublas_lt_status preference_destroy(cublas_lt_preference of)
{
    return drop(n_preference_destroy, of);
}

/* `bytes` has to be the attribute's own size. */
static cublas_lt_status store(void *to, size_t size, const void *value, size_t bytes)
{
    if (!to || bytes != size)
        return INVALID_VALUE;
    memcpy(to, value, bytes);
    return CUBLAS_LT_SUCCESS;
}

static cublas_lt_status desc_set(cublas_lt_desc desc, unsigned attribute, const void *value, size_t bytes)
{
    struct description *of = (struct description *)desc;
    const cublas_lt_status status = begin(n_desc_set);
    if (status != CUBLAS_LT_SUCCESS)
        return status;
    switch (attribute) {
    case CUBLAS_LT_DESC_TRANSA:
        return store(&of->transposed, sizeof of->transposed, value, bytes);
    case CUBLAS_LT_DESC_EPILOGUE:
        return store(&of->epilogue, sizeof of->epilogue, value, bytes);
    case CUBLAS_LT_DESC_BIAS_POINTER:
        return store(&of->bias, sizeof of->bias, value, bytes);
    default:
        return INVALID_VALUE;
    }
}

static cublas_lt_status preference_set(cublas_lt_preference of, unsigned attribute, const void *value,
                                       size_t bytes)
{
    struct preference *to = (struct preference *)of;
    const cublas_lt_status status = begin(n_preference_set);
    if (status != CUBLAS_LT_SUCCESS)
        return status;
    return attribute == CUBLAS_LT_PREF_MAX_WORKSPACE_BYTES
               ? store(&to->workspace_bytes, sizeof to->workspace_bytes, value, bytes)
               : INVALID_VALUE;
}

/* ---- problems ---- */

struct operands {
    const struct description *desc;
    const struct layout_of_matrix *a, *b, *c, *d;
};

/* 0 with the problem; what the layouts are not. */
static cublas_lt_status problem_of(const struct operands *of, struct problem *ret_problem)
{
    const struct layout_of_matrix *a = of->a, *b = of->b, *c = of->c, *d = of->d;
    const bool transposed = of->desc->transposed == CUBLAS_LT_OP_T;
    const uint64_t m = transposed ? a->columns : a->rows, k = transposed ? a->rows : a->columns;
    if (a->leading < (int64_t)a->rows || b->leading < (int64_t)b->rows || d->leading < (int64_t)d->rows ||
        b->rows != k || d->rows != m || d->columns != b->columns || memcmp(c, d, sizeof *d) != 0)
        return INVALID_VALUE;
    if (of->desc->compute != CUBLAS_LT_COMPUTE_32F || of->desc->scale_type != CUBLAS_LT_R_32F ||
        a->type != CUBLAS_LT_R_16BF || b->type != CUBLAS_LT_R_16BF || d->type != CUBLAS_LT_R_32F ||
        a->leading % 8 != 0 || b->leading % 8 != 0 || d->leading % 4 != 0)
        return CUBLAS_LT_NOT_SUPPORTED;
    *ret_problem = problem{};
    ret_problem->m = (uint32_t)m;
    ret_problem->n = (uint32_t)b->columns;
    ret_problem->k = (uint32_t)k;
    ret_problem->transposed = transposed;
    ret_problem->epilogue = of->desc->epilogue;
    ret_problem->number = ret_problem->n >= 256 ? 71 : 66;
    ret_problem->workspace_bytes = WORKSPACE_BYTES;
    return CUBLAS_LT_SUCCESS;
}

static cublas_lt_status heuristic(cublas_lt_handle handle, cublas_lt_desc desc, cublas_lt_layout a,
                                  cublas_lt_layout b, cublas_lt_layout c, cublas_lt_layout d,
                                  cublas_lt_preference preferred, int n_asked,
                                  struct cublas_lt_choice *ret_choices, int *ret_n)
{
    const struct operands of = {(const struct description *)desc, (const struct layout_of_matrix *)a,
                                (const struct layout_of_matrix *)b, (const struct layout_of_matrix *)c,
                                (const struct layout_of_matrix *)d};
    struct problem problem = {};
    cublas_lt_status status = begin(n_heuristic);
    if (status == CUBLAS_LT_SUCCESS)
        status = n_asked > 0 ? problem_of(&of, &problem) : INVALID_VALUE;
    if (status != CUBLAS_LT_SUCCESS)
        return status;
    *ret_n = ((const struct preference *)preferred)->workspace_bytes >= WORKSPACE_BYTES;
    if (*ret_n == 0)
        return CUBLAS_LT_NOT_SUPPORTED;
    ret_choices[0] = cublas_lt_choice{};
    memcpy(&ret_choices[0].algorithm, &problem, sizeof problem);
    ret_choices[0].workspace_bytes = WORKSPACE_BYTES;
    ret_choices[0].waves = 1;
    return CUBLAS_LT_SUCCESS;
}

static cublas_lt_status algorithm_get(const struct cublas_lt_algorithm *algorithm, unsigned attribute,
                                      void *ret_value, size_t bytes, size_t *ret_written)
{
    struct problem problem;
    const cublas_lt_status status = begin(n_algorithm_get);
    memcpy(&problem, algorithm, sizeof problem);
    if (status != CUBLAS_LT_SUCCESS)
        return status;
    const uint32_t value = attribute == CUBLAS_LT_ALGO_ID        ? problem.number
                           : attribute == CUBLAS_LT_ALGO_TILE_ID ? 20u
                                                                 : 1u;
    if (bytes != sizeof value)
        return INVALID_VALUE;
    memcpy(ret_value, &value, sizeof value);
    *ret_written = sizeof value;
    return CUBLAS_LT_SUCCESS;
}

/* ---- the product ---- */

#define EACH 32 /* rows of the result, of a block of threads */

struct product {
    const bf16_t *a, *b;
    const float *c, *bias;
    float *d;
    int64_t lda, ldb, ldd;
    uint32_t m, n, k;
    bool transposed;
    float alpha, beta;
    uint8_t *workspace;
    size_t workspace_bytes;
};

/* Grid: [groups of EACH rows of d]; a thread to a row. */
static __global__ void multiply(struct product of)
{
    simt_start();
    const uint32_t m = blockIdx.x * EACH + threadIdx.x;
    of.workspace[0] = of.workspace[of.workspace_bytes - 1] = 0xff;
    for (uint32_t n = 0; m < of.m && n < of.n; n++) {
        float sum = 0;
        for (uint32_t k = 0; k < of.k; k++)
            sum += simt_float(of.a[of.transposed ? m * of.lda + k : k * of.lda + m]) *
                   simt_float(of.b[n * of.ldb + k]);
        float *to = of.d + n * of.ldd + m;
        *to =
            of.alpha * sum + (of.beta != 0 ? of.beta * of.c[n * of.ldd + m] : 0) + (of.bias ? of.bias[m] : 0);
    }
}

static bool aligned(const void *pointer)
{
    return (uintptr_t)pointer % ALIGNMENT == 0;
}

static cublas_lt_status matmul(cublas_lt_handle handle, cublas_lt_desc desc, const void *alpha, const void *a,
                               cublas_lt_layout a_layout, const void *b, cublas_lt_layout b_layout,
                               const void *beta, const void *c, cublas_lt_layout c_layout, void *d,
                               cublas_lt_layout d_layout, const struct cublas_lt_algorithm *algorithm,
                               void *workspace, size_t workspace_bytes, void *stream)
{
    const struct operands of = {(const struct description *)desc, (const struct layout_of_matrix *)a_layout,
                                (const struct layout_of_matrix *)b_layout,
                                (const struct layout_of_matrix *)c_layout,
                                (const struct layout_of_matrix *)d_layout};
    struct problem problem = {}, chosen;
    cublas_lt_status status = begin(n_matmul);
    if (status == CUBLAS_LT_SUCCESS)
        status = problem_of(&of, &problem);
    if (status != CUBLAS_LT_SUCCESS)
        return status;
    memcpy(&chosen, algorithm, sizeof chosen);
    const bool has_bias = problem.epilogue == CUBLAS_LT_EPILOGUE_BIAS;
    if (!a || !b || !c || !d || (has_bias && !of.desc->bias) || workspace_bytes < chosen.workspace_bytes ||
        !workspace)
        return INVALID_VALUE;
    if (!aligned(a) || !aligned(b) || !aligned(c) || !aligned(d) || !aligned(workspace) ||
        (has_bias && !aligned(of.desc->bias)))
        return CUBLAS_LT_NOT_SUPPORTED;
    if (memcmp(&problem, &chosen, sizeof problem) != 0)
        emu_die("cublasLtMatmul of %u × %u by %u: its algorithm was chosen for %u × %u by %u", problem.m,
                problem.k, problem.n, chosen.m, chosen.k, chosen.n);
    const struct product product = {(const bf16_t *)a,
                                    (const bf16_t *)b,
                                    (const float *)c,
                                    has_bias ? of.desc->bias : NULL,
                                    (float *)d,
                                    of.a->leading,
                                    of.b->leading,
                                    of.d->leading,
                                    problem.m,
                                    problem.n,
                                    problem.k,
                                    problem.transposed != 0,
                                    *(const float *)alpha,
                                    *(const float *)beta,
                                    (uint8_t *)workspace,
                                    workspace_bytes};
    const int r = simt_launch((struct device_stream *)stream, "cublasLtMatmul", multiply,
                              {(problem.m + EACH - 1) / EACH, 1, 1}, {EACH, 1, 1}, 0, product);
    return r < 0 ? 13 : CUBLAS_LT_SUCCESS;
}

int cublas_lt_find(uint32_t of, struct cublas_lt *ret_calls, struct error *err)
{
    version = of;
    if (strcmp(wanted(), "missing") == 0)
        return error_set(err, -ENOENT, "the emulated device has no libcublasLt.so.%u", of);
    memset(counts, 0, sizeof counts);
    *ret_calls =
        cublas_lt{get_version,    status_name,        create,        destroy,        desc_create,
                  desc_set,       desc_destroy,       layout_create, layout_destroy, preference_create,
                  preference_set, preference_destroy, heuristic,     algorithm_get,  matmul};
    return 0;
}
