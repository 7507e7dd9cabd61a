/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_MODEL_EDITED_H
#define TESTS_UNIT_MODEL_EDITED_H

/* Model files that differ from valid ones in one place. */

#include <check.h>
#include <string.h>

#include "common/utf8.h"
#include "gguf/gguf_writer.h"

static inline int fill_copy(void *arg, void *out, size_t size)
{
    memcpy(out, arg, size);
    return 0;
}

static inline int fill_zero(void *arg, void *out, size_t size)
{
    memset(out, 0, size);
    return 0;
}

static inline bool is_named(struct bytes name, const char *other)
{
    return other && bytes_equal(name, bytes_of_string(other));
}

/* A change to a model: a key set to numbers, or removed if there are none, and a tensor added or, if the file
 * has it, removed. */
struct edit {
    const char *key;
    int32_t numbers[16];
    size_t n;   /* 1: no list */
    bool bools; /* a list of booleans */
    const char *tensor;
    const char *says;
};

static inline void write_edited(const char *path, const struct edit *edit, const char *edited)
{
    struct gguf *gguf;
    struct gguf_writer *w;
    struct error err = {0};
    const uint64_t dims[] = {48};
    bool bools[16], there = false;
    ck_assert_int_eq(gguf_open(path, &gguf, &err), 0);
    ck_assert_int_eq(gguf_writer_new(&w), 0);
    for (size_t i = 0; i < gguf_n_pairs(gguf); i++)
        if (!is_named(gguf_pair_at(gguf, i)->key, edit->key))
            ck_assert_int_eq(gguf_writer_pair(w, gguf_pair_at(gguf, i)), 0);
    for (size_t i = 0; i < edit->n; i++)
        bools[i] = edit->numbers[i];
    if (edit->n > 1 && edit->bools)
        ck_assert_int_eq(gguf_writer_bools(w, edit->key, bools, edit->n), 0);
    else if (edit->n > 1)
        ck_assert_int_eq(gguf_writer_i32s(w, edit->key, edit->numbers, edit->n), 0);
    else if (edit->n == 1)
        ck_assert_int_eq(gguf_writer_u32(w, edit->key, (uint32_t)edit->numbers[0]), 0);
    for (size_t i = 0; i < gguf_n_tensors(gguf); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(gguf, i);
        char name[64];
        if (is_named(t->name, edit->tensor)) {
            there = true;
            continue;
        }
        ck_assert_int_eq(gguf_writer_tensor(w, utf8_printable(t->name, sizeof name, name), t->n_dims, t->dims,
                                            t->format, fill_copy, (void *)t->data),
                         0);
    }
    if (edit->tensor && !there)
        ck_assert_int_eq(gguf_writer_tensor(w, edit->tensor, 1, dims, FORMAT_F32, fill_zero, NULL), 0);
    ck_assert_msg(gguf_writer_write(w, edited, &err) == 0, "%s", err.text);
    gguf_writer_free(w);
    gguf_free(gguf);
}

#endif
