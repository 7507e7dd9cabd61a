/* SPDX-License-Identifier: MIT */
/* The numbers of a folder: wherever they lie in their file, whatever their format, and of any length. */

#include "tests/unit/run.h"
#include "tests/unit/model/huggingface/written_folder.h"
#include "model/huggingface/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A vector has 1,056 numbers: many more than are converted at once, and no multiple of that. */
#define CONFIG                                                                                               \
    "{\"model_type\":\"qwen2\",\"vocab_size\":8,\"hidden_size\":1056,\"intermediate_size\":32,"              \
    "\"num_hidden_layers\":1,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":8,"            \
    "\"max_position_embeddings\":64,\"rope_theta\":500000,\"rope_scaling\":{\"rope_type\":\"llama3\","       \
    "\"factor\":8,"                                                                                          \
    "\"low_freq_factor\":1,\"high_freq_factor\":4,\"original_max_position_embeddings\":8192}}"

static const struct {
    struct shape shape;
    const char *dtype;
} tensors[] = {{{"model.embed_tokens.weight", 8, 1056}, "F16"},
               {{"model.norm.weight", 0, 1056}, "F32"},
               {{"lm_head.weight", 8, 1056}, "F32"},
               {{"model.layers.0.input_layernorm.weight", 0, 1056}, "BF16"},
               {{"model.layers.0.self_attn.q_proj.weight", 32, 1056}, "BF16"},
               {{"model.layers.0.self_attn.q_proj.bias", 0, 32}, "BF16"},
               {{"model.layers.0.self_attn.k_proj.weight", 16, 1056}, "F16"},
               {{"model.layers.0.self_attn.k_proj.bias", 0, 16}, "F16"},
               {{"model.layers.0.self_attn.v_proj.weight", 16, 1056}, "F16"},
               {{"model.layers.0.self_attn.v_proj.bias", 0, 16}, "F32"},
               {{"model.layers.0.self_attn.o_proj.weight", 1056, 32}, "F16"},
               {{"model.layers.0.post_attention_layernorm.weight", 0, 1056}, "F16"},
               {{"model.layers.0.mlp.gate_proj.weight", 32, 1056}, "F16"},
               {{"model.layers.0.mlp.up_proj.weight", 32, 1056}, "F16"},
               {{"model.layers.0.mlp.down_proj.weight", 1056, 32}, "F16"}};
enum { N_TENSORS = sizeof tensors / sizeof tensors[0] };

/* Element i of any tensor: what every format holds exactly. */
static float number(size_t i)
{
    return (float)(i % 251) - 100;
}

static size_t put_number(uint8_t *to, const char *dtype, float value)
{
    uint32_t bits;
    uint16_t half = format_f32_to_f16(value);
    memcpy(&bits, &value, sizeof bits);
    if (strcmp(dtype, "BF16") == 0)
        half = (uint16_t)(bits >> 16);
    if (strcmp(dtype, "F32") == 0) {
        memcpy(to, &bits, sizeof bits);
        return sizeof bits;
    }
    memcpy(to, &half, sizeof half);
    return sizeof half;
}

/* The tensors one behind the other, from an address that is `shift` more than a multiple of 8. */
static void write_tensors(size_t shift)
{
    static uint8_t data[2 << 20];
    json_t *header = json_object();
    size_t at = 0;
    for (size_t t = 0; t < N_TENSORS; t++) {
        const struct shape *shape = &tensors[t].shape;
        const size_t begin = at, n = (size_t)(shape->rows ? shape->rows : 1) * (size_t)shape->columns;
        for (size_t i = 0; i < n; i++)
            at += put_number(data + at, tensors[t].dtype, number(i));
        add_tensor(header, shape, tensors[t].dtype, begin, at);
    }
    write_safetensors("model.safetensors", header, 8, shift, data, at);
}

static void set_up(void)
{
    folder_begin(CONFIG, SMALL_TOKENIZER);
}

static void check_numbers(const struct gguf_tensor *tensor, enum format format, size_t n)
{
    float *numbers = calloc(n, sizeof *numbers);
    ck_assert_int_eq(tensor->format, format);
    ck_assert_uint_eq((uintptr_t)tensor->data % (format == FORMAT_F32 ? 4 : 2), 0);
    format_traits(format)->to_float(tensor->data, numbers, n);
    size_t i = 0;
    while (i < n && numbers[i] == number(i))
        i++;
    ck_assert_msg(i == n, "%.*s: %zu is %g", (int)tensor->name.len, (const char *)tensor->name.data, i,
                  (double)numbers[i < n ? i : 0]);
    free(numbers);
}

/* A header is as long as its writer made it: what follows may lie anywhere. */
START_TEST(numbers_are_read_wherever_they_lie)
{
    write_tensors((size_t)_i);
    struct model *model = open_model(folder);
    const struct model_tensor *of = model->layers[0].tensors;
    check_numbers(model->tensors[TENSOR_EMBEDDING].weight, FORMAT_F16, 8 * 1056);
    check_numbers(model->tensors[TENSOR_OUTPUT].weight, FORMAT_F32, 8 * 1056);
    check_numbers(model->tensors[TENSOR_OUTPUT_NORM].weight, FORMAT_F32, 1056);
    check_numbers(of[TENSOR_ATTENTION_NORM].weight, FORMAT_F32, 1056);
    check_numbers(of[TENSOR_Q].weight, FORMAT_BF16, 32 * 1056);
    check_numbers(of[TENSOR_Q].bias, FORMAT_F32, 32);
    check_numbers(of[TENSOR_K].weight, FORMAT_F16, 16 * 1056);
    check_numbers(of[TENSOR_K].bias, FORMAT_F32, 16);
    check_numbers(of[TENSOR_V].bias, FORMAT_F32, 16);
    check_numbers(of[TENSOR_FFN_NORM].weight, FORMAT_F32, 1056);
    check_numbers(of[TENSOR_DOWN].weight, FORMAT_F16, 1056 * 32);
    const struct gguf_tensor *factors = model->tensors[TENSOR_ROTARY_FACTORS].weight;
    ck_assert_uint_eq(factors->dims[0], 4);
    ck_assert_float_eq(((const float *)factors->data)[0], 1);
    ck_assert_float_eq(((const float *)factors->data)[3], 8);
    model_free(model);
}
END_TEST

START_TEST(a_model_is_called_as_its_folder_whatever_stands_behind)
{
    char path[RUNDIR_PATH_MAX + 40];
    write_tensors(0);
    snprintf(path, sizeof path, "%s//", folder);
    struct model *model = open_model(path);
    ck_assert_str_eq(model->params.name, "model");
    model_free(model);
}
END_TEST

START_TEST(an_index_lists_a_thousand_files_and_some)
{
    for (int n = 1024; n <= 1025; n++) {
        json_t *map = json_object();
        char name[32], says[400];
        struct model *model;
        struct error err = {0};
        for (int i = 0; i < 2 * n; i++) { /* each twice, which makes no more of them */
            snprintf(name, sizeof name, "tensor-%d", i);
            json_object_set_new(map, name, json_sprintf("part-%d.safetensors", i % n));
        }
        json_t *index = json_pack("{s:o}", "weight_map", map);
        char *text = json_dumps(index, JSON_COMPACT);
        write_text("model.safetensors.index.json", text);
        ck_assert_int_lt(model_open(folder, true, &model, &err), 0);
        snprintf(says, sizeof says, "%s: %s", folder,
                 n == 1024 ? "part-0.safetensors is missing, which model.safetensors.index.json lists"
                           : "model.safetensors.index.json: weight_map: more than 1024 files");
        ck_assert_str_eq(err.text, says);
        free(text);
        json_decref(index);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, folder_end);
    tcase_add_loop_test(tests, numbers_are_read_wherever_they_lie, 0, 5);
    tcase_add_test(tests, a_model_is_called_as_its_folder_whatever_stands_behind);
    tcase_add_test(tests, an_index_lists_a_thousand_files_and_some);
}

int main(void)
{
    return run_tests("folder data", add);
}
