/* SPDX-License-Identifier: MIT */
#ifndef MODEL_CONVERT_QUANTIZE_H
#define MODEL_CONVERT_QUANTIZE_H

/* Converts a model in F32, F16 or BF16 to a smaller format. Metadata is copied; general.file_type is set.
 * Stacks of experts in MXFP4 keep it, unless `requantize` is set. */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "gguf/gguf.h"
#include "gguf/gguf_writer.h"
#include "model/convert/mixture.h"

/* The decision for tensor `i` of `n`; the work begins after the call. */
struct quantize_step {
    size_t i, n;
    const struct gguf_tensor *from;
    enum format format, wanted; /* they differ if its rows do not fit the mixture's format */
    size_t size;                /* its future bytes */
};
typedef void quantize_progress(void *arg, const struct quantize_step *step);

struct quantize_options {
    unsigned n_threads; /* 0: one for each core */
    bool requantize;    /* accept matrices that are already quantized; the errors add up */
};

/* IN may be a folder (model/huggingface/folder.h); OUT has its rows in the order of GGUF files. `progress`
 * may be NULL. OUT appears when it is complete; on failure nothing is left behind, and an existing file is
 * unchanged. -errno with a reason: a matrix is already quantized, the output is one of the inputs, or any
 * error of gguf_open and gguf_writer_write. */
int quantize_file(const char *in, const struct mixture *mixture, const char *out,
                  const struct quantize_options *options, quantize_progress *progress, void *progress_arg,
                  struct error *err);

/* Whether quantize_in_memory would convert these tensors: 0, or -errno with its reason. */
int quantize_check(const struct gguf *gguf, const struct mixture *mixture,
                   const struct quantize_options *options, struct error *err);

/* The same in memory: afterwards the tensors of `gguf` are quantized copies, and the pages of the originals
 * are released. Rows keep their order. -errno with a reason; then only gguf_free may be called. */
int quantize_in_memory(struct gguf *gguf, const struct mixture *mixture,
                       const struct quantize_options *options, quantize_progress *progress,
                       void *progress_arg, struct error *err);

#endif
