/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_SAFETENSORS_H
#define MODEL_HUGGINGFACE_SAFETENSORS_H

/* SafeTensors files (https://github.com/huggingface/safetensors): a length, a header in JSON, the tensors'
 * bytes.
 *
 * Headers are untrusted: every offset is checked against the file, the shape and the other tensors. Parsing
 * is separate from opening and borrows the bytes. */

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"

#define SAFETENSORS_MAX_DIMS 8

struct safetensor {
    const char *name;      /* lives as long as the file's header */
    const char *dtype;     /* "BF16"; always a known one */
    uint32_t element_size; /* bytes, ≥ 1 */
    uint32_t n_dims;
    uint64_t dims[SAFETENSORS_MAX_DIMS]; /* slowest first, as in the file */
    const uint8_t *data;
    size_t size; /* bytes: element_size times all dims */
};

struct safetensors {
    json_t *header;
    struct safetensor *tensors; /* [n], in the order of their offsets */
    size_t n;
};

/* 0, or -EINVAL with a reason that names the tensor: a header that is longer than the file or 16 MiB, or not
 * JSON; an unknown dtype; a shape that does not match the number of bytes; bytes outside the file or
 * overlapping another tensor's. -ENOMEM. `ret_file` is unchanged on failure. */
int safetensors_parse(struct bytes file, struct safetensors *ret_file, struct error *err);
void safetensors_deinit(struct safetensors *file);

#endif
