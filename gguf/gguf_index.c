/* SPDX-License-Identifier: MIT */
/* Look-ups in a model: pairs by key, tensors by name or place.
 *
 * Binary searches over sorted pointers: there is no hash that a hostile file could make collide. */

#include "gguf/gguf_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

static int compare_bytes(struct bytes a, struct bytes b)
{
    int order = memcmp(a.data, b.data, a.len < b.len ? a.len : b.len);
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_pairs(const void *a, const void *b)
{
    return compare_bytes((*(const struct gguf_pair *const *)a)->key,
                         (*(const struct gguf_pair *const *)b)->key);
}

static int compare_tensors(const void *a, const void *b)
{
    return compare_bytes((*(const struct gguf_tensor *const *)a)->name,
                         (*(const struct gguf_tensor *const *)b)->name);
}

static int refuse_duplicate(const char *what, struct bytes name, struct error *err)
{
    char text[96];
    return error_set(err, -EINVAL, "duplicate %s %s", what, utf8_printable(name, sizeof text, text));
}

void gguf_drop_index(struct gguf *gguf)
{
    free(gguf->by_key);
    free(gguf->by_name);
    free(gguf->found);
    gguf->by_key = NULL;
    gguf->by_name = NULL;
    gguf->found = NULL;
}

int gguf_index(struct gguf *gguf, struct error *err)
{
    gguf_drop_index(gguf);
    gguf->by_key = calloc(gguf->n_pairs + 1, sizeof *gguf->by_key);
    gguf->by_name = calloc(gguf->n_tensors + 1, sizeof *gguf->by_name);
    gguf->found = calloc(gguf->n_pairs + 1, sizeof *gguf->found);
    if (!gguf->by_key || !gguf->by_name || !gguf->found)
        return -ENOMEM;
    for (size_t i = 0; i < gguf->n_pairs; i++)
        gguf->by_key[i] = &gguf->pairs[i];
    for (size_t i = 0; i < gguf->n_tensors; i++)
        gguf->by_name[i] = &gguf->tensors[i];
    qsort(gguf->by_key, gguf->n_pairs, sizeof *gguf->by_key, compare_pairs);
    qsort(gguf->by_name, gguf->n_tensors, sizeof *gguf->by_name, compare_tensors);
    for (size_t i = 1; i < gguf->n_pairs; i++)
        if (bytes_equal(gguf->by_key[i - 1]->key, gguf->by_key[i]->key))
            return refuse_duplicate("metadata", gguf->by_key[i]->key, err);
    for (size_t i = 1; i < gguf->n_tensors; i++)
        if (bytes_equal(gguf->by_name[i - 1]->name, gguf->by_name[i]->name))
            return refuse_duplicate("tensor", gguf->by_name[i]->name, err);
    return 0;
}

/* Its place in by_key; SIZE_MAX: there is none. */
static size_t place_of(const struct gguf *gguf, const char *key)
{
    struct gguf_pair wanted = {.key = bytes_of_string(key)};
    const struct gguf_pair *pointer = &wanted;
    const struct gguf_pair *const *place =
        bsearch(&pointer, gguf->by_key, gguf->n_pairs, sizeof *gguf->by_key, compare_pairs);
    return place ? (size_t)(place - gguf->by_key) : SIZE_MAX;
}

const struct gguf_value *gguf_find(const struct gguf *gguf, const char *key)
{
    const size_t i = place_of(gguf, key);
    if (i == SIZE_MAX)
        return NULL;
    atomic_store_explicit(&gguf->found[i], true, memory_order_relaxed);
    return &gguf->by_key[i]->value;
}

bool gguf_was_found(const struct gguf *gguf, const char *key)
{
    const size_t i = place_of(gguf, key);
    return i < SIZE_MAX && atomic_load_explicit(&gguf->found[i], memory_order_relaxed);
}

void gguf_forget_found(struct gguf *gguf, const char *key)
{
    const size_t i = place_of(gguf, key);
    if (i < SIZE_MAX)
        atomic_store_explicit(&gguf->found[i], false, memory_order_relaxed);
}

const struct gguf_tensor *gguf_find_tensor(const struct gguf *gguf, const char *name)
{
    struct gguf_tensor wanted = {.name = bytes_of_string(name)};
    const struct gguf_tensor *pointer = &wanted;
    const struct gguf_tensor *const *found =
        bsearch(&pointer, gguf->by_name, gguf->n_tensors, sizeof *gguf->by_name, compare_tensors);
    return found ? *found : NULL;
}

uint32_t gguf_version(const struct gguf *gguf)
{
    return gguf->version;
}

size_t gguf_n_pairs(const struct gguf *gguf)
{
    return gguf->n_pairs;
}

const struct gguf_pair *gguf_pair_at(const struct gguf *gguf, size_t i)
{
    return &gguf->pairs[i];
}

size_t gguf_n_tensors(const struct gguf *gguf)
{
    return gguf->n_tensors;
}

const struct gguf_tensor *gguf_tensor_at(const struct gguf *gguf, size_t i)
{
    return &gguf->tensors[i];
}
