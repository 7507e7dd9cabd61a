/* SPDX-License-Identifier: MIT */
/* A folder's tensors between its opening and their making: what is read when, and what becomes of files that
 * change meanwhile. Every matrix is in FP8, and so must be made. */

#include "model/huggingface/folder.h"
#include "tests/unit/child.h"
#include "tests/unit/run.h"
#include "tests/unit/model/huggingface/written_folder.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/backend/backend.h"
#include "gguf/truncation.h"
#include "model/convert/quantize.h"

#define CONFIG                                                                                               \
    "{\"model_type\":\"llama\",\"vocab_size\":512,\"hidden_size\":512,\"intermediate_size\":1024,"           \
    "\"num_hidden_layers\":1,\"num_attention_heads\":4,\"num_key_value_heads\":4,"                           \
    "\"max_position_embeddings\":64,\"quantization_config\":{\"quant_method\":\"fp8\"}}"

#define LAYER "model.layers.0."

static const struct shape shapes[] = {{"model.embed_tokens.weight", 512, 512},
                                      {"model.norm.weight", 0, 512},
                                      {"lm_head.weight", 512, 512},
                                      {LAYER "input_layernorm.weight", 0, 512},
                                      {LAYER "self_attn.q_proj.weight", 512, 512},
                                      {LAYER "self_attn.k_proj.weight", 512, 512},
                                      {LAYER "self_attn.v_proj.weight", 512, 512},
                                      {LAYER "self_attn.o_proj.weight", 512, 512},
                                      {LAYER "post_attention_layernorm.weight", 0, 512},
                                      {LAYER "mlp.gate_proj.weight", 1024, 512},
                                      {LAYER "mlp.up_proj.weight", 1024, 512},
                                      {LAYER "mlp.down_proj.weight", 512, 1024}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

#define FILE_NAME "model.safetensors"

/* Everything is 1, but for the scale of the tensor that `odd` names. */
static void write_model(const char *odd, float scale)
{
    static uint8_t data[4 << 20];
    json_t *header = json_object();
    size_t at = 0;
    for (size_t i = 0; i < N_SHAPES; i++) {
        const struct shape *shape = &shapes[i];
        const size_t n = (size_t)(shape->rows ? shape->rows : 1) * (size_t)shape->columns;
        char name[80];
        if (shape->rows == 0) {
            for (size_t e = 0; e < n; e++)
                memcpy(data + at + 2 * e, &(uint16_t){0x3f80}, 2);
            add_tensor(header, shape, "BF16", at, at + 2 * n);
            at += 2 * n;
            continue;
        }
        memset(data + at, 0x38, n);
        add_tensor(header, shape, "F8_E4M3", at, at + n);
        at += n;
        snprintf(name, sizeof name, "%s_scale", shape->name);
        const float one = odd && strcmp(odd, shape->name) == 0 ? scale : 1;
        memcpy(data + at, &one, sizeof one);
        add_tensor(header, &(struct shape){name, 0, 1}, "F32", at, at + sizeof one);
        at += sizeof one;
    }
    ck_assert_uint_le(at, sizeof data);
    write_safetensors(FILE_NAME, header, 8, 0, data, at);
}

static void set_up(void)
{
    folder_begin(CONFIG, SMALL_TOKENIZER);
    write_model(NULL, 1);
}

static struct model *open_unmade(void)
{
    struct model *model = NULL;
    struct error err = {0};
    ck_assert_msg(model_open(folder, true, &model, &err) == 0, "%s", err.text);
    return model;
}

/* KiB of the memory around `data` that this process has. */
static unsigned resident(const void *data)
{
    char line[4500];
    unsigned long start = 0, end = 0;
    unsigned kib, sum = 0;
    bool counts = false;
    FILE *maps = fopen("/proc/self/smaps", "r");
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            counts = (uintptr_t)data >= start && (uintptr_t)data < end;
        else if (counts && sscanf(line, "Rss: %u kB", &kib) == 1)
            sum += kib;
    }
    fclose(maps);
    return sum;
}

START_TEST(opening_makes_nothing)
{
    struct model *model = open_unmade();
    const struct gguf_tensor *up = model->layers[0].tensors[TENSOR_UP].weight;
    ck_assert_ptr_nonnull(up->maker);
    ck_assert_uint_eq(resident(up->data), 0);
    ck_assert_int_eq(gguf_make_tensor(up, 2, NULL), 0);
    ck_assert_uint_ge(resident(up->data), 1024); /* 1,024 · 512 numbers in BF16 */
    ck_assert_uint_eq(((const uint16_t *)up->data)[1024 * 512 - 1], 0x3f80);
    gguf_give_back_tensor(model->gguf, up);
    ck_assert_uint_eq(resident(up->data), 0);
    model_free(model);
}
END_TEST

START_TEST(a_scale_that_is_no_number_is_named_when_it_is_needed)
{
    const float bad[] = {INFINITY, NAN};
    for (int i = 0; i < 2; i++) {
        struct error err = {0};
        write_model(LAYER "mlp.up_proj.weight", bad[i]);
        struct model *model = open_unmade();
        const struct model_tensor *of = model->layers[0].tensors;
        ck_assert_int_eq(gguf_make_tensor(of[TENSOR_DOWN].weight, 1, &err), 0);
        ck_assert_int_eq(gguf_make_tensor(of[TENSOR_UP].weight, 1, &err), -EINVAL);
        ck_assert_msg(strstr(err.text, FILE_NAME ": tensor " LAYER "mlp.up_proj.weight_scale holds ") ==
                          err.text,
                      "%s", err.text);
        model_free(model);
    }
}
END_TEST

/* Whatever thread meets it, and none of the others waits for ever. */
START_TEST(a_backend_that_packs_such_a_tensor_says_so)
{
    write_model(LAYER "mlp.up_proj.weight", NAN);
    for (uint32_t n_threads = 1; n_threads <= 4; n_threads += 3) {
        struct model *model = open_unmade();
        const struct backend_config config = {
            .model = model, .n_slots = 1, .n_context = 64, .n_blocks = 2, .cpu = {.n_threads = n_threads}};
        struct backend *backend;
        struct error err = {0};
        ck_assert_int_eq(backend_cpu.open(&config, &backend, &err), -EINVAL);
        ck_assert_msg(strstr(err.text, "mlp.up_proj.weight_scale holds ") != NULL, "%s", err.text);
        model_free(model);
    }
}
END_TEST

START_TEST(a_file_that_is_truncated_after_opening_is_named)
{
    char said[4096];
    struct child child;
    struct stat before;
    struct model *model = open_unmade();
    ck_assert_int_eq(stat(path_of(FILE_NAME), &before), 0);
    ck_assert_int_eq(truncate(path_of(FILE_NAME), before.st_size / 2), 0);
    if (child_begin(&child)) {
        truncation_catch("child", 3);
        gguf_make_tensor(model->layers[0].tensors[TENSOR_DOWN].weight, 1, NULL);
        _exit(0);
    }
    const int status = child_end(&child, said, sizeof said);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 3, "%d", status);
    ck_assert_msg(strstr(said, FILE_NAME " was truncated while being read"), "%s", said);
    struct error err = {0};
    ck_assert_int_eq(gguf_check_unchanged(model->gguf, &err),
                     -ESTALE); /* of files that are read no further */
    ck_assert_msg(strstr(err.text, FILE_NAME " changed size while being read"), "%s", err.text);
    model_free(model);
}
END_TEST

/* As somebody does who downloads again over the same files. */
static void overwrite(void *arg, const struct quantize_step *step)
{
    if (step->i + 1 < step->n)
        return;
    FILE *file = fopen(path_of(FILE_NAME), "r+b");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, -1, SEEK_END), 0);
    ck_assert_int_eq(fputc(1, file), 1);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(a_file_that_is_written_to_meanwhile_makes_no_other)
{
    char out[RUNDIR_PATH_MAX + 20];
    const struct quantize_options options = {.n_threads = 2};
    struct error err = {0};
    snprintf(out, sizeof out, "%s/out.gguf", dir);
    ck_assert_int_eq(quantize_file(folder, mixture_by_name("Q8_0"), out, &options, overwrite, NULL, &err),
                     -ESTALE);
    ck_assert_msg(strstr(err.text, FILE_NAME " was written to while being read"), "%s", err.text);
    ck_assert_int_eq(access(out, F_OK), -1);
}
END_TEST

START_TEST(a_scale_that_is_no_number_is_named_by_quantize)
{
    char out[RUNDIR_PATH_MAX + 20];
    const struct quantize_options options = {.n_threads = 2};
    struct error err = {0};
    snprintf(out, sizeof out, "%s/out.gguf", dir);
    write_model(LAYER "self_attn.q_proj.weight", NAN);
    ck_assert_int_eq(quantize_file(folder, mixture_by_name("Q8_0"), out, &options, NULL, NULL, &err),
                     -EINVAL);
    ck_assert_msg(strstr(err.text, FILE_NAME ": tensor " LAYER "self_attn.q_proj.weight_scale holds"), "%s",
                  err.text);
    ck_assert_int_eq(access(out, F_OK), -1);
    write_model(LAYER "mlp.up_proj.weight", NAN);
    struct gguf *gguf;
    ck_assert_int_eq(model_open_files(folder, &gguf, &err), 0);
    ck_assert_int_eq(quantize_in_memory(gguf, mixture_by_name("Q8_0"), &options, NULL, NULL, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, FILE_NAME ": tensor " LAYER "mlp.up_proj.weight_scale holds"), "%s",
                  err.text);
    gguf_free(gguf);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, folder_end);
    tcase_add_test(tests, opening_makes_nothing);
    tcase_add_test(tests, a_scale_that_is_no_number_is_named_when_it_is_needed);
    tcase_add_test(tests, a_backend_that_packs_such_a_tensor_says_so);
    tcase_add_test(tests, a_file_that_is_truncated_after_opening_is_named);
    tcase_add_test(tests, a_file_that_is_written_to_meanwhile_makes_no_other);
    tcase_add_test(tests, a_scale_that_is_no_number_is_named_by_quantize);
}

int main(void)
{
    return run_tests("folders that are made", add);
}
