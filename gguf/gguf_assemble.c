/* SPDX-License-Identifier: MIT */
/* Models from other files than GGUF's: seen from outside they are as if they had been read from one.
 *
 * The head that such a file would begin with is written to memory and parsed as any other, so that whatever
 * is refused there is refused here; names, strings and arrays point into it.
 *
 * A tensor that is made has an address from the beginning, so whoever reads it need not know; its pages,
 * which are its own, are inaccessible until rows are made, and again when all of it was given back. Not row
 * by row: each border between what is accessible and what is not is a mapping more, of which a process may
 * have 65,530. So a model that is only looked at costs no memory, one that is packed that of a few rows, and
 * a reader who forgot to ask is found out. */

#include "gguf/gguf_assemble.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/utf8.h"
#include "gguf/gguf_internal.h"
#include "gguf/gguf_writer.h"

int gguf_new(struct gguf **ret_gguf)
{
    struct gguf *gguf = calloc(1, sizeof *gguf);
    if (!gguf)
        return -ENOMEM;
    *ret_gguf = gguf;
    return 0;
}

int gguf_add_file(struct gguf *gguf, const char *path, const char *kind, struct bytes *ret_bytes,
                  struct error *err)
{
    return gguf_map_file(gguf, path, kind, ret_bytes, err);
}

static int add_memory(struct gguf *gguf, enum gguf_map_kind kind, size_t size, void **ret_memory)
{
    const bool made = kind == GGUF_MAP_MADE;
    struct gguf_map *maps = reallocarray(gguf->maps, gguf->n_maps + 1, sizeof *maps);
    if (!maps)
        return -ENOMEM;
    gguf->maps = maps;
    void *memory = mmap(NULL, size ? size : 1, made ? PROT_NONE : PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | (made ? MAP_NORESERVE : 0), -1, 0);
    if (memory == MAP_FAILED)
        return -ENOMEM;
    maps[gguf->n_maps++] = (struct gguf_map){.kind = kind, .memory = memory, .size = size ? size : 1};
    *ret_memory = memory;
    return 0;
}

int gguf_add_memory(struct gguf *gguf, size_t size, void **ret_memory)
{
    return add_memory(gguf, GGUF_MAP_DERIVED, size, ret_memory);
}

int gguf_add_maker(struct gguf *gguf, const struct gguf_maker *maker, size_t size, void **ret_memory)
{
    gguf->maker = malloc(sizeof *gguf->maker);
    if (!gguf->maker) {
        maker->free(maker->arg);
        return -ENOMEM;
    }
    *gguf->maker = *maker;
    return add_memory(gguf, GGUF_MAP_MADE, size, ret_memory);
}

/* Does it lie where its maker is to put it? */
static bool is_made(const struct gguf *gguf, const void *data)
{
    for (size_t i = 0; i < gguf->n_maps; i++) {
        const struct gguf_map *map = &gguf->maps[i];
        const uintptr_t at = (uintptr_t)data, start = (uintptr_t)map->memory;
        if (map->kind == GGUF_MAP_MADE && at >= start && at - start < map->size)
            return true;
    }
    return false;
}

int gguf_assemble(struct gguf *gguf, const struct gguf_writer *writer, const void *const *data,
                  struct error *err)
{
    struct buffer head = {0};
    void *memory = NULL;
    int r = gguf_writer_head(writer, &head);
    if (r == 0)
        r = add_memory(gguf, GGUF_MAP_HEAD, head.len, &memory);
    if (r == 0) {
        memcpy(memory, head.data, head.len);
        r = gguf_parse_head((struct bytes){memory, head.len}, gguf, err);
    }
    for (size_t i = 0; r == 0 && i < gguf->n_tensors; i++) {
        gguf->tensors[i].data = data[i];
        gguf->tensors[i].maker = is_made(gguf, data[i]) ? gguf->maker : NULL;
        gguf->tensors[i].number = i;
    }
    buffer_deinit(&head);
    return r < 0 ? r : gguf_index(gguf, err);
}

void gguf_replace_tensor(struct gguf *gguf, size_t i, enum format format, const void *data)
{
    struct gguf_tensor *tensor = &gguf->tensors[i];
    tensor->size =
        format_bytes(format, tensor->dims[0] * tensor->dims[1] * tensor->dims[2] * tensor->dims[3]);
    tensor->format = format;
    tensor->data = data;
    tensor->maker = NULL;
}

/* ---- making ---- */

#define MOST_THREADS 64
#define ROWS_AT_ONCE 64

struct making { /* rows under work, shared by threads */
    const struct gguf_tensor *tensor;
    size_t row_bytes;
    uint64_t end;
    atomic_uint_fast64_t next;
    atomic_int result;
    struct error *err; /* of the thread that set the result */
};

static void *make_share(void *arg)
{
    struct making *making = arg;
    const struct gguf_tensor *tensor = making->tensor;
    const struct gguf_maker *maker = tensor->maker;
    while (atomic_load(&making->result) == 0) {
        struct error err = {0};
        const uint64_t first = atomic_fetch_add(&making->next, ROWS_AT_ONCE);
        if (first >= making->end)
            break;
        const uint64_t left = making->end - first, n = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE;
        int r = maker->make(maker->arg, tensor->number, first, n,
                            (uint8_t *)(uintptr_t)tensor->data + first * making->row_bytes, &err);
        int none = 0;
        if (r < 0 && atomic_compare_exchange_strong(&making->result, &none, r) && making->err)
            *making->err = err;
    }
    return NULL;
}

/* Makes the pages of a tensor accessible, or inaccessible. */
static int protect(const struct gguf_tensor *tensor, int access)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)tensor->data / page * page;
    const uintptr_t end = ((uintptr_t)tensor->data + tensor->size + page - 1) / page * page;
    return mprotect((void *)start, end - start, access) < 0 ? -errno : 0;
}

int gguf_make_rows(const struct gguf_tensor *tensor, uint64_t first, uint64_t n, unsigned n_threads,
                   struct error *err)
{
    char name[96];
    if (!tensor->maker || n == 0)
        return 0;
    struct making making = {.tensor = tensor,
                            .row_bytes = format_bytes(tensor->format, tensor->dims[0]),
                            .end = first + n,
                            .next = first,
                            .err = err};
    int r = protect(tensor, PROT_READ | PROT_WRITE);
    if (r < 0)
        return error_set(err, r, "not enough memory for tensor %s",
                         utf8_printable(tensor->name, sizeof name, name));
    pthread_t threads[MOST_THREADS];
    unsigned helpers = 0;
    /* The caller works too; threads that cannot be had only make it slower. */
    while (helpers + 1 < n_threads && helpers < MOST_THREADS && (helpers + 1) * ROWS_AT_ONCE < n &&
           pthread_create(&threads[helpers], NULL, make_share, &making) == 0)
        helpers++;
    make_share(&making);
    for (unsigned i = 0; i < helpers; i++)
        pthread_join(threads[i], NULL);
    return atomic_load(&making.result);
}

int gguf_make_tensor(const struct gguf_tensor *tensor, unsigned n_threads, struct error *err)
{
    return gguf_make_rows(tensor, 0, tensor->dims[1] * tensor->dims[2] * tensor->dims[3], n_threads, err);
}

void gguf_give_back_tensor(const struct gguf *gguf, const struct gguf_tensor *tensor)
{
    gguf_give_back(gguf, tensor->data, tensor->size);
    if (tensor->maker)
        protect(tensor, PROT_NONE);
}

/* ---- replacing ---- */

void gguf_set_variant(struct gguf *gguf, const char *name)
{
    gguf->variant = hash64(name, strlen(name), gguf->variant);
}

/* A copy that lives as long as the gguf. */
static int keep_text(struct gguf *gguf, struct bytes *text)
{
    void *memory;
    int r = gguf_add_memory(gguf, text->len + 1, &memory);
    if (r == 0 && text->len > 0)
        memcpy(memory, text->data, text->len);
    if (r == 0)
        text->data = memory;
    return r;
}

int gguf_set_value(struct gguf *gguf, const char *key, const struct gguf_value *value)
{
    struct gguf_value kept = *value;
    int r = value->type == GGUF_STRING ? keep_text(gguf, &kept.string) : 0;
    for (size_t i = 0; i < gguf->n_pairs && r == 0; i++)
        if (bytes_equal(gguf->pairs[i].key, bytes_of_string(key))) {
            gguf->pairs[i].value = kept;
            gguf_forget_found(gguf, key);
            return 0;
        }
    struct bytes name = bytes_of_string(key);
    if (r == 0)
        r = keep_text(gguf, &name);
    if (r < 0)
        return r;
    struct gguf_pair *pairs = realloc(gguf->pairs, (gguf->n_pairs + 1) * sizeof *pairs);
    if (!pairs)
        return -ENOMEM;
    pairs[gguf->n_pairs++] = (struct gguf_pair){name, kept};
    gguf->pairs = pairs;
    return gguf_index(gguf, NULL);
}
