/* SPDX-License-Identifier: MIT */
/* Weights in FP8 become BF16, number times scale, however scales are laid out; contradictions are named. */

#include "model/huggingface/quantization.h"
#include "tests/unit/run.h"
#include "tests/unit/model/huggingface/written_folder.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG(more)                                                                                         \
    "{\"model_type\":\"qwen3\",\"vocab_size\":8,\"hidden_size\":32,\"intermediate_size\":48,"                \
    "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":16,"           \
    "\"max_position_embeddings\":64,\"tie_word_embeddings\":true" more "}"

/* The up projection, of 48 rows and 32 columns, is the one in FP8. */
#define UP "model.layers.0.mlp.up_proj"

static const struct shape shapes[] = {{"model.embed_tokens.weight", 8, 32},
                                      {"model.norm.weight", 0, 32},
                                      {"model.layers.0.input_layernorm.weight", 0, 32},
                                      {"model.layers.0.self_attn.q_proj.weight", 32, 32},
                                      {"model.layers.0.self_attn.k_proj.weight", 16, 32},
                                      {"model.layers.0.self_attn.v_proj.weight", 16, 32},
                                      {"model.layers.0.self_attn.q_norm.weight", 0, 16},
                                      {"model.layers.0.self_attn.k_norm.weight", 0, 16},
                                      {"model.layers.0.self_attn.o_proj.weight", 32, 32},
                                      {"model.layers.0.post_attention_layernorm.weight", 0, 32},
                                      {"model.layers.0.mlp.gate_proj.weight", 48, 32},
                                      {"model.layers.0.mlp.down_proj.weight", 32, 48}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0], UP_ROWS = 48, UP_COLUMNS = 32 };

struct scale {
    const char *name, *dtype, *shape; /* NULL: none */
    size_t n;
};

/* Scale i: what a BF16 holds. */
static float scale_at(size_t i)
{
    return (float)(i + 1) / 4;
}

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 7 % 127 + (i % 3 == 0 ? 128 : 0));
}

static void put(json_t *header, const char *name, const char *dtype, json_t *shape, size_t begin, size_t end)
{
    json_object_set_new(header, name,
                        json_pack("{s:s,s:o,s:[I,I]}", "dtype", dtype, "shape", shape, "data_offsets",
                                  (json_int_t)begin, (json_int_t)end));
}

static void write_model(const char *config, const struct scale *scale, const char *up_dtype)
{
    static uint8_t data[64 << 10];
    json_t *header = json_object();
    size_t at = 0;
    memset(data, 0, sizeof data);
    for (size_t i = 0; i < N_SHAPES; i++) {
        const size_t n = 2 * (size_t)(shapes[i].rows ? shapes[i].rows : 1) * (size_t)shapes[i].columns;
        add_tensor(header, &shapes[i], "BF16", at, at + n);
        at += n;
    }
    const size_t size = strcmp(up_dtype, "BF16") == 0 ? 2 : 1, n = UP_ROWS * UP_COLUMNS;
    for (size_t i = 0; i < n * size; i++)
        data[at + i] = byte_at(i);
    put(header, UP ".weight", up_dtype, json_pack("[i,i]", UP_ROWS, UP_COLUMNS), at, at + n * size);
    at += n * size;
    if (scale->name) {
        const size_t bytes = strcmp(scale->dtype, "F32") == 0 ? 4 : 2, begin = at;
        for (size_t i = 0; i < scale->n; i++, at += bytes) {
            const float value = scale_at(i);
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            bits >>= bytes == 2 ? 16 : 0;
            memcpy(data + at, &bits, bytes);
        }
        put(header, scale->name, scale->dtype, json_loads(scale->shape, 0, NULL), begin, at);
    }
    write_text("config.json", config);
    write_safetensors("model.safetensors", header, 8, 0, data, at);
}

static void set_up(void)
{
    folder_begin("{}", SMALL_TOKENIZER);
}

static void expect_refusal(const char *says)
{
    struct model *model = NULL;
    struct error err = {0};
    int r = model_open(folder, true, &model, &err);
    ck_assert_msg(r < 0 && strstr(err.text, says), "\"%s\" expected: %d, %s", says, r, err.text);
}

#define FP8(more) CONFIG(",\"quantization_config\":{\"quant_method\":\"fp8\"" more "}")
#define BLOCKS    ",\"weight_block_size\":[32,16]"
#define COMPRESSED(more)                                                                                     \
    CONFIG(",\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"float-"           \
           "quantized\"" more "}")

/* Rows and columns of a block. */
START_TEST(numbers_are_scaled_however_scales_lie)
{
    static const struct {
        const char *config;
        struct scale scale;
        size_t rows, columns, across;
    } cases[] = {
        {FP8(""), {UP ".weight_scale_inv", "BF16", "[]", 1}, 48, 32, 1},
        {FP8(""), {UP ".weight_scale", "F32", "[1]", 1}, 48, 32, 1},
        {FP8(BLOCKS), {UP ".weight_scale_inv", "F32", "[2,2]", 4}, 32, 16, 2},
        {FP8(BLOCKS), {UP ".weight_scale_inv", "BF16", "[2,2]", 4}, 32, 16, 2},
        {COMPRESSED(""), {UP ".weight_scale", "BF16", "[48,1]", 48}, 1, 32, 1},
        {COMPRESSED(""), {UP ".weight_scale", "F32", "[48]", 48}, 1, 32, 1},
        {COMPRESSED(",\"config_groups\":{\"group_0\":{\"weights\":{\"block_structure\":[32,16]}}}"),
         {UP ".weight_scale", "F32", "[2,2]", 4},
         32,
         16,
         2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_model(cases[i].config, &cases[i].scale, "F8_E4M3");
        struct model *model = open_model(folder);
        const struct gguf_tensor *up = model->layers[0].tensors[TENSOR_UP].weight;
        float row[UP_COLUMNS];
        ck_assert_int_eq(up->format, FORMAT_BF16);
        for (size_t r = 0; r < UP_ROWS; r++) {
            format_traits(FORMAT_BF16)
                ->to_float((const uint16_t *)up->data + r * UP_COLUMNS, row, UP_COLUMNS);
            for (size_t c = 0; c < UP_COLUMNS; c++) {
                const size_t s = r / cases[i].rows * cases[i].across + c / cases[i].columns;
                const float wanted = quantization_e4m3(byte_at(r * UP_COLUMNS + c)) * scale_at(s);
                ck_assert_msg(fabsf(row[c] - wanted) <= fabsf(wanted) / 256,
                              "case %zu, row %zu, %zu: %g, not %g", i, r, c, (double)row[c], (double)wanted);
            }
        }
        const struct bytes note = model_files_note(model->gguf);
        ck_assert(bytes_equal(note, BYTES_LITERAL("converted from FP8 (E4M3) to BF16: 1 weight")));
        model_free(model);
    }
}
END_TEST

START_TEST(bytes_are_what_the_format_says)
{
    ck_assert_float_eq(quantization_e4m3(0x00), 0);
    ck_assert_float_eq(quantization_e4m3(0x01), 0x1p-9f);
    ck_assert_float_eq(quantization_e4m3(0x07), 7 * 0x1p-9f);
    ck_assert_float_eq(quantization_e4m3(0x08), 0x1p-6f);
    ck_assert_float_eq(quantization_e4m3(0x38), 1);
    ck_assert_float_eq(quantization_e4m3(0xbc), -1.5f);
    ck_assert_float_eq(quantization_e4m3(0x7e), 448);
    ck_assert(isnan(quantization_e4m3(0x7f)) && isnan(quantization_e4m3(0xff)));
}
END_TEST

START_TEST(a_weight_without_elements_is_named)
{
    const struct quantization whole = {.kind = QUANTIZATION_FP8};
    const float one = 1;
    const struct safetensor scale = {
        .name = "s", .dtype = "F32", .element_size = 4, .data = (const void *)&one};
    for (unsigned i = 0; i < 2; i++) {
        const struct safetensor weight = {
            .name = "w", .dtype = "F8_E4M3", .n_dims = 2, .dims = {i ? 8 : 0, i ? 0 : 8}};
        struct scales scales;
        struct error err = {0};
        ck_assert_int_eq(quantization_scales(&whole, &weight, &scale, &scales, &err), -EINVAL);
        ck_assert_msg(strstr(err.text, "tensor w of shape [") && strstr(err.text, "has no elements"), "%s",
                      err.text);
    }
}
END_TEST

START_TEST(scales_that_cannot_be_are_named)
{
    static const struct {
        const char *config;
        struct scale scale;
        const char *dtype, *says;
    } cases[] = {
        {FP8(""),
         {NULL, NULL, NULL, 0},
         "F8_E4M3",
         "tensor " UP ".weight is F8_E4M3, but " UP ".weight_scale is in none of the 1 files"},
        {CONFIG(""),
         {NULL, NULL, NULL, 0},
         "F8_E4M3",
         "F8_E4M3, but config.json has no quantization_config for it"},
        {FP8(BLOCKS),
         {UP ".weight_scale_inv", "F32", "[2,3]", 6},
         "F8_E4M3",
         UP ".weight_scale_inv of shape [2, 3] does not fit " UP
            ".weight of shape [48, 32], in blocks of 32 rows "
            "and 16 columns"},
        {FP8(BLOCKS),
         {UP ".weight_scale_inv", "F32", "[48,1]", 48},
         "F8_E4M3",
         "of shape [48, 1] does not fit"},
        {FP8(""), {UP ".weight_scale_inv", "F32", "[2,2]", 4}, "F8_E4M3", "of shape [2, 2] does not fit"},
        {FP8(""), {UP ".weight_scale_inv", "F32", "[47]", 47}, "F8_E4M3", "of shape [47] does not fit"},
        {FP8(""),
         {UP ".weight_scale", "F32", "[1]", 1},
         "BF16",
         UP ".weight_scale is a scale, but " UP ".weight is BF16"},
        {FP8(""),
         {UP "s.weight_scale", "F32", "[1]", 1},
         "BF16",
         "is a scale, but " UP "s.weight is missing"},
        {FP8(""),
         {UP ".weight_scale", "I16", "[1]", 1},
         "F8_E4M3",
         UP ".weight_scale: dtype I16 is not supported"},
        {FP8(""), {UP ".weight_scale", "F32", "[1]", 1}, "F8_E5M2", "dtype F8_E5M2 is not supported"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_model(cases[i].config, &cases[i].scale, cases[i].dtype);
        expect_refusal(cases[i].says);
    }
}
END_TEST

/* What belongs to activations is not needed. */
START_TEST(scales_of_activations_are_passed_over)
{
    char weight[96];
    ck_assert(quantization_is_companion("a.input_scale", sizeof weight, weight) && weight[0] == '\0');
    ck_assert(quantization_is_companion("a.activation_scale", sizeof weight, weight) && weight[0] == '\0');
    ck_assert(quantization_is_companion("a.weight_scale_inv", sizeof weight, weight));
    ck_assert_str_eq(weight, "a.weight");
    ck_assert(quantization_is_companion("a.gate_up_proj_scales", sizeof weight, weight));
    ck_assert_str_eq(weight, "a.gate_up_proj_blocks");
    ck_assert(!quantization_is_companion("a.weight", sizeof weight, weight));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, folder_end);
    tcase_add_test(tests, numbers_are_scaled_however_scales_lie);
    tcase_add_test(tests, bytes_are_what_the_format_says);
    tcase_add_test(tests, a_weight_without_elements_is_named);
    tcase_add_test(tests, scales_that_cannot_be_are_named);
    tcase_add_test(tests, scales_of_activations_are_passed_over);
}

int main(void)
{
    return run_tests("fp8", add);
}
