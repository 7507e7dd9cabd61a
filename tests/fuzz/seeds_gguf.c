/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_gguf: the smallest models that open, in several formats, and a file of every metadata type.
 */

#include "tests/fuzz/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/rundir.h"
#include "worker/model/gguf.h"
#include "worker/model/synth.h"

static void add_file(const char *path)
{
    static uint8_t data[1 << 20];
    FILE *file = fopen(path, "re");
    if (!file)
        abort();
    fuzz_add_seed(data, fread(data, 1, sizeof data, file));
    fclose(file);
}

static void add_model(const char *path, const char *type, bool tied, uint32_t columns)
{
    struct synth_shape shape = {.name = "seed",
                                .n_vocab = 360,
                                .n_context = 32,
                                .n_embd = columns,
                                .n_layers = 1,
                                .n_heads = 2,
                                .n_kv_heads = 1,
                                .head_dim = columns / 2,
                                .n_ff = columns,
                                .rms_epsilon = 1e-5f,
                                .rope_base = 10000,
                                .rope_factor = tied ? 8 : 0,
                                .tied = tied,
                                .biases = !tied};
    struct error err;
    if (synth_write(&shape, mixture_by_name(type), 1, path, &err) < 0)
        abort();
    add_file(path);
}

static void add_metadata(const char *path)
{
    struct gguf_writer *writer;
    struct bytes words[] = {BYTES_LITERAL("a"), BYTES_LITERAL(""), BYTES_LITERAL("bc")};
    if (gguf_writer_new(&writer) < 0)
        abort();
    static const enum gguf_type types[] = {GGUF_U8,  GGUF_I8,   GGUF_U16, GGUF_I16, GGUF_U32, GGUF_I32,
                                           GGUF_F32, GGUF_BOOL, GGUF_U64, GGUF_I64, GGUF_F64};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char key = (char)('a' + i);
        struct gguf_pair pair = {.key = {&key, 1}, .value.type = types[i]};
        pair.value.u = 1;
        gguf_writer_pair(writer, &pair);
    }
    gguf_writer_strings(writer, "words", words, 3);
    gguf_writer_i32s(writer, "integers", (int32_t[]){-1, 2}, 2);
    gguf_writer_f32s(writer, "reals", (float[]){0.5f}, 1);
    gguf_writer_string(writer, "general.architecture", "llama");
    if (gguf_writer_write(writer, path, NULL) < 0)
        abort();
    gguf_writer_free(writer);
    add_file(path);
}

void fuzz_seeds(void)
{
    char dir[RUNDIR_PATH_MAX + 1], path[RUNDIR_PATH_MAX + 16];
    if (rundir_temporary(dir, NULL) < 0)
        abort();
    snprintf(path, sizeof path, "%s/seed.gguf", dir);
    add_metadata(path);
    add_model(path, "Q4_0", true, 32);
    add_model(path, "F16", false, 32);
    add_model(path, "Q4_K_M", true, 256);
    rundir_remove(dir);
}
