/* SPDX-License-Identifier: MIT */
#include "tests/unit/model/huggingface/written_folder.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char dir[RUNDIR_PATH_MAX + 1], folder[RUNDIR_PATH_MAX + 20];

void folder_begin(const char *config, const char *tokenizer)
{
    ck_assert_int_eq(rundir_temporary(dir, NULL), 0);
    snprintf(folder, sizeof folder, "%s/model", dir);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    write_text("config.json", config);
    write_text("tokenizer.json", tokenizer);
}

void folder_end(void)
{
    rundir_remove(folder);
    rundir_remove(dir);
}

const char *path_of(const char *name)
{
    static char path[RUNDIR_PATH_MAX + 120];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

void write_bytes(const char *name, const void *data, size_t len)
{
    FILE *file = fopen(path_of(name), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, len, file), len);
    ck_assert_int_eq(fclose(file), 0);
}

void write_text(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text));
}

void add_tensor(json_t *header, const struct shape *shape, const char *dtype, size_t begin, size_t end)
{
    json_t *dims =
        shape->rows ? json_pack("[i,i]", shape->rows, shape->columns) : json_pack("[i]", shape->columns);
    json_object_set_new(header, shape->name,
                        json_pack("{s:s,s:o,s:[I,I]}", "dtype", dtype, "shape", dims, "data_offsets",
                                  (json_int_t)begin, (json_int_t)end));
}

void write_safetensors(const char *name, json_t *header, size_t align, size_t more, const void *data,
                       size_t len)
{
    char *text = json_dumps(header, JSON_COMPACT);
    const size_t text_len = strlen(text);
    const uint64_t header_len = (text_len + align - 1) / align * align + more;
    uint8_t *file = malloc(8 + header_len + len);
    ck_assert_ptr_nonnull(file);
    memcpy(file, &header_len, 8);
    memset(file + 8, ' ', header_len);
    memcpy(file + 8, text, text_len);
    memcpy(file + 8 + header_len, data, len);
    write_bytes(name, file, 8 + header_len + len);
    free(file);
    free(text);
    json_decref(header);
}

void make_tensors(const struct model *model)
{
    struct error err = {0};
    for (size_t i = 0; i < gguf_n_tensors(model->gguf); i++)
        ck_assert_msg(gguf_make_tensor(gguf_tensor_at(model->gguf, i), 2, &err) == 0, "%s", err.text);
}

struct model *open_model(const char *path)
{
    struct model *model = NULL;
    struct error err = {0};
    ck_assert_msg(model_open(path, true, &model, &err) == 0, "%s", err.text);
    make_tensors(model);
    return model;
}
