/* SPDX-License-Identifier: MIT */
#ifndef MODEL_FILES_H
#define MODEL_FILES_H

/* The files of a model, found by name and identified by their times without opening any: for processes that
 * confine themselves before they read untrusted data. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct model_files {
    char **paths; /* [n] of existing files */
    size_t n;
    uint64_t bytes; /* of files with tensors: about the size of all tensors */
    /* Identifies them: location, sizes, modification times, and the variant. */
    uint8_t key[16];
    /* The last change is old enough for any later change to show in the key; otherwise equal keys are only a
     * hint. */
    bool settled;
    uint64_t variant;
};

/* PATH is a GGUF file, which may be the first of several parts, or a folder, in which all regular files count
 * except hidden ones, and HUGGINGFACE_POOLING. Missing or inaccessible files are skipped: opening the model
 * reports them. `variant`: how the files are converted while read (the name of a mixture); NULL: not at all.
 * 0, or -ENOMEM with a reason; call model_files_deinit in either case. */
int model_files_find(const char *path, const char *variant, struct model_files *ret_files, struct error *err);
void model_files_deinit(struct model_files *files);

/* Whether one of them was replaced or removed. If not, and they were settled, files opened meanwhile under
 * these names match the key. */
bool model_files_changed(const struct model_files *files);

#endif
