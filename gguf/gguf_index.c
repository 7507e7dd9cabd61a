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

int gguf_index(struct gguf *gguf, struct error *err)
{
    gguf->by_key = calloc(gguf->n_pairs + 1, sizeof *gguf->by_key);
    gguf->by_name = calloc(gguf->n_tensors + 1, sizeof *gguf->by_name);
    if (!gguf->by_key || !gguf->by_name)
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

const struct gguf_value *gguf_find(const struct gguf *gguf, const char *key)
{
    struct gguf_pair wanted = {.key = bytes_of_string(key)};
    const struct gguf_pair *pointer = &wanted;
    const struct gguf_pair *const *found =
        bsearch(&pointer, gguf->by_key, gguf->n_pairs, sizeof *gguf->by_key, compare_pairs);
    return found ? &(*found)->value : NULL;
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
