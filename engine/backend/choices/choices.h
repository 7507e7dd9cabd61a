/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_CHOICES_CHOICES_H
#define ENGINE_BACKEND_CHOICES_CHOICES_H

/* Which kernels compute a model's matrix products on a device, as measured there: a table that one worker
 * measures and others use (kept.h).
 *
 * A *launch* is up to CHOICES_TOGETHER matrices that read the same rows. A *bucket* is a number of rows: 1,
 * 2, 4 … 2048; a step has the choice of the smallest bucket that holds its rows. A *way* is how such a launch
 * can be computed. All ways but the library's give the same bits, so they may differ between workers; the
 * library gives different bits (choices_arithmetic).
 *
 * A table is plain bytes without pointers. Any table that choices_check accepts is safe to use: a way that
 * does not fit a launch falls back to the rule. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "common/error.h"

#define CHOICES_LAUNCHES 48
#define CHOICES_BUCKETS  12
#define CHOICES_TOGETHER 3

enum product_way {
    PRODUCT_BY_RULE, /* not measured: by the number of rows and tiles */
    PRODUCT_THIN_8,  /* our own tiles of 16 outputs by 8 rows */
    PRODUCT_THIN_16, /* by 16 */
    PRODUCT_WIDE,    /* tiles of 64 by 64, each computed by one block of threads */
    PRODUCT_SHARED,  /* the same, but tiles beyond the last full round are shared between blocks of threads */
    PRODUCT_LIBRARY, /* cuBLASLt, in bfloat16 */
    PRODUCT_WAYS
};

struct choices_matrix {
    uint32_t n_rows, n_columns; /* outputs, inputs */
    uint8_t format;             /* enum format */
    uint8_t has_bias;           /* 0 or 1 */
    uint8_t unused[2];          /* 0 */
};

struct choices_bucket {
    uint8_t way;               /* enum product_way: the fastest */
    uint8_t own;               /* the fastest of our own ways, for steps that may not use the library */
    uint8_t rule;              /* the rule's way; PRODUCT_BY_RULE if the rule was not consulted */
    uint8_t unused;            /* 0 */
    uint32_t ns[PRODUCT_WAYS]; /* of a launch; 0: not measured */
};

struct choices_launch {
    uint32_t n; /* matrices, ≥ 1 */
    struct choices_matrix matrices[CHOICES_TOGETHER];
    struct choices_bucket buckets[CHOICES_BUCKETS];
};

/* What a table is for. Workers with equal keys use one another's tables. */
struct choices_key {
    char device[64], driver[48]; /* the device's name, and its driver's version */
    uint64_t build;              /* of the kernels */
    uint64_t launches;           /* a digest of the model's launches, without their choices */
    uint32_t n_multiprocessors;
    uint32_t library;  /* version; 0: the library may not be used */
    uint32_t max_rows; /* of a step */
    uint32_t unused;   /* 0 */
};

struct choices {
    struct choices_key key;
    char model[64];       /* for people: "llama, 32 layers of 4096" */
    uint64_t measured_ns; /* how long measuring took */
    uint64_t when;        /* in seconds since 1970 */
    uint32_t n_launches;
    uint32_t complete; /* 1; 0: time ran out for some launches, which use the rule's ways */
    struct choices_launch launches[CHOICES_LAUNCHES];
};

/* The most rows of a bucket, and the bucket for this many rows, 1 to 2048. */
static inline uint32_t choices_rows(uint32_t bucket)
{
    return 1u << bucket;
}

static inline uint32_t choices_bucket_of(uint32_t n_rows)
{
    const uint32_t bucket = n_rows > 1 ? 32 - (uint32_t)__builtin_clz(n_rows - 1) : 0;
    return bucket < CHOICES_BUCKETS ? bucket : CHOICES_BUCKETS - 1;
}

/* "thin 8", "wide", "cuBLASLt" … */
const char *product_way_name(enum product_way way);

/* The key's digest of launches, from their matrices. */
uint64_t choices_digest_launches(const struct choices *choices);

/* Checks that all values are within their ranges and all texts are terminated and printable. 0, or -EINVAL
 * with what is wrong. */
int choices_check(const struct choices *choices, struct error *err);

/* How many buckets were measured, and in how many of them the fastest way is not the rule's. */
struct choices_counts {
    uint32_t measured, differ;
};
struct choices_counts choices_count(const struct choices *choices);

/* A digest of all choices that affect bits; 0: no launch uses the library. */
uint64_t choices_arithmetic(const struct choices *choices);

/* "12 launches of products timed in 412 ms, 5 of 96 choices differ from the rule", for status and logs. */
#define CHOICES_SUMMARY 128
void choices_summarize(const struct choices *choices, char ret_text[CHOICES_SUMMARY]);

/* "Q4_K 4096 × 4096 + Q4_K 1024 × 4096": a launch's matrices. */
#define CHOICES_NAME 128
void choices_name_launch(const struct choices_launch *launch, char ret_name[CHOICES_NAME]);

#ifdef __cplusplus
}
#endif

#endif
