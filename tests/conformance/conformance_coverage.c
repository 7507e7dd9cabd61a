/* SPDX-License-Identifier: MIT */
/* Every architecture and every number format that models may have is in some model of the folder: who adds
 * one adds a model to make.py. */

#include <glob.h>
#include <string.h>

#include "tests/conformance/reference.h"
#include "model/architecture.h"
#include "model/model.h"

#define MOST_ARCHITECTURES 64

static bool formats[FORMAT_LIMIT], seen[MOST_ARCHITECTURES];

static bool look_at(const char *path)
{
    struct model *model;
    struct error err = {0};
    if (model_open(path, false, &model, &err) < 0) {
        printf("%s\n", err.text);
        return false;
    }
    for (size_t i = 0; i < gguf_n_tensors(model->gguf); i++)
        if (gguf_tensor_at(model->gguf, i)->n_dims > 1) /* a matrix: vectors are always F32 */
            formats[gguf_tensor_at(model->gguf, i)->format] = true;
    for (size_t i = 0; architectures[i] && i < MOST_ARCHITECTURES; i++)
        seen[i] |= strcmp(architectures[i]->name, model->params.architecture) == 0;
    model_free(model);
    return true;
}

int main(int argc, char **argv)
{
    char pattern[4200];
    glob_t files;
    int failed = 0;
    snprintf(pattern, sizeof pattern, "%s/*.gguf", reference_folder(argc, argv, "models"));
    if (glob(pattern, 0, NULL, &files) != 0)
        return 1;
    for (size_t i = 0; i < files.gl_pathc; i++)
        failed += !look_at(files.gl_pathv[i]);
    globfree(&files);
    for (uint32_t i = 0; i < FORMAT_LIMIT; i++)
        if (format_traits(i)->to_float && !formats[i]) {
            printf("no model has the format %s\n", format_traits(i)->name);
            failed++;
        }
    for (size_t i = 0; architectures[i]; i++)
        if (i >= MOST_ARCHITECTURES || !seen[i]) {
            printf("no model is of the architecture %s\n", architectures[i]->name);
            failed++;
        }
    return failed != 0;
}
