/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_MODEL_HUGGINGFACE_WRITTEN_FOLDER_H
#define TESTS_UNIT_MODEL_HUGGINGFACE_WRITTEN_FOLDER_H

/* A model's folder that a test writes file by file and opens. Write errors fail the test. */

#include <jansson.h>
#include <stddef.h>

#include "common/files/rundir.h"
#include "model/model.h"

extern char dir[RUNDIR_PATH_MAX + 1];     /* for other files of the test, too */
extern char folder[RUNDIR_PATH_MAX + 20]; /* "model" in it */

/* A tokenizer.json with three tokens. */
#define SMALL_TOKENIZER                                                                                      \
    "{\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"             \
    "\"use_regex\":true},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},"                  \
    "\"merges\":[\"a b\"]}}"

/* Makes both folders, with these texts as config.json and tokenizer.json; removes both with their
 * contents. */
void folder_begin(const char *config, const char *tokenizer);
void folder_end(void);

/* Path of a file of the folder, valid until the next call. */
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

/* Opens the model at the path, which must be valid, and makes every tensor. The caller frees it. */
struct model *open_model(const char *path);

/* Makes all tensors of an opened model, so that they can be read. */
void make_tensors(const struct model *model);

#endif
