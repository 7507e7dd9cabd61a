/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_gguf: the smallest models that open, in several formats, and a file of every metadata type.
 */

#include "tests/fuzz/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files/rundir.h"
#include "gguf/gguf.h"
#include "gguf/gguf_writer.h"
#include "model/convert/synth.h"
#include "model/architecture.h"

static void add_file(const char *path)
{
    static uint8_t data[1 << 20];
    FILE *file = fopen(path, "re");
    if (!file)
        abort();
    fuzz_add_seed(data, fread(data, 1, sizeof data, file));
    fclose(file);
}

static void add_model(const char *path, const char *type, struct synth_shape shape)
{
    struct error err;
    shape.name = "seed";
    shape.n_vocab = 360;
    shape.n_context = 32;
    shape.n_layers = shape.attention_interval || shape.n_borrowing_layers ? 2 : 1;
    shape.norm_epsilon = 1e-5f;
    shape.rope_base = 10000;
    if (synth_write(&shape, mixture_by_name(type), 1, path, &err) < 0)
        abort();
    add_file(path);
}

/* One of each kind of attention and feed-forward. */
static struct synth_shape shape_of(const char *architecture, uint32_t columns)
{
    return (struct synth_shape){.architecture = architecture,
                                .n_embd = columns,
                                .n_heads = 2,
                                .n_kv_heads = 1,
                                .head_dim = columns / 2,
                                .n_ff = columns};
}

/* A file whose heads, multiplied in 32 bits, are few. */
static void add_overflow(const char *path)
{
    static const uint32_t n_heads = 65537, head_dim = 65536;
    struct synth_shape shape = shape_of(NULL, 32);
    struct error err;
    struct gguf *gguf;
    struct gguf_writer *writer;
    add_model(path, "F16", shape);
    if (gguf_open(path, &gguf, &err) < 0 || gguf_writer_new(&writer) < 0)
        abort();
    for (size_t i = 0; i < gguf_n_pairs(gguf); i++) {
        struct gguf_pair pair = *gguf_pair_at(gguf, i);
        if (bytes_equal(pair.key, BYTES_LITERAL("llama.attention.head_count")))
            pair.value.u = n_heads;
        if (bytes_equal(pair.key, BYTES_LITERAL("llama.attention.key_length")))
            pair.value.u = head_dim;
        gguf_writer_pair(writer, &pair);
    }
    if (gguf_writer_write(writer, path, &err) < 0)
        abort();
    gguf_writer_free(writer);
    gguf_free(gguf);
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
    struct synth_shape shape = shape_of(NULL, 32);
    shape.tied = true;
    shape.rope_factor = 8;
    add_model(path, "Q4_0", shape);
    shape.tied = false;
    shape.biases = true;
    add_model(path, "F16", shape);
    shape = shape_of(NULL, 256);
    shape.tied = true;
    add_model(path, "Q4_K_M", shape);
    for (size_t i = 0; architectures[i]; i++) {
        shape = shape_of(architectures[i]->name, 32);
        shape.window = 8;
        shape.n_experts = i % 2 && !architectures[i]->always_experts ? 0 : 3;
        if (architectures[i]->delta_nets) {
            shape.n_shared_ff = shape.n_experts ? 32 : 0;
            shape.delta = (struct delta_net){1, 2, 8, 16, 2, false};
            shape.attention_interval = 2;
        }
        if (architectures[i]->layers_differ) { /* experts, borrowed keys and values, embeddings of layers */
            shape.full_kv_heads = shape.n_borrowing_layers = 1;
            shape.n_layer_embd = shape.borrowing_ff = 32;
            shape.window_head_dim = 8;
        }
        add_model(path, "Q8_0", shape);
    }
    add_overflow(path);
    rundir_remove(dir);
}
