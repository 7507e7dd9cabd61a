/* SPDX-License-Identifier: MIT */
#include "model/convert/quantize.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files/rundir.h"
#include "model/model.h"
#include "model/convert/synth.h"
#include "gguf/gguf_digest.h"
#include "gguf/gguf_values.h"
#include "gguf/gguf_writer.h"

static char dir[RUNDIR_PATH_MAX + 1];
static char in[RUNDIR_PATH_MAX + 20], out[RUNDIR_PATH_MAX + 20];

static void set_up(void)
{
    ck_assert_int_eq(rundir_temporary(dir, NULL), 0);
    snprintf(in, sizeof in, "%s/in.gguf", dir);
    snprintf(out, sizeof out, "%s/out.gguf", dir);
}

static void tear_down(void)
{
    rundir_remove(dir);
}

static void synth(const struct synth_shape *shape, const char *type)
{
    struct error err;
    ck_assert_msg(synth_write(shape, mixture_by_name(type), 1, in, &err) == 0, "%s", err.text);
}

static struct gguf *open_file(const char *path)
{
    struct gguf *gguf = NULL;
    struct error err;
    ck_assert_msg(gguf_open(path, &gguf, &err) == 0, "%s", err.text);
    return gguf;
}

static struct gguf *quantize(const char *type, unsigned n_threads)
{
    struct error err;
    struct quantize_options options = {.n_threads = n_threads};
    int r = quantize_file(in, mixture_by_name(type), out, &options, NULL, NULL, &err);
    ck_assert_msg(r == 0, "%s", err.text);
    return open_file(out);
}

static double tensor_nmse(const struct gguf_tensor *a, const struct gguf_tensor *b)
{
    size_t n = a->dims[0] * a->dims[1];
    float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
    double error = 0, power = 0;
    format_traits(a->format)->to_float(a->data, x, n);
    format_traits(b->format)->to_float(b->data, y, n);
    for (size_t i = 0; i < n; i++) {
        error += (double)(x[i] - y[i]) * (double)(x[i] - y[i]);
        power += (double)x[i] * (double)x[i];
    }
    free(x);
    free(y);
    return error / power;
}

START_TEST(every_tensor_comes_out_near_what_it_was)
{
    static const char *const types[] = {"Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_K_S", "Q5_0", "Q4_0", "BF16"};
    static const char *const sources[] = {"F32", "F16", "BF16"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        synth(synth_shape_by_name("tiny"), sources[i % 3]);
        struct gguf *before = open_file(in), *after = quantize(types[i], 2);
        ck_assert_uint_eq(gguf_n_tensors(before), gguf_n_tensors(after));
        for (size_t t = 0; t < gguf_n_tensors(before); t++) {
            const struct gguf_tensor *a = gguf_tensor_at(before, t), *b = gguf_tensor_at(after, t);
            ck_assert(bytes_equal(a->name, b->name));
            double error = tensor_nmse(a, b);
            ck_assert_msg(error < 1e-2, "%s: %g", types[i], error);
            ck_assert(a->n_dims > 1 || (b->format == FORMAT_F32 && error == 0));
        }
        gguf_free(before);
        gguf_free(after);
    }
}
END_TEST

static bool is_alike(const struct synth_shape *a, const struct synth_shape *b)
{
    return a->architecture && b->architecture && strcmp(a->architecture, b->architecture) == 0 &&
           !a->n_experts == !b->n_experts && !a->n_borrowing_layers == !b->n_borrowing_layers &&
           a->n_labels == b->n_labels;
}

START_TEST(every_architecture_opens_when_it_was_quantized)
{
    for (const struct synth_shape *known = synth_shapes; known->name; known++) {
        if (test_is_scaled() && known > synth_shapes && is_alike(known, known - 1))
            continue;
        struct synth_shape shape = *known;
        struct error err;
        struct model *model;
        shape.n_vocab = 400;
        shape.n_context = 64;
        shape.n_layers =
            shape.delta.n_key_heads || shape.n_borrowing_layers ? 4 : 1; /* every fourth attends */
        shape.n_borrowing_layers = shape.n_borrowing_layers ? 1 : 0;
        shape.n_embd = shape.n_ff = 64;
        shape.n_expert_ff = shape.n_expert_ff ? 32 : 0;
        shape.n_experts = shape.n_experts < 16 ? shape.n_experts : 16; /* more take longer, and that is all */
        synth(&shape, "F32");
        gguf_free(quantize("Q4_K_M", 1));
        ck_assert_msg(model_open(out, true, &model, &err) == 0, "%s", err.text);
        model_free(model);
    }
}
END_TEST

static int copy_tensor(void *arg, void *data, size_t size)
{
    memcpy(data, ((const struct gguf_tensor *)arg)->data, size);
    return 0;
}

static int fill_blocks(void *arg, void *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)data)[i] = i % 17 == 0 ? 120 : (uint8_t)(i * 7);
    return 0;
}

/* As gpt-oss is published: `in` again, with stacks of experts in MXFP4 and all else in BF16. */
static void put_experts_in_mxfp4(void)
{
    struct gguf_writer *writer;
    struct gguf *gguf = open_file(in);
    ck_assert_int_eq(gguf_writer_new(&writer), 0);
    for (size_t i = 0; i < gguf_n_pairs(gguf); i++)
        ck_assert_int_eq(gguf_writer_pair(writer, gguf_pair_at(gguf, i)), 0);
    for (size_t i = 0; i < gguf_n_tensors(gguf); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(gguf, i);
        const bool experts = t->n_dims == 3;
        char name[96];
        snprintf(name, sizeof name, "%.*s", (int)t->name.len, (const char *)t->name.data);
        ck_assert_int_eq(gguf_writer_tensor(writer, name, t->n_dims, t->dims,
                                            experts ? FORMAT_MXFP4 : t->format,
                                            experts ? fill_blocks : copy_tensor, (void *)t),
                         0);
    }
    ck_assert_int_eq(gguf_writer_write(writer, in, NULL), 0);
    gguf_writer_free(writer);
    gguf_free(gguf);
}

START_TEST(experts_in_mxfp4_stay_what_they_are)
{
    struct synth_shape shape = *synth_shape_by_name("gpt-oss-20b");
    const struct quantize_options again = {.n_threads = 2, .requantize = true};
    struct error err;
    size_t n_kept = 0;
    shape.n_vocab = 400;
    shape.n_context = shape.n_embd = shape.n_ff = shape.n_expert_ff = 64;
    shape.n_layers = 1;
    synth(&shape, "BF16");
    put_experts_in_mxfp4();
    struct gguf *before = open_file(in), *after = quantize("Q8_0", 2);
    for (size_t t = 0; t < gguf_n_tensors(before); t++) {
        const struct gguf_tensor *a = gguf_tensor_at(before, t), *b = gguf_tensor_at(after, t);
        if (a->format == FORMAT_BF16)
            ck_assert_int_eq(b->format, FORMAT_Q8_0);
        if (a->format != FORMAT_MXFP4)
            continue;
        ck_assert_int_eq(b->format, FORMAT_MXFP4);
        ck_assert_mem_eq(a->data, b->data, a->size);
        n_kept++;
    }
    ck_assert_uint_eq(n_kept, 3);
    gguf_free(after);
    ck_assert_int_eq(quantize_file(in, mixture_by_name("Q8_0"), out, &again, NULL, NULL, &err), 0);
    after = open_file(out);
    ck_assert_int_eq(gguf_find_tensor(after, "blk.0.ffn_up_exps.weight")->format, FORMAT_Q8_0);
    gguf_free(after);
    gguf_free(before);
}
END_TEST

START_TEST(metadata_is_kept_but_for_the_file_type)
{
    synth(synth_shape_by_name("tiny"), "F16");
    struct gguf *before = open_file(in), *after = quantize("Q4_K_M", 1);
    uint32_t type;
    ck_assert(gguf_u32(after, "general.file_type", &type, NULL) == 0 && type == 15);
    ck_assert_uint_eq(gguf_n_pairs(before), gguf_n_pairs(after));
    ck_assert_uint_eq(gguf_find(after, "tokenizer.ggml.tokens")->array.n, 512);
    struct model *model;
    struct error err;
    gguf_free(after);
    ck_assert_msg(model_open(out, true, &model, &err) == 0, "%s", err.text);
    model_free(model);
    gguf_free(before);
}
END_TEST

START_TEST(threads_do_not_change_the_result)
{
    uint8_t one[16], four[16];
    synth(synth_shape_by_name("tiny"), "F16");
    struct gguf *gguf = quantize("Q5_K_M", 1);
    gguf_digest(gguf, 1, NULL, NULL, one);
    gguf_free(gguf);
    gguf = quantize("Q5_K_M", 4);
    gguf_digest(gguf, 1, NULL, NULL, four);
    gguf_free(gguf);
    ck_assert_mem_eq(one, four, 16);
}
END_TEST

START_TEST(more_bits_go_where_they_count)
{
    const struct mixture *medium = mixture_by_name("q4_k_m"), *small = mixture_by_name("Q4_K_S");
    const struct {
        const struct mixture *mixture;
        const char *name;
        uint32_t n_dims;
        uint64_t columns;
        bool tied;
        enum format format;
    } cases[] = {
        {medium, "output.weight", 2, 2048, false, FORMAT_Q6_K},
        {medium, "token_embd.weight", 2, 2048, false, FORMAT_Q4_K},
        {medium, "token_embd.weight", 2, 2048, true, FORMAT_Q6_K},
        {medium, "blk.0.attn_v.weight", 2, 2048, true, FORMAT_Q6_K},
        {medium, "blk.1.ffn_down.weight", 2, 2048, true, FORMAT_Q6_K},
        {medium, "blk.2.ffn_down.weight", 2, 2048, true, FORMAT_Q4_K},
        {medium, "blk.4.ffn_down.weight", 2, 2048, true, FORMAT_Q6_K},
        {medium, "blk.5.attn_v.weight", 2, 2048, true, FORMAT_Q4_K},
        {medium, "blk.15.attn_v.weight", 2, 2048, true, FORMAT_Q6_K},
        {medium, "blk.15.attn_k.weight", 2, 2048, true, FORMAT_Q4_K},
        {medium, "blk.15.attn_norm.weight", 1, 2048, true, FORMAT_F32},
        {medium, "blk.0.ffn_gate_inp.weight", 2, 2048, true, FORMAT_F32},
        {medium, "position_embd.weight", 2, 2048, true, FORMAT_F32},
        {medium, "blk.1.ffn_down_exps.weight", 3, 2048, true, FORMAT_Q6_K},
        {medium, "blk.2.ffn_down_exps.weight", 3, 2048, true, FORMAT_Q4_K},
        {medium, "blk.1.ffn_up_exps.weight", 3, 2048, true, FORMAT_Q4_K},
        {medium, "blk.1.ffn_down_shexp.weight", 2, 2048, true, FORMAT_Q6_K},
        {medium, "blk.0.attn_q.weight", 2, 896, true, FORMAT_Q5_0},
        {medium, "blk.0.attn_v.weight", 2, 896, true, FORMAT_Q8_0},
        {medium, "blk.0.attn_q.weight", 2, 40, true, FORMAT_F16},
        {small, "blk.1.ffn_down.weight", 2, 2048, true, FORMAT_Q5_K},
        {small, "blk.2.ffn_down.weight", 2, 2048, true, FORMAT_Q4_K},
        {small, "blk.3.attn_v.weight", 2, 2048, true, FORMAT_Q5_K},
        {small, "blk.4.attn_v.weight", 2, 2048, true, FORMAT_Q4_K},
        {small, "output.weight", 2, 2048, false, FORMAT_Q6_K},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct mixture_tensor tensor = {
            .n_layers = 16, .n_dims = cases[i].n_dims, .columns = cases[i].columns, .tied = cases[i].tied};
        bool bias;
        ck_assert(tensor_role_of(bytes_of_string(cases[i].name), &tensor.role, &tensor.layer, &bias));
        enum format format = mixture_format(cases[i].mixture, &tensor);
        ck_assert_msg(format == cases[i].format, "case %zu, %s: %s", i, cases[i].name,
                      format_traits(format)->name);
    }
}
END_TEST

START_TEST(what_is_quantized_already_is_refused_unless_asked_for)
{
    struct error err;
    struct quantize_options options = {.n_threads = 1};
    synth(synth_shape_by_name("tiny"), "Q8_0");
    ck_assert_int_eq(quantize_file(in, mixture_by_name("Q4_0"), out, &options, NULL, NULL, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "tensor token_embd.weight is already Q8_0"));
    ck_assert_ptr_nonnull(strstr(err.text, "--requantize"));
    ck_assert_int_eq(access(out, F_OK), -1);
    ck_assert_int_eq(quantize_file("/nowhere.gguf", mixture_by_name("Q4_0"), out, &options, NULL, NULL, &err),
                     -ENOENT);
    options.requantize = true;
    ck_assert_int_eq(quantize_file(in, mixture_by_name("Q4_K_M"), out, &options, NULL, NULL, &err), 0);
    struct gguf *before = open_file(in), *after = open_file(out);
    for (size_t t = 0; t < gguf_n_tensors(before); t++)
        ck_assert(tensor_nmse(gguf_tensor_at(before, t), gguf_tensor_at(after, t)) < 1e-2);
    gguf_free(before);
    gguf_free(after);
}
END_TEST

static void expect_untouched(const char *from, const char *to)
{
    struct error err = {0};
    struct quantize_options options = {.n_threads = 1, .requantize = true};
    uint8_t before[16], after[16];
    struct gguf *gguf = open_file(from);
    gguf_digest(gguf, 1, NULL, NULL, before);
    gguf_free(gguf);
    int r = quantize_file(from, mixture_by_name("Q4_0"), to, &options, NULL, NULL, &err);
    ck_assert_msg(r == -EEXIST, "%s to %s: %d %s", from, to, r, err.text);
    ck_assert_ptr_nonnull(strstr(err.text, to));
    ck_assert_ptr_nonnull(strstr(err.text, "input and output are the same file"));
    gguf = open_file(from);
    gguf_digest(gguf, 1, NULL, NULL, after);
    gguf_free(gguf);
    ck_assert_mem_eq(before, after, 16);
}

START_TEST(the_input_is_no_output_whatever_it_is_called)
{
    char other[sizeof out + 8];
    synth(synth_shape_by_name("tiny"), "F16");
    expect_untouched(in, in);
    ck_assert_int_eq(symlink(in, out), 0);
    expect_untouched(in, out);
    expect_untouched(out, in);
    snprintf(other, sizeof other, "%s.hard", out);
    ck_assert_int_eq(link(in, other), 0);
    expect_untouched(in, other);
    snprintf(other, sizeof other, "%s/./in.gguf", dir);
    expect_untouched(in, other);
}
END_TEST

static int no_data(void *arg, void *bytes, size_t size)
{
    memset(bytes, 0, size);
    return 0;
}

START_TEST(no_part_of_the_input_is_the_output)
{
    char parts[2][sizeof in + 16];
    for (uint32_t no = 0; no < 2; no++) {
        struct gguf_writer *writer;
        snprintf(parts[no], sizeof parts[no], "%s/m-%05u-of-00002.gguf", dir, no + 1);
        ck_assert_int_eq(gguf_writer_new(&writer), 0);
        ck_assert_int_eq(gguf_writer_u32(writer, "split.no", no), 0);
        ck_assert_int_eq(gguf_writer_u32(writer, "split.count", 2), 0);
        ck_assert_int_eq(
            gguf_writer_tensor(writer, no ? "b" : "a", 2, (uint64_t[]){32, 2}, FORMAT_F32, no_data, NULL), 0);
        ck_assert_int_eq(gguf_writer_write(writer, parts[no], NULL), 0);
        gguf_writer_free(writer);
    }
    expect_untouched(parts[0], parts[0]);
    expect_untouched(parts[0], parts[1]);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, every_tensor_comes_out_near_what_it_was);
    if (!test_is_for_races()) /* one thread */
        tcase_add_test(tests, every_architecture_opens_when_it_was_quantized);
    tcase_add_test(tests, experts_in_mxfp4_stay_what_they_are);
    tcase_add_test(tests, metadata_is_kept_but_for_the_file_type);
    tcase_add_test(tests, threads_do_not_change_the_result);
    tcase_add_test(tests, more_bits_go_where_they_count);
    tcase_add_test(tests, what_is_quantized_already_is_refused_unless_asked_for);
    tcase_add_test(tests, the_input_is_no_output_whatever_it_is_called);
    tcase_add_test(tests, no_part_of_the_input_is_the_output);
}

int main(void)
{
    return run_tests("quantize", add);
}
