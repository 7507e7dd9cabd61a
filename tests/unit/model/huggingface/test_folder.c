/* SPDX-License-Identifier: MIT */
/* Folders as Hugging Face publishes models. A tiny one is written, here and there another than it should be.
 * That the numbers are right is tests/conformance's matter, whose folders have twins in GGUF. */

#include "model/huggingface/folder.h"
#include "tests/unit/run.h"
#include "tests/unit/model/huggingface/written_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/convert/quantize.h"
#include "model/model.h"
#include "model/sampling_hints.h"

#define CONFIG                                                                                               \
    "{\"model_type\":\"llama\",\"vocab_size\":8,\"hidden_size\":32,\"intermediate_size\":32,"                \
    "\"num_hidden_layers\":1,\"num_attention_heads\":4,\"num_key_value_heads\":2,"                           \
    "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-5}"

#define TOKENIZER                                                                                            \
    "{\"added_tokens\":[{\"id\":6,\"content\":\"<|end|>\",\"special\":true}],\"normalizer\":null,"           \
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true},"              \
    "\"post_processor\":null,\"model\":{\"type\":\"BPE\",\"byte_fallback\":false,"                           \
    "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"c\":3,\"abc\":4},\"merges\":[\"a b\",\"ab c\"]}}"

static const struct shape shapes[] = {{"model.embed_tokens.weight", 8, 32},
                                      {"model.norm.weight", 0, 32},
                                      {"lm_head.weight", 8, 32},
                                      {"model.layers.0.input_layernorm.weight", 0, 32},
                                      {"model.layers.0.self_attn.q_proj.weight", 32, 32},
                                      {"model.layers.0.self_attn.k_proj.weight", 16, 32},
                                      {"model.layers.0.self_attn.v_proj.weight", 16, 32},
                                      {"model.layers.0.self_attn.o_proj.weight", 32, 32},
                                      {"model.layers.0.post_attention_layernorm.weight", 0, 32},
                                      {"model.layers.0.mlp.gate_proj.weight", 32, 32},
                                      {"model.layers.0.mlp.up_proj.weight", 32, 32},
                                      {"model.layers.0.mlp.down_proj.weight", 32, 32}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

/* Tensors first … end − 1, F16, element i of each the number of its row. `edit` may change the header. */
static void write_shard(const char *name, int first, int end, void (*edit)(json_t *header))
{
    static uint8_t data[48 << 10];
    json_t *header = json_object();
    size_t at = 0;
    for (const struct shape *shape = &shapes[first]; shape < &shapes[end]; shape++) {
        const size_t rows = shape->rows ? (size_t)shape->rows : 1, columns = (size_t)shape->columns;
        const size_t begin = at;
        for (size_t e = 0; e < rows * columns; e++, at += 2) {
            uint16_t half = format_f32_to_f16((float)(e / columns) + 1);
            memcpy(data + at, &half, sizeof half);
        }
        add_tensor(header, shape, "F16", begin, at);
    }
    if (edit)
        edit(header);
    write_safetensors(name, header, 1, 0, data, at);
}

static void set_up(void)
{
    folder_begin(CONFIG, TOKENIZER);
    write_shard("model.safetensors", 0, N_SHAPES, NULL);
}

static void expect_refusal(const char *says)
{
    struct model *model = NULL;
    struct error err = {0};
    int r = model_open(folder, true, &model, &err);
    ck_assert_msg(r < 0 && strstr(err.text, says), "\"%s\" expected: %d, %s", says, r, err.text);
    ck_assert_msg(strncmp(err.text, folder, strlen(folder)) == 0, "no path: %s", err.text);
}

/* ---- what is read ---- */

START_TEST(a_folder_opens_as_a_model)
{
    struct model *model = open_model(folder);
    const struct model_params *p = &model->params;
    ck_assert_str_eq(p->architecture, "llama");
    ck_assert_str_eq(p->name, "model");
    ck_assert(p->n_vocab == 8 && p->n_embd == 32 && p->head_dim == 8 && p->n_kv_heads == 2);
    ck_assert(model->layers[0].traits.rotary.kind == ROTARY_HALVES);
    ck_assert(!model_head_is_tied(model));
    ck_assert_int_eq(model->layers[0].tensors[TENSOR_Q].weight->format, FORMAT_F16);
    const struct gguf_tensor *norm = model->layers[0].tensors[TENSOR_ATTENTION_NORM].weight;
    ck_assert(norm->format == FORMAT_F32 && ((const float *)norm->data)[31] == 1);
    struct ids ids = {0};
    ck_assert_int_eq(
        tokenizer_encode(model->tokenizer, BYTES_LITERAL("abcab<|end|>"), TOKENIZER_PARSE_SPECIAL, &ids), 0);
    const int32_t expected[] = {4, 2, 6};
    ck_assert_uint_eq(ids.len, 3);
    ck_assert_mem_eq(ids.data, expected, sizeof expected);
    ids_deinit(&ids);
    ck_assert_int_eq(tokenizer_type(model->tokenizer, 5), TOKEN_UNUSED); /* a gap */
    ck_assert(!model_may_sample(model, 5) && !model_may_sample(model, 7) && model_may_sample(model, 4));
    model_free(model);
}
END_TEST

START_TEST(shards_are_found_by_the_index)
{
    ck_assert_int_eq(unlink(path_of("model.safetensors")), 0);
    write_shard("a.safetensors", 0, 5, NULL);
    write_shard("b.safetensors", 5, N_SHAPES, NULL);
    write_text(
        "model.safetensors.index.json",
        "{\"weight_map\":{\"model.norm.weight\":\"a.safetensors\",\"lm_head.weight\":\"b.safetensors\"}}");
    model_free(open_model(folder));
    ck_assert_int_eq(unlink(path_of("b.safetensors")), 0);
    expect_refusal("b.safetensors is missing, which model.safetensors.index.json lists");
    write_shard("b.safetensors", 6, N_SHAPES, NULL);
    expect_refusal("tensor model.layers.0.self_attn.k_proj.weight, which config.json requires, is in none of "
                   "the 2 files");
    write_shard("b.safetensors", 4, N_SHAPES, NULL);
    expect_refusal("tensor model.layers.0.self_attn.q_proj.weight is in two files");
    write_text("model.safetensors.index.json", "{\"weight_map\":{\"x\":\"../a.safetensors\"}}");
    expect_refusal("weight_map: \"../a.safetensors\" is not a file of the folder");
    write_text("model.safetensors.index.json", "{}");
    expect_refusal("model.safetensors.index.json: weight_map is missing or empty");
    ck_assert_int_eq(unlink(path_of("model.safetensors.index.json")), 0);
    expect_refusal("neither model.safetensors nor model.safetensors.index.json is there");
}
END_TEST

START_TEST(what_belongs_to_the_tokenizer_is_read)
{
    write_text("tokenizer_config.json", "{\"bos_token\":{\"content\":\"<|end|>\"},\"eos_token\":\"c\","
                                        "\"add_bos_token\":true,\"chat_template\":[{\"name\":\"other\","
                                        "\"template\":\"x\"},{\"name\":\"default\",\"template\":\"yes\"}]}");
    write_text("generation_config.json",
               "{\"eos_token_id\":[1,3], \"temperature\": 0.6, \"top_k\": 20, \"top_p\": "
               "\"x\", \"repetition_penalty\": 1.05}");
    struct model *model = open_model(folder);
    struct sampling_defaults defaults;
    sampling_defaults_init(&defaults);
    sampling_hints(model->gguf, &defaults, NULL);
    ck_assert_double_eq(defaults.values[SAMPLING_AT_temperature], 0.6);
    ck_assert_double_eq(defaults.values[SAMPLING_AT_top_k], 20);
    ck_assert_double_eq(defaults.values[SAMPLING_AT_repetition_penalty], 1.05);
    ck_assert_int_eq(defaults.sources[SAMPLING_AT_top_k], SAMPLING_OF_MODEL);
    ck_assert_int_eq(defaults.sources[SAMPLING_AT_top_p], SAMPLING_OF_NOBODY);
    ck_assert_int_eq(tokenizer_bos(model->tokenizer), 6);
    ck_assert_int_eq(tokenizer_eos(model->tokenizer), 3);
    ck_assert(tokenizer_adds_bos(model->tokenizer));
    ck_assert_uint_ge(tokenizer_end_ids(model->tokenizer).n, 2);
    ck_assert_int_eq(tokenizer_end_ids(model->tokenizer).items[1], 1);
    ck_assert(bytes_equal(model->chat_template, BYTES_LITERAL("yes")));
    model_free(model);
    write_text("chat_template.jinja", "newer");
    model = open_model(folder);
    ck_assert(bytes_equal(model->chat_template, BYTES_LITERAL("newer")));
    model_free(model);
}
END_TEST

/* SentencePiece's: scores follow from the order of merges. */
START_TEST(a_vocabulary_of_characters_is_known_too)
{
    write_text(
        "tokenizer.json",
        "{\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"special\":true}],"
        "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":"
        "\"\xe2\x96\x81\"},"
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}]},"
        "\"pre_tokenizer\":null,\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":"
        "[{\"Sequence\":{\"id\":\"A\"}}]},\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\","
        "\"byte_fallback\":true,\"vocab\":{\"<unk>\":0,\"<0x21>\":1,\"\xe2\x96\x81\":2,\"a\":3,\"b\":4,"
        "\"ab\":5,\"\xe2\x96\x81"
        "a\":6},\"merges\":[[\"a\",\"b\"],[\"\xe2\x96\x81\",\"a\"]]}}");
    struct model *model = open_model(folder);
    struct ids ids = {0};
    ck_assert_int_eq(tokenizer_encode(model->tokenizer, BYTES_LITERAL("ab a!"), 0, &ids), 0);
    const int32_t expected[] = {2, 5, 6, 1}; /* "ab" is merged before the space and "a" */
    ck_assert_uint_eq(ids.len, 4);
    ck_assert_mem_eq(ids.data, expected, sizeof expected);
    ids_deinit(&ids);
    model_free(model);
}
END_TEST

/* Qwen's: a text is tokenized as what it is in form C, in which U+212A is a K. */
START_TEST(a_normalizer_is_kept)
{
    static const char *const normalizers[] = {"null", "{\"type\":\"NFC\"}",
                                              "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"}]}"};
    for (size_t i = 0; i < 3; i++) {
        char text[1024];
        struct ids ids = {0};
        snprintf(text, sizeof text,
                 "{\"normalizer\":%s,\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                 "\"use_regex\":true},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"K\":1,\"aK\":2},"
                 "\"merges\":[\"a K\"]}}",
                 normalizers[i]);
        write_text("tokenizer.json", text);
        struct model *model = open_model(folder);
        ck_assert_int_eq(tokenizer_encode(model->tokenizer, BYTES_LITERAL("a\u212a"), 0, &ids), 0);
        ck_assert_int_eq(ids.data[0], i > 0 ? 2 : 0);
        ids_deinit(&ids);
        model_free(model);
    }
}
END_TEST

START_TEST(a_digest_is_of_all_files)
{
    uint8_t digest[16];
    struct model *model = open_model(folder);
    ck_assert_int_eq(model_read_digest(model, 2, NULL, NULL, NULL), 0);
    memcpy(digest, model->digest, sizeof digest);
    model_free(model);
    model = open_model(folder);
    ck_assert_int_eq(model_read_digest(model, 1, NULL, NULL, NULL), 0);
    ck_assert_mem_eq(model->digest, digest, sizeof digest);
    model_let_go(model);
    model_free(model);
    write_text("chat_template.jinja", "other");
    model = open_model(folder);
    ck_assert_int_eq(model_read_digest(model, 1, NULL, NULL, NULL), 0);
    ck_assert_mem_ne(model->digest, digest, sizeof digest);
    model_free(model);
}
END_TEST

/* ---- quantizing ---- */

START_TEST(weights_are_quantized_while_loading)
{
    const struct quantize_options options = {.n_threads = 2};
    struct gguf *gguf;
    struct model *model, *plain = open_model(folder);
    struct error err = {0};
    ck_assert_int_eq(model_open_files(folder, &gguf, &err), 0);
    ck_assert_msg(quantize_in_memory(gguf, mixture_by_name("Q8_0"), &options, NULL, NULL, &err) == 0, "%s",
                  err.text);
    ck_assert_int_eq(model_take_gguf(gguf, folder, true, &model, &err), 0);
    ck_assert(model->params.rope_halves);
    const struct gguf_tensor *q = model->layers[0].tensors[TENSOR_Q].weight;
    ck_assert_int_eq(q->format, FORMAT_Q8_0);
    float row[32];
    for (size_t r = 0; r < 32; r++) { /* in their order */
        format_traits(FORMAT_Q8_0)->to_float((const uint8_t *)q->data + r * 34, row, 32);
        ck_assert_float_eq_tol(row[5], (float)r + 1, 0.02f);
    }
    ck_assert_int_eq(model->layers[0].tensors[TENSOR_ATTENTION_NORM].weight->format, FORMAT_F32);
    ck_assert_int_eq(model_read_digest(model, 1, NULL, NULL, NULL), 0);
    ck_assert_int_eq(model_read_digest(plain, 1, NULL, NULL, NULL), 0);
    ck_assert_mem_ne(model->digest, plain->digest, 16); /* two ways of reading, two models */
    model_free(model);
    model_free(plain);
}
END_TEST

START_TEST(a_file_made_of_it_has_rows_as_such_files_have_them)
{
    const struct quantize_options options = {.n_threads = 1};
    struct error err = {0};
    struct model *model;
    char out[RUNDIR_PATH_MAX + 20];
    snprintf(out, sizeof out, "%s/out.gguf", dir);
    ck_assert_msg(quantize_file(folder, mixture_by_name("F16"), out, &options, NULL, NULL, &err) == 0, "%s",
                  err.text);
    ck_assert_msg(model_open(out, true, &model, &err) == 0, "%s", err.text);
    ck_assert(!model->params.rope_halves && model->layers[0].traits.rotary.kind == ROTARY_PAIRS);
    const uint16_t *k = model->layers[0].tensors[TENSOR_K].weight->data;
    const float first[] = {1, 5, 2, 6, 3, 7, 4, 8, 9, 13}; /* halves of a head of 8, one from each in turn */
    for (size_t r = 0; r < 10; r++)
        ck_assert_float_eq(format_f16_to_f32(k[r * 32]), first[r]);
    model_free(model);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(a_config_that_cannot_be_is_named)
{
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"\"llama\"", "\"bert\"", "config.json: model_type \"bert\" is not supported"},
        {"\"hidden_size\":32,", "", "config.json: hidden_size is missing"},
        {"\"hidden_size\":32", "\"hidden_size\":-1", "config.json: hidden_size is not an integer"},
        {"\"hidden_size\":32", "\"hidden_size\":33", "config.json: hidden_size 33 is not a multiple"},
        {"\"hidden_size\":32", "\"hidden_size\":\"x\"", "config.json: hidden_size is not an integer"},
        {"\"hidden_size\":32", "\"head_dim\":8,\"hidden_size\":64",
         "columns, config.json says 64 (hidden_size)"},
        {"\"vocab_size\":8", "\"vocab_size\":9",
         "model.safetensors: tensor lm_head.weight has 8 rows, config.json says 9 (vocab_size)"},
        {"\"num_hidden_layers\":1", "\"num_hidden_layers\":2",
         "tensor model.layers.1.input_layernorm.weight, which config.json requires, is in none of the 1 "
         "files"},
        {"\"num_hidden_layers\":1", "\"num_hidden_layers\":16777216",
         "tensor model.layers.1.input_layernorm.weight, which config.json requires, is in none of the 1 "
         "files"},
        {"\"num_hidden_layers\":1", "\"num_hidden_layers\":16777217",
         "num_hidden_layers 16777217 is out of range"},
        {"\"num_key_value_heads\":2", "\"num_key_value_heads\":4", "has 16 rows, config.json says 32"},
        {"\"num_key_value_heads\":2", "\"num_key_value_heads\":0", "num_key_value_heads 0 is out of range"},
        {"\"rms_norm_eps\":1e-5", "\"rms_norm_eps\":0", "config.json: rms_norm_eps is 0"},
        {"\"rms_norm_eps\":1e-5", "\"hidden_act\":\"gelu\"", "config.json: hidden_act is \"gelu\""},
        {"\"rms_norm_eps\":1e-5", "\"quantization_config\":{}", "config.json: quantization_config"},
        {"\"rms_norm_eps\":1e-5", "\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}",
         "config.json: rope_scaling: rope_type \"dynamic\" is not supported"},
        {"\"rms_norm_eps\":1e-5", "\"rope_scaling\":{\"type\":\"yarn\"}",
         "config.json: rope_scaling: factor is missing"},
        {"\"rms_norm_eps\":1e-5", "\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8}",
         "rope_scaling: llama3 needs original_max_position_embeddings"},
        {"\"rms_norm_eps\":1e-5", "\"partial_rotary_factor\":0.5", "partial_rotary_factor is 0.5"},
        {"\"model_type\"", "\"vocab_size\":1,\"model_type\"", "config.json: line 1: invalid JSON: duplicate"},
        {"{\"model_type\"", "[{\"model_type\"", "config.json: line 1: invalid JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        const char *at = strstr(CONFIG, cases[i].from);
        ck_assert_ptr_nonnull(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - CONFIG), CONFIG, cases[i].to,
                 at + strlen(cases[i].from));
        write_text("config.json", text);
        expect_refusal(cases[i].says);
    }
    ck_assert_int_eq(unlink(path_of("config.json")), 0);
    expect_refusal("config.json is missing");
    write_text("config.json", "");
    expect_refusal("config.json: not a JSON or SafeTensors file (it is empty)");
}
END_TEST

START_TEST(a_tokenizer_of_another_kind_is_named)
{
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"\"BPE\"", "\"Unigram\"", "tokenizer.json: model: Unigram is not supported"},
        {"\"BPE\"", "\"BPE\",\"end_of_word_suffix\":\"</w>\"", "model: end_of_word_suffix is not supported"},
        {"\"normalizer\":null", "\"normalizer\":{\"type\":\"Lowercase\"}",
         "normalizer: Lowercase is not supported"},
        {"\"ByteLevel\"", "\"Whitespace\"", "tokenizer.json: pre_tokenizer: this way of splitting"},
        {"\"add_prefix_space\":false", "\"add_prefix_space\":true", "pre_tokenizer: this way of splitting"},
        {"\"post_processor\":null", "\"post_processor\":{\"type\":\"RobertaProcessing\"}",
         "post_processor: RobertaProcessing is not supported"},
        {"\"a b\"", "\"ab\"", "tokenizer.json: model: merges: entry 0 is not a pair of tokens"},
        {"\"a b\"", "[\"a\"]", "merges: entry 0 is not a pair of tokens"},
        {"\"a b\"", "\"a x\"", "\"a x\""},
        {"\"c\":3", "\"c\":2", "tokenizer.json: model: vocab: id 2 has two tokens"},
        {"\"c\":3", "\"c\":-3", "the id of token c is not a number"},
        {"\"c\":3", "\"c\":16777216", "the id of token c is not a number"},
        {"\"special\":true", "\"rstrip\":true", "added_tokens: rstrip of <|end|> is not supported"},
        {"\"vocab\":{", "\"words\":{", "model: vocab is missing or empty"},
        {"\"id\":6", "\"id\":8", "the vocabulary has 9 tokens, token_embd.weight only 8 rows"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        const char *at = strstr(TOKENIZER, cases[i].from);
        ck_assert_ptr_nonnull(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - TOKENIZER), TOKENIZER, cases[i].to,
                 at + strlen(cases[i].from));
        write_text("tokenizer.json", text);
        expect_refusal(cases[i].says);
    }
    ck_assert_int_eq(unlink(path_of("tokenizer.json")), 0);
    expect_refusal("tokenizer.json is missing");
    write_text("tokenizer.json", TOKENIZER);
    write_text("generation_config.json", "{\"eos_token_id\":7}");
    expect_refusal("generation_config.json: eos_token_id is not an id of the 7 tokens");
    write_text("generation_config.json", "{\"eos_token_id\":[0,1,2,3]}");
    expect_refusal("generation_config.json: eos_token_id: at most 3 are allowed");
}
END_TEST

static void set(json_t *header, const char *key, json_t *value)
{
    json_object_set_new(json_object_get(header, "lm_head.weight"), key, value);
}

static void dtype_that_nobody_knows(json_t *header)
{
    set(header, "dtype", json_string("Q9"));
}

static void dtype_of_whole_numbers(json_t *header)
{
    set(header, "dtype", json_string("I16"));
}

static void shape_too_large(json_t *header)
{
    set(header, "shape", json_pack("[I,I,I]", (json_int_t)1 << 40, (json_int_t)1 << 40, (json_int_t)1 << 40));
}

static void shape_negative(json_t *header)
{
    set(header, "shape", json_pack("[i,i]", -8, -32));
}

static void shape_turned(json_t *header)
{
    set(header, "shape", json_pack("[i,i]", 32, 8));
}

static void place_outside(json_t *header)
{
    set(header, "data_offsets", json_pack("[I,I]", (json_int_t)1 << 40, ((json_int_t)1 << 40) + 512));
}

static void place_backwards(json_t *header)
{
    set(header, "data_offsets", json_pack("[i,i]", 1024, 512));
}

static void place_of_another_size(json_t *header)
{
    set(header, "data_offsets", json_pack("[i,i]", 512, 1022));
}

static void place_of_another(json_t *header)
{
    set(header, "data_offsets", json_pack("[i,i]", 510, 1022));
}

static void name_without_place(json_t *header)
{
    json_object_set(header, "model.layers.1.input_layernorm.weight",
                    json_object_get(header, "model.norm.weight"));
    json_object_del(header, "model.norm.weight");
}

static void bias_of_a_norm(json_t *header)
{
    json_object_set(header, "model.norm.bias", json_object_get(header, "model.norm.weight"));
    json_object_del(header, "model.norm.weight");
}

static void entry_without_object(json_t *header)
{
    json_object_set_new(header, "lm_head.weight", json_integer(3));
}

START_TEST(a_header_that_cannot_be_is_named)
{
    static const struct {
        void (*edit)(json_t *header);
        const char *says;
    } cases[] = {
        {dtype_that_nobody_knows, "model.safetensors: tensor lm_head.weight: unknown dtype \"Q9\""},
        {dtype_of_whole_numbers, "tensor lm_head.weight: dtype I16 is not supported (F32, F16 and BF16 are)"},
        {shape_too_large, "tensor lm_head.weight: shape has too many elements"},
        {shape_negative, "tensor lm_head.weight: shape has an invalid number of elements"},
        {shape_turned, "tensor lm_head.weight has 32 rows, config.json says 8 (vocab_size)"},
        {place_outside, "tensor lm_head.weight: data_offsets 1099511627776 to 1099511628288 lie outside"},
        {place_backwards, "tensor lm_head.weight: data_offsets 1024 to 512 lie outside"},
        {place_of_another_size,
         "tensor lm_head.weight: data_offsets hold 510 bytes, its shape and dtype 512"},
        {place_of_another, "it overlaps tensor "},
        {name_without_place,
         "unexpected tensor model.layers.1.input_layernorm.weight in a llama model of 1 layers"},
        {bias_of_a_norm, "unexpected tensor model.norm.bias"},
        {entry_without_object, "tensor lm_head.weight: its entry in the header is not an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_shard("model.safetensors", 0, N_SHAPES, cases[i].edit);
        expect_refusal(cases[i].says);
    }
    static const uint8_t endless[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    write_bytes("model.safetensors", endless, sizeof endless);
    expect_refusal("a header of 18446744073709551615 bytes in a file of 16");
    write_bytes("model.safetensors", endless, 3);
    expect_refusal("model.safetensors: not a SafeTensors file: it has 3 bytes");
    write_bytes("model.safetensors", "\4\0\0\0\0\0\0\0nope", 12);
    expect_refusal("model.safetensors: header: line 1: invalid JSON");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, folder_end);
    tcase_add_test(tests, a_folder_opens_as_a_model);
    tcase_add_test(tests, shards_are_found_by_the_index);
    tcase_add_test(tests, what_belongs_to_the_tokenizer_is_read);
    tcase_add_test(tests, a_vocabulary_of_characters_is_known_too);
    tcase_add_test(tests, a_normalizer_is_kept);
    tcase_add_test(tests, a_digest_is_of_all_files);
    tcase_add_test(tests, weights_are_quantized_while_loading);
    tcase_add_test(tests, a_file_made_of_it_has_rows_as_such_files_have_them);
    tcase_add_test(tests, a_config_that_cannot_be_is_named);
    tcase_add_test(tests, a_tokenizer_of_another_kind_is_named);
    tcase_add_test(tests, a_header_that_cannot_be_is_named);
}

int main(void)
{
    return run_tests("folder", add);
}
