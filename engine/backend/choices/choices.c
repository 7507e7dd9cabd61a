/* SPDX-License-Identifier: MIT */
/* Tables of choices: what is in them, and whether it may be believed. */

#include "engine/backend/choices/choices.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/hash.h"
#include "gguf/format.h"

const char *product_way_name(enum product_way way)
{
    static const char *const names[PRODUCT_WAYS] = {
        [PRODUCT_BY_RULE] = "by rule", [PRODUCT_THIN_8] = "thin 8", [PRODUCT_THIN_16] = "thin 16",
        [PRODUCT_WIDE] = "wide",       [PRODUCT_SHARED] = "shared", [PRODUCT_LIBRARY] = "cuBLASLt"};
    return way < PRODUCT_WAYS ? names[way] : "?";
}

uint64_t choices_digest_launches(const struct choices *choices)
{
    uint64_t digest = choices->n_launches;
    for (uint32_t i = 0; i < choices->n_launches; i++) {
        const struct choices_launch *launch = &choices->launches[i];
        digest = hash64(launch->matrices, launch->n * sizeof *launch->matrices, digest + launch->n);
    }
    return digest;
}

/* ---- checking ---- */

static bool is_text(const char *text, size_t size)
{
    const char *end = memchr(text, 0, size);
    for (const char *c = text; end && c < end; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return false;
    return end != NULL;
}

static bool is_matrix(const struct choices_matrix *matrix)
{
    return matrix->n_rows > 0 && matrix->n_columns > 0 && matrix->format < FORMAT_LIMIT &&
           matrix->has_bias <= 1;
}

static bool is_bucket(const struct choices_bucket *bucket, bool may_library)
{
    return bucket->way < PRODUCT_WAYS && bucket->rule < PRODUCT_LIBRARY &&
           (may_library || bucket->way != PRODUCT_LIBRARY) &&
           (bucket->way == PRODUCT_BY_RULE || bucket->ns[bucket->way] > 0) && bucket->own < PRODUCT_LIBRARY &&
           (bucket->own == PRODUCT_BY_RULE || bucket->ns[bucket->own] > 0);
}

static bool is_launch(const struct choices_launch *launch, bool may_library)
{
    if (launch->n == 0 || launch->n > CHOICES_TOGETHER)
        return false;
    for (uint32_t i = 0; i < launch->n; i++)
        if (!is_matrix(&launch->matrices[i]))
            return false;
    for (uint32_t b = 0; b < CHOICES_BUCKETS; b++)
        if (!is_bucket(&launch->buckets[b], may_library))
            return false;
    return true;
}

int choices_check(const struct choices *choices, struct error *err)
{
    const struct choices_key *key = &choices->key;
    if (!is_text(key->device, sizeof key->device) || !is_text(key->driver, sizeof key->driver) ||
        !is_text(choices->model, sizeof choices->model))
        return error_set(err, -EINVAL, "a name is not text");
    if (choices->n_launches > CHOICES_LAUNCHES || choices->complete > 1)
        return error_set(err, -EINVAL, "%u launches; at most %d are allowed", choices->n_launches,
                         CHOICES_LAUNCHES);
    for (uint32_t i = 0; i < choices->n_launches; i++)
        if (!is_launch(&choices->launches[i], key->library > 0))
            return error_set(err, -EINVAL, "launch %u has values out of range", i);
    return 0;
}

/* ---- facts ---- */

struct choices_counts choices_count(const struct choices *choices)
{
    struct choices_counts counts = {0};
    for (uint32_t i = 0; i < choices->n_launches; i++)
        for (uint32_t b = 0; b < CHOICES_BUCKETS; b++) {
            const struct choices_bucket *bucket = &choices->launches[i].buckets[b];
            counts.measured += bucket->way != PRODUCT_BY_RULE;
            counts.differ += bucket->way != PRODUCT_BY_RULE && bucket->way != bucket->rule;
        }
    return counts;
}

uint64_t choices_arithmetic(const struct choices *choices)
{
    uint8_t is_library[CHOICES_LAUNCHES][CHOICES_BUCKETS] = {{0}};
    bool any = false;
    for (uint32_t i = 0; i < choices->n_launches; i++)
        for (uint32_t b = 0; b < CHOICES_BUCKETS; b++) {
            is_library[i][b] = choices->launches[i].buckets[b].way == PRODUCT_LIBRARY;
            any |= is_library[i][b];
        }
    return any ? hash64(is_library, sizeof is_library, choices->key.library) | 1 : 0;
}

void choices_summarize(const struct choices *choices, char ret_text[CHOICES_SUMMARY])
{
    const struct choices_counts counts = choices_count(choices);
    snprintf(ret_text, CHOICES_SUMMARY,
             "%u launches of products timed in %.0f ms, %u of %u choices differ from the rule%s",
             choices->n_launches, (double)choices->measured_ns / 1e6, counts.differ, counts.measured,
             choices->complete ? "" : ", time ran out");
}

void choices_name_launch(const struct choices_launch *launch, char ret_name[CHOICES_NAME])
{
    size_t at = 0;
    ret_name[0] = 0;
    for (uint32_t i = 0; i < launch->n && at < CHOICES_NAME; i++) {
        const struct choices_matrix *matrix = &launch->matrices[i];
        const char *format = format_traits(matrix->format)->name;
        const int n = snprintf(ret_name + at, CHOICES_NAME - at, "%s%s %u × %u%s", i > 0 ? " + " : "",
                               format ? format : "?", matrix->n_rows, matrix->n_columns,
                               matrix->has_bias ? " with a bias" : "");
        at += n > 0 ? (size_t)n : 0;
    }
}
