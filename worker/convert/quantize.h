/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CONVERT_QUANTIZE_H
#define WORKER_CONVERT_QUANTIZE_H

/* From a model in F32, F16 or BF16 to one in a smaller format. Metadata is copied; general.file_type is set.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "worker/gguf/gguf.h"
#include "worker/convert/mixture.h"

/* What has just been decided for tensor `i` of `n`; its work begins after the call. */
struct quantize_step {
    size_t i, n;
    const struct gguf_tensor *from;
    enum format format;
    size_t size; /* bytes that it will have */
};
typedef void quantize_progress(void *arg, const struct quantize_step *step);

struct quantize_options {
    unsigned n_threads; /* 0: one for each core */
    bool requantize;    /* take matrices that are quantized already: their loss adds to the new one */
};

/* `progress` may be NULL. OUT appears when it is complete; on failure nothing is left and what had its name
 * before is untouched. -errno with a reason: a matrix that is quantized already, an output that is the input
 * or one of its parts, whatever gguf_open and gguf_writer_write refuse. */
int quantize_file(const char *in, const struct mixture *mixture, const char *out,
                  const struct quantize_options *options, quantize_progress *progress, void *progress_arg,
                  struct error *err);

#endif
