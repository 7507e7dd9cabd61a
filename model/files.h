/* SPDX-License-Identifier: MIT */
#ifndef MODEL_FILES_H
#define MODEL_FILES_H

/* The files that a model may lie in, found by their names and known by their times, with none of them opened:
 * for who confines himself before he reads what a stranger wrote. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct model_files {
    char **paths; /* [n] those that are there */
    size_t n;
    uint64_t bytes; /* of those with tensors: about as many as the tensors have */
    /* Tells them from others: where they lie, their sizes, when they were changed last, and the variant. */
    uint8_t key[16];
    /* They were changed long enough ago that whatever changes them from now on shows in the key; else equal
     * keys are a hint and no proof. */
    bool settled;
    uint64_t variant;
};

/* PATH is a GGUF file, the first of its parts by its name too, or a folder, all of whose plain files count
 * but hidden ones, and HUGGINGFACE_POOLING below it. What is not there, or cannot be looked at, is left out:
 * who opens the model says what is wrong. `variant`: what is to be made of the files while they are read (the
 * name of a mixture); NULL: nothing. 0, or -ENOMEM with a reason; model_files_deinit is due then too. */
int model_files_find(const char *path, const char *variant, struct model_files *ret_files, struct error *err);
void model_files_deinit(struct model_files *files);

/* Whether one of them is another now, or gone. If not, and they were settled, what was opened meanwhile by
 * these names is what the key stands for. */
bool model_files_changed(const struct model_files *files);

#endif
