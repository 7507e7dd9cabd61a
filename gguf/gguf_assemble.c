/* SPDX-License-Identifier: MIT */
/* Models from other files than GGUF's: seen from outside they are as if they had been read from one.
 *
 * The head that such a file would begin with is written to memory and parsed as any other, so that whatever
 * is refused there is refused here; names, strings and arrays point into it. */

#include "gguf/gguf_assemble.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/hash.h"
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
    struct gguf_map *maps = reallocarray(gguf->maps, gguf->n_maps + 1, sizeof *maps);
    if (!maps)
        return -ENOMEM;
    gguf->maps = maps;
    void *memory = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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
    for (size_t i = 0; r == 0 && i < gguf->n_tensors; i++)
        gguf->tensors[i].data = data[i];
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
}

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
    free(gguf->by_key);
    free(gguf->by_name);
    gguf->by_key = NULL;
    gguf->by_name = NULL;
    return gguf_index(gguf, NULL);
}
