/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_MODEL_HUGGINGFACE_WRITTEN_FOLDER_H
#define TESTS_UNIT_MODEL_HUGGINGFACE_WRITTEN_FOLDER_H

/* A model's folder that a test writes, file by file, and opens. What cannot be written fails the test. */

#include <jansson.h>
#include <stddef.h>

#include "common/files/rundir.h"
#include "model/model.h"

extern char dir[RUNDIR_PATH_MAX + 1];     /* where the test may have other files too */
extern char folder[RUNDIR_PATH_MAX + 20]; /* "model" in it */

/* A tokenizer.json with three tokens. */
#define SMALL_TOKENIZER                                                                                      \
    "{\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"             \
    "\"use_regex\":true},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},"                  \
    "\"merges\":[\"a b\"]}}"

/* Makes both, with these texts as config.json and tokenizer.json; removes both with all that is in them. */
void folder_begin(const char *config, const char *tokenizer);
void folder_end(void);

/* Path of a file of the folder, until the next call. */
const char *path_of(const char *name);

void write_bytes(const char *name, const void *data, size_t len);
void write_text(const char *name, const char *text);

/* A tensor in a header of SafeTensors: its numbers are the bytes begin … end − 1. rows 0: a vector. */
struct shape {
    const char *name;
    int rows, columns;
};
void add_tensor(json_t *header, const struct shape *shape, const char *dtype, size_t begin, size_t end);

/* Writes a file of SafeTensors, header and numbers; spaces make the header a multiple of `align` bytes long,
 * and `more` bytes longer. Takes the header. */
void write_safetensors(const char *name, json_t *header, size_t align, size_t more, const void *data,
                       size_t len);

/* The model at the path, which must be one, with every tensor made. To be freed. */
struct model *open_model(const char *path);

/* Makes the tensors of a model that was opened: then all may be read. */
void make_tensors(const struct model *model);

#endif
