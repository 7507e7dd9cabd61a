/* SPDX-License-Identifier: MIT */
/* A folder of Gemma 4's E series with experts beside, which no published model has together: three layers,
 * the last of which borrows from the first. It opens, is quantized to a file of the same model, and is
 * refused where tensors are not as config.json says. */

#include "tests/unit/run.h"
#include "tests/unit/model/huggingface/written_folder.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "model/convert/quantize.h"
#include "model/huggingface/folder.h"
#include "gguf/gguf_values.h"

#define CONFIG                                                                                               \
    "{\"model_type\":\"gemma4\",\"vision_config\":{},\"text_config\":{\"vocab_size\":8,\"hidden_size\":32,"  \
    "\"intermediate_size\":48,\"num_hidden_layers\":3,\"num_attention_heads\":4,\"num_key_value_heads\":2,"  \
    "\"head_dim\":8,\"global_head_dim\":16,\"attention_k_eq_v\":true,\"num_global_key_value_heads\":1,"      \
    "\"max_position_embeddings\":64,\"sliding_window\":12,\"layer_types\":[\"sliding_attention\","           \
    "\"full_attention\",\"sliding_attention\"],\"num_kv_shared_layers\":1,\"use_double_wide_mlp\":true,"     \
    "\"hidden_size_per_layer_input\":4,\"vocab_size_per_layer_input\":8,\"enable_moe_block\":true,"          \
    "\"num_experts\":2,\"top_k_experts\":1,\"moe_intermediate_size\":20}}"

#define OUTER "model.language_model."

struct piece {
    const char *name;
    int rows, columns, experts;
};

static const struct piece outer[] = {{"embed_tokens.weight", 8, 32, 0},
                                     {"norm.weight", 0, 32, 0},
                                     {"embed_tokens_per_layer.weight", 8, 12, 0},
                                     {"per_layer_model_projection.weight", 12, 32, 0},
                                     {"per_layer_projection_norm.weight", 0, 4, 0}};

/* Of layers with a window; the one without has other rows of queries, keys and norms. */
static const struct piece inner[] = {{"input_layernorm.weight", 0, 32, 0},
                                     {"post_attention_layernorm.weight", 0, 32, 0},
                                     {"pre_feedforward_layernorm.weight", 0, 32, 0},
                                     {"post_feedforward_layernorm.weight", 0, 32, 0},
                                     {"pre_feedforward_layernorm_2.weight", 0, 32, 0},
                                     {"post_feedforward_layernorm_1.weight", 0, 32, 0},
                                     {"post_feedforward_layernorm_2.weight", 0, 32, 0},
                                     {"layer_scalar", 0, 1, 0},
                                     {"self_attn.q_proj.weight", 32, 32, 0},
                                     {"self_attn.k_proj.weight", 16, 32, 0},
                                     {"self_attn.v_proj.weight", 16, 32, 0},
                                     {"self_attn.o_proj.weight", 32, 32, 0},
                                     {"self_attn.q_norm.weight", 0, 8, 0},
                                     {"self_attn.k_norm.weight", 0, 8, 0},
                                     {"mlp.gate_proj.weight", 48, 32, 0},
                                     {"mlp.up_proj.weight", 48, 32, 0},
                                     {"mlp.down_proj.weight", 32, 48, 0},
                                     {"router.proj.weight", 2, 32, 0},
                                     {"router.scale", 0, 32, 0},
                                     {"router.per_expert_scale", 0, 2, 0},
                                     {"experts.gate_up_proj", 40, 32, 2},
                                     {"experts.down_proj", 32, 20, 2},
                                     {"per_layer_input_gate.weight", 4, 32, 0},
                                     {"per_layer_projection.weight", 32, 4, 0},
                                     {"post_per_layer_input_norm.weight", 0, 32, 0}};

static size_t put(json_t *header, const char *name, const struct piece *piece, size_t at)
{
    const int rows = piece->rows ? piece->rows : 1, matrices = piece->experts ? piece->experts : 1;
    const size_t end = at + (size_t)rows * (size_t)piece->columns * (size_t)matrices * sizeof(float);
    add_tensor(header, &(struct shape){name, piece->rows, piece->columns}, "F32", at, end);
    if (piece->experts)
        json_object_set_new(json_object_get(header, name), "shape",
                            json_pack("[i,i,i]", piece->experts, piece->rows, piece->columns));
    return end;
}

/* What layer 1, without a window, and layer 2, which borrows, have. */
static bool adapt(int layer, struct piece *piece)
{
    const bool keys = strstr(piece->name, "self_attn.k_"), values = strstr(piece->name, "self_attn.v_");
    if ((layer == 1 && values) || (layer == 2 && (keys || values)))
        return false;
    if (layer == 1 && strstr(piece->name, "_norm.weight") && strstr(piece->name, "self_attn"))
        piece->columns = 16;
    if (layer == 1 && strstr(piece->name, "q_proj"))
        piece->rows = 64;
    if (layer == 1 && strstr(piece->name, "o_proj"))
        piece->columns = 64;
    if (layer == 2 && (strstr(piece->name, "mlp.gate") || strstr(piece->name, "mlp.up")))
        piece->rows = 96;
    if (layer == 2 && strstr(piece->name, "mlp.down"))
        piece->columns = 96;
    return true;
}

static char without[96];  /* no such tensor */
static struct piece more; /* one more, if it has a name */

static void write_weights(void)
{
    static float data[64 << 10];
    json_t *header = json_object();
    char name[128];
    size_t at = 0;
    for (size_t i = 0; i < sizeof data / sizeof data[0]; i++)
        data[i] = (float)(i % 61) / 64 - 0.4f;
    for (size_t i = 0; i < sizeof outer / sizeof outer[0]; i++) {
        snprintf(name, sizeof name, OUTER "%s", outer[i].name);
        at = put(header, name, &outer[i], at);
    }
    for (int layer = 0; layer < 3; layer++)
        for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++) {
            struct piece piece = inner[i];
            snprintf(name, sizeof name, OUTER "layers.%d.%s", layer, piece.name);
            if (adapt(layer, &piece) && strcmp(name, without) != 0)
                at = put(header, name, &piece, at);
        }
    if (more.name)
        at = put(header, more.name, &more, at);
    ck_assert_uint_le(at, sizeof data);
    write_safetensors("model.safetensors", header, 8, 0, data, at);
}

static void set_up(void)
{
    without[0] = '\0';
    more = (struct piece){0};
    folder_begin(CONFIG, SMALL_TOKENIZER);
    write_weights();
}

static void expect_refusal(const char *says)
{
    struct model *model = NULL;
    struct error err = {0};
    int r = model_open(folder, true, &model, &err);
    ck_assert_msg(r < 0 && strstr(err.text, says), "\"%s\" expected: %d, %s", says, r, err.text);
}

static void expect_tensor(const struct model *model, const char *name, uint64_t columns, uint64_t rows,
                          uint64_t matrices)
{
    const struct gguf_tensor *tensor = gguf_find_tensor(model->gguf, name);
    ck_assert_msg(tensor && tensor->dims[0] == columns && (rows == 0 || tensor->dims[1] == rows) &&
                      (matrices == 0 || tensor->dims[2] == matrices),
                  "%s", name);
}

START_TEST(a_folder_opens_with_its_kinds_of_layers)
{
    struct model *model = open_model(folder);
    const struct layer_traits *traits[3];
    for (uint32_t i = 0; i < 3; i++)
        traits[i] = &model->layers[i].traits;
    ck_assert(traits[0]->window == 12 && traits[1]->window == 0 && traits[2]->window == 12);
    ck_assert(traits[0]->heads.dim == 8 && traits[1]->heads.dim == 16 && traits[1]->heads.n_kv == 1);
    ck_assert(traits[1]->values_are_keys && !traits[0]->values_are_keys && traits[2]->borrows_kv);
    ck_assert(traits[0]->experts.beside && traits[0]->experts.scaled && model->params.n_layer_embd == 4);
    expect_tensor(model, "blk.1.attn_q.weight", 32, 64, 0);
    expect_tensor(model, "blk.2.ffn_down.weight", 96, 32, 0);
    expect_tensor(model, "blk.0.ffn_gate_up_exps.weight", 32, 40, 2);
    expect_tensor(model, "blk.0.ffn_down_exps.scale", 2, 0, 0);
    expect_tensor(model, "per_layer_token_embd.weight", 12, 8, 0);
    expect_tensor(model, "rope_freqs.weight", 8, 0, 0);
    ck_assert_ptr_null(gguf_find_tensor(model->gguf, "blk.1.attn_v.weight"));
    ck_assert_ptr_null(gguf_find_tensor(model->gguf, "blk.2.attn_k.weight"));
    model_free(model);
}
END_TEST

/* Published files have them, and nobody reads them, whatever their shape. */
START_TEST(keys_of_layers_that_borrow_are_passed_over)
{
    more = (struct piece){OUTER "layers.2.self_attn.k_proj.weight", 3, 5, 0};
    write_weights();
    struct model *model = open_model(folder);
    ck_assert_ptr_null(gguf_find_tensor(model->gguf, "blk.2.attn_k.weight"));
    model_free(model);
    more.name = OUTER "layers.1.self_attn.v_proj.weight"; /* its values are its keys */
    write_weights();
    expect_refusal("unexpected tensor model.layers.1.self_attn.v_proj.weight in a gemma4 model");
}
END_TEST

START_TEST(parts_for_pictures_and_sounds_are_left_out_by_name)
{
    static const char *const parts[] = {"model.vision_tower", "model.embed_vision", "model.audio_tower",
                                        "model.embed_audio", "model.vision_embedder"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char name[64];
        struct bytes note;
        snprintf(name, sizeof name, "%s.weight", parts[i]);
        more = (struct piece){name, 0, 2, 0};
        write_weights();
        struct model *model = open_model(folder);
        ck_assert_int_eq(gguf_string(model->gguf, HUGGINGFACE_NOTE, &note, NULL), 0);
        ck_assert_msg(memmem(note.data, note.len, parts[i], strlen(parts[i])), "%s", name);
        model_free(model);
    }
}
END_TEST

/* The key that says the size is in the reason. */
START_TEST(tensors_of_another_size_are_refused_with_the_key)
{
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"\"global_head_dim\":16", "\"global_head_dim\":24", "global_head_dim"},
        {"\"head_dim\":8,\"global", "\"head_dim\":4,\"global", "config.json says 4 (head_dim)"},
        {"\"num_global_key_value_heads\":1", "\"num_global_key_value_heads\":2",
         "num_global_key_value_heads · global_head_dim"},
        {"\"num_kv_shared_layers\":1", "\"num_kv_shared_layers\":0",
         "config.json says 48 (intermediate_size)"},
        {"\"use_double_wide_mlp\":true", "\"use_double_wide_mlp\":false", "intermediate_size"},
        {"\"intermediate_size\":48", "\"intermediate_size\":40", "intermediate_size"},
        {"\"hidden_size_per_layer_input\":4", "\"hidden_size_per_layer_input\":8",
         "num_hidden_layers · hidden_size_per_layer_input"},
        {"\"hidden_size_per_layer_input\":4", "\"hidden_size_per_layer_input\":0",
         "unexpected tensor model.embed_tokens_per_layer.weight"},
        {"\"enable_moe_block\":true", "\"enable_moe_block\":false",
         "unexpected tensor model.layers.0.experts.down_proj"},
        {"\"num_experts\":2", "\"num_experts\":3", "num_experts"},
        {"\"moe_intermediate_size\":20", "\"moe_intermediate_size\":24", "moe_intermediate_size"},
        {"[\"sliding_attention\"", "[\"full_attention\"", "no sliding_attention layer before layer 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[2048];
        const char *at = strstr(CONFIG, cases[i].from);
        ck_assert_ptr_nonnull(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - CONFIG), CONFIG, cases[i].to,
                 at + strlen(cases[i].from));
        write_text("config.json", text);
        expect_refusal(cases[i].says);
    }
}
END_TEST

START_TEST(every_tensor_is_needed)
{
    static const char *const names[] = {"layers.0.layer_scalar",
                                        "layers.1.self_attn.k_proj.weight",
                                        "layers.0.self_attn.v_proj.weight",
                                        "layers.2.self_attn.q_norm.weight",
                                        "layers.1.router.scale",
                                        "layers.1.router.per_expert_scale",
                                        "layers.2.experts.gate_up_proj",
                                        "layers.0.pre_feedforward_layernorm_2.weight",
                                        "layers.0.per_layer_projection.weight"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char says[128];
        snprintf(without, sizeof without, OUTER "%s", names[i]);
        snprintf(says, sizeof says, "tensor model.%s, which config.json requires, is in none", names[i]);
        write_weights();
        expect_refusal(says);
    }
}
END_TEST

START_TEST(a_file_made_of_it_is_the_same_model)
{
    const struct quantize_options options = {.n_threads = 1};
    struct model *a = open_model(folder), *b = NULL;
    struct error err = {0};
    char path[RUNDIR_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/made.gguf", dir);
    ck_assert_msg(quantize_file(folder, mixture_by_name("F16"), path, &options, NULL, NULL, &err) == 0, "%s",
                  err.text);
    ck_assert_msg(model_open(path, false, &b, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(gguf_n_tensors(a->gguf), gguf_n_tensors(b->gguf));
    for (uint32_t i = 0; i < 3; i++) {
        const struct layer_traits *x = &a->layers[i].traits, *y = &b->layers[i].traits;
        ck_assert(x->heads.dim == y->heads.dim && x->heads.n_kv == y->heads.n_kv && x->window == y->window);
        ck_assert(x->borrows_kv == y->borrows_kv && x->values_are_keys == y->values_are_keys);
    }
    model_free(a);
    model_free(b);
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, folder_end);
    tcase_add_test(tests, a_folder_opens_with_its_kinds_of_layers);
    tcase_add_test(tests, keys_of_layers_that_borrow_are_passed_over);
    tcase_add_test(tests, parts_for_pictures_and_sounds_are_left_out_by_name);
    tcase_add_test(tests, tensors_of_another_size_are_refused_with_the_key);
    tcase_add_test(tests, every_tensor_is_needed);
    tcase_add_test(tests, a_file_made_of_it_is_the_same_model);
}

int main(void)
{
    return run_tests("folder_apart", add);
}
