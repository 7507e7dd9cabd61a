/* SPDX-License-Identifier: MIT */
#include "model/convert/synth.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/files/rundir.h"
#include "model/architecture.h"
#include "model/model.h"
#include "model/convert/random_blocks.h"
#include "gguf/blocks.h"
#include "gguf/gguf_values.h"

static char dir[RUNDIR_PATH_MAX + 1];
static char path[RUNDIR_PATH_MAX + 20];

static void set_up(void)
{
    ck_assert_int_eq(rundir_temporary(dir, NULL), 0);
    snprintf(path, sizeof path, "%s/synth.gguf", dir);
}

static void tear_down(void)
{
    rundir_remove(dir);
}

static struct model *make(const char *shape, const char *type, uint64_t seed)
{
    struct model *model = NULL;
    struct error err = {0};
    int r = synth_write(synth_shape_by_name(shape), mixture_by_name(type), seed, path, &err);
    ck_assert_msg(r == 0, "%s", err.text);
    r = model_open(path, true, &model, &err);
    ck_assert_msg(r == 0, "%s", err.text);
    return model;
}

START_TEST(every_type_of_the_tiny_shape_opens)
{
    for (const struct mixture *mixture = mixtures; mixture->name; mixture++) {
        struct model *model = make("tiny", mixture->name, 1);
        uint32_t file_type;
        ck_assert_int_eq(gguf_u32(model->gguf, "general.file_type", &file_type, NULL), 0);
        ck_assert_uint_eq(file_type, mixture->file_type);
        ck_assert_int_eq(model->layers[0].tensors[TENSOR_Q].weight->format,
                         mixture->experts_only ? mixture->more : mixture->base);
        ck_assert_int_eq(model->tensors[TENSOR_OUTPUT].weight->format, mixture->head);
        model_free(model);
    }
}
END_TEST

static void make_digest(uint64_t seed, uint8_t ret_digest[16])
{
    struct model *model = make("tiny", "Q4_K_M", seed);
    ck_assert_int_eq(model_read_digest(model, 1, NULL, NULL, NULL), 0);
    memcpy(ret_digest, model->digest, 16);
    model_free(model);
}

/* Narrow and short, but otherwise what the shape says. */
START_TEST(every_architecture_has_a_shape_and_every_shape_opens_as_it)
{
    bool seen[64] = {false};
    for (const struct synth_shape *known = synth_shapes; known->name; known++) {
        struct synth_shape shape = *known;
        struct model *model = NULL;
        struct error err = {0};
        shape.n_vocab = 400;
        shape.n_context = 64;
        shape.n_layers =
            known->delta.n_taps > 0 || known->n_borrowing_layers ? 4 : 1; /* the fourth attends */
        shape.n_embd = shape.n_ff = 64;
        shape.n_borrowing_layers = known->n_borrowing_layers ? 1 : 0;
        shape.n_expert_ff = shape.n_expert_ff ? 32 : 0;
        ck_assert_msg(synth_write(&shape, mixture_by_name("Q4_0"), 1, path, &err) == 0, "%s", err.text);
        ck_assert_msg(model_open(path, true, &model, &err) == 0, "%s: %s", known->name, err.text);
        ck_assert_uint_eq(model->layers[0].traits.experts.n, known->n_experts);
        for (size_t i = 0; architectures[i]; i++)
            seen[i] |= strcmp(architectures[i]->name, model->params.architecture) == 0;
        model_free(model);
    }
    for (size_t i = 0; architectures[i]; i++)
        ck_assert_msg(seen[i], "%s has no shape", architectures[i]->name);
}
END_TEST

START_TEST(the_same_seed_gives_the_same_bytes_and_another_does_not)
{
    uint8_t first[16], same[16], other[16];
    make_digest(5, first);
    make_digest(5, same);
    make_digest(6, other);
    ck_assert_mem_eq(first, same, 16);
    ck_assert_mem_ne(first, other, 16);
}
END_TEST

START_TEST(weights_have_mean_0_and_the_deviation_asked_for)
{
    enum { N = 1 << 16 };
    float *values = malloc(N * sizeof *values);
    for (const struct mixture *mixture = mixtures; mixture->name; mixture++) {
        size_t size = format_bytes(mixture->base, N);
        void *blocks = malloc(size);
        ck_assert_int_eq(random_blocks(mixture->base, 0.02f, 3, blocks, size), 0);
        format_traits(mixture->base)->to_float(blocks, values, N);
        double sum = 0, squares = 0;
        for (int i = 0; i < N; i++) {
            sum += (double)values[i];
            squares += (double)values[i] * (double)values[i];
        }
        double mean = sum / N, deviation = sqrt(squares / N);
        ck_assert_msg(fabs(mean) < 0.0006, "%s: mean %g", mixture->name, mean);
        ck_assert_msg(fabs(deviation / 0.02 - 1) < 0.05, "%s: deviation %g", mixture->name, deviation);
        free(blocks);
    }
    uint8_t byte;
    ck_assert_int_eq(random_blocks((enum format)19, 1, 1, &byte, 0), -ENOTSUP);
    free(values);
}
END_TEST

/* Figures of two versions may be compared because their random models are the same. The bytes are those that
 * the authors of SplitMix64 publish for the seed 0. */
START_TEST(random_bits_are_those_of_splitmix64)
{
    static const uint8_t published[] = {0xaf, 0xcd, 0x1d, 0x7b, 0x39, 0xa8, 0x20, 0xe2,
                                        0xf4, 0x65, 0xb9, 0xa1, 0x6a, 0x9e, 0x78, 0x6e};
    struct block_q8_0 block;
    ck_assert_int_eq(random_blocks(FORMAT_Q8_0, 1, 0, &block, sizeof block), 0);
    ck_assert_mem_eq(block.quants, published, sizeof published);
}
END_TEST

START_TEST(any_text_is_encoded_and_comes_back)
{
    static const char *const texts[] = {"The miller grinds the corn.", "42 + 1 = 43; {\"x\": [1, 2]}\n\ttab",
                                        "z\xc3\xbcrich \xe4\xb8\x96\xe7\x95\x8c \xf0\x9f\x8c\xbe", "", " "};
    struct model *model = make("tiny", "Q8_0", 1);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct ids ids = {0};
        char out[256];
        size_t n = 0;
        ck_assert_int_eq(
            tokenizer_encode(model->tokenizer, bytes_of_string(texts[i]), TOKENIZER_ADD_SPECIAL, &ids), 0);
        ck_assert_int_eq(ids.data[0], 1);
        for (size_t t = 1; t < ids.len; t++) {
            struct bytes piece = tokenizer_piece(model->tokenizer, ids.data[t], t == 1);
            memcpy(out + n, piece.data, piece.len);
            n += piece.len;
        }
        ck_assert_msg(bytes_equal((struct bytes){out, n}, bytes_of_string(texts[i])), "%.*s", (int)n, out);
        ids_deinit(&ids);
    }
    model_free(model);
}
END_TEST

/* As in the vocabularies that it is made like: the unknown one, the ends, then each byte. */
START_TEST(the_first_tokens_are_those_of_every_such_vocabulary)
{
    struct model *model = make("tiny", "Q8_0", 1);
    const struct tokenizer *tokenizer = model->tokenizer;
    ck_assert_int_eq(tokenizer_bos(tokenizer), 1);
    ck_assert_int_eq(tokenizer_eos(tokenizer), 2);
    for (int32_t id = 0; id < 3; id++) /* which add no text */
        ck_assert_uint_eq(tokenizer_piece(tokenizer, id, false).len, 0);
    for (int32_t byte = 0; byte < 256; byte++) {
        struct bytes piece = tokenizer_piece(tokenizer, 3 + byte, false);
        ck_assert_uint_eq(piece.len, 1);
        ck_assert_uint_eq(*(const uint8_t *)piece.data, byte);
    }
    model_free(model);
}
END_TEST

static int by_bytes(const void *a, const void *b)
{
    const struct bytes *x = a, *y = b;
    size_t least = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->data, y->data, least);
    return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

START_TEST(a_large_vocabulary_has_distinct_readable_pieces_that_merging_reaches)
{
    struct model *model = make("null", "F16", 1);
    const struct tokenizer *tokenizer = model->tokenizer;
    ck_assert_uint_eq(tokenizer_size(tokenizer), 32000);
    for (int32_t id = 259; id < 32000; id += 97) {
        struct bytes piece = tokenizer_piece(tokenizer, id, false);
        struct ids ids = {0};
        ck_assert_uint_gt(piece.len, 0);
        for (size_t i = 0; i < piece.len; i++)
            ck_assert_int_ge(((const char *)piece.data)[i], ' ');
        /* Encoded behind the space that is always put in front, a piece that begins with one is one token. */
        if (((const char *)piece.data)[0] == ' ' && piece.len > 1) {
            struct bytes bare = {(const char *)piece.data + 1, piece.len - 1};
            ck_assert_int_eq(tokenizer_encode(tokenizer, bare, 0, &ids), 0);
            ck_assert_msg(ids.len == 1 && ids.data[0] == id, "%.*s", (int)piece.len,
                          (const char *)piece.data);
        }
        ids_deinit(&ids);
    }
    static struct bytes pieces[32000 - 259];
    size_t n = sizeof pieces / sizeof pieces[0];
    for (size_t i = 0; i < n; i++)
        pieces[i] = tokenizer_piece(tokenizer, (int32_t)(259 + i), false);
    qsort(pieces, n, sizeof pieces[0], by_bytes);
    for (size_t i = 1; i < n; i++)
        ck_assert_msg(!bytes_equal(pieces[i - 1], pieces[i]), "%.*s is there twice", (int)pieces[i].len,
                      (const char *)pieces[i].data);
    struct ids ids = {0};
    struct bytes english = BYTES_LITERAL("the miller grinds the corn and sells the flour in the town");
    ck_assert_int_eq(tokenizer_encode(tokenizer, english, 0, &ids), 0);
    ck_assert_uint_lt(ids.len, english.len / 2);
    ids_deinit(&ids);
    model_free(model);
}
END_TEST

START_TEST(a_shape_too_small_for_its_vocabulary_is_refused)
{
    struct synth_shape shape = *synth_shape_by_name("tiny");
    struct error err;
    shape.n_vocab = 300;
    ck_assert_int_eq(synth_write(&shape, mixture_by_name("F16"), 1, path, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "300"));
    ck_assert_ptr_null(synth_shape_by_name("enormous"));
    ck_assert_ptr_null(mixture_by_name("Q3_Z"));
}
END_TEST

START_TEST(a_shape_cut_to_fewer_layers_opens_and_keeps_its_share_of_borrowers)
{
    struct synth_shape shape = synth_shape_of_layers(synth_shape_by_name("gemma-4-e4b"), 14);
    struct model *model;
    struct error err;
    ck_assert_uint_eq(shape.n_borrowing_layers, 8);
    ck_assert_uint_eq(shape.n_embd, 2560);
    shape.n_vocab = 400;
    shape.n_context = shape.n_embd = shape.n_ff = 64;
    ck_assert_msg(synth_write(&shape, mixture_by_name("Q4_0"), 1, path, &err) == 0, "%s", err.text);
    ck_assert_msg(model_open(path, true, &model, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(model->params.n_layers, 14);
    ck_assert(!model->layers[5].traits.borrows_kv && model->layers[6].traits.borrows_kv);
    model_free(model);
    shape = synth_shape_of_layers(synth_shape_by_name("gemma-4-e2b"), 35);
    ck_assert_uint_eq(shape.n_borrowing_layers, 20);
    ck_assert_uint_eq(synth_shape_of_layers(&shape, 3).n_borrowing_layers, 0);
    ck_assert_uint_eq(synth_shape_of_layers(synth_shape_by_name("gemma-4-e4b"), 12).n_borrowing_layers, 6);
    ck_assert_uint_eq(synth_shape_of_layers(synth_shape_by_name("qwen3.5-4b"), 8).n_borrowing_layers, 0);
}
END_TEST

START_TEST(llama_3_rope_factors_keep_fast_waves_and_stretch_slow_ones)
{
    struct synth_shape shape = *synth_shape_by_name("tiny");
    struct model *model;
    struct error err;
    shape.rope_base = 500000;
    shape.rope_factor = 32;
    ck_assert_int_eq(synth_write(&shape, mixture_by_name("Q8_0"), 1, path, &err), 0);
    ck_assert_msg(model_open(path, false, &model, &err) == 0, "%s", err.text);
    const float *factors = model->tensors[TENSOR_ROTARY_FACTORS].weight->data;
    ck_assert(factors[0] == 1 && factors[31] == 32);
    for (int i = 1; i < 32; i++)
        ck_assert(factors[i] >= factors[i - 1]);
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, every_type_of_the_tiny_shape_opens);
    tcase_add_test(tests, a_shape_cut_to_fewer_layers_opens_and_keeps_its_share_of_borrowers);
    tcase_add_test(tests, every_architecture_has_a_shape_and_every_shape_opens_as_it);
    tcase_add_test(tests, the_same_seed_gives_the_same_bytes_and_another_does_not);
    tcase_add_test(tests, weights_have_mean_0_and_the_deviation_asked_for);
    tcase_add_test(tests, random_bits_are_those_of_splitmix64);
    tcase_add_test(tests, any_text_is_encoded_and_comes_back);
    tcase_add_test(tests, the_first_tokens_are_those_of_every_such_vocabulary);
    tcase_add_test(tests, a_large_vocabulary_has_distinct_readable_pieces_that_merging_reaches);
    tcase_add_test(tests, a_shape_too_small_for_its_vocabulary_is_refused);
    tcase_add_test(tests, llama_3_rope_factors_keep_fast_waves_and_stretch_slow_ones);
}

int main(void)
{
    return run_tests("synth", add);
}
