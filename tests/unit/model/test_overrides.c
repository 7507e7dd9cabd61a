/* SPDX-License-Identifier: MIT */
/* Options that change a model's metadata: what they set, what they refuse, and that they make another model.
 */

#include "model/overrides.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/files/rundir.h"
#include "model/convert/synth.h"
#include "model/model.h"

static char folder[RUNDIR_PATH_MAX + 1], path[RUNDIR_PATH_MAX + 32];
static char text[OVERRIDES_TEXT];
static struct error err;

static void set_up(void)
{
    ck_assert_int_eq(rundir_temporary(folder, &err), 0);
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    ck_assert_int_eq(synth_write(synth_shape_by_name("tiny"), mixture_by_name("F16"), 1, path, &err), 0);
    text[0] = 0;
}

static void tear_down(void)
{
    rundir_remove(folder);
}

static void add(const char *name, const char *value)
{
    ck_assert_msg(overrides_add(text, name, value, &err) == 0, "%s %s: %s", name, value, err.text);
}

static struct model *open_model(void)
{
    struct model *model = NULL;
    ck_assert_msg(model_open_overridden(path, text, true, &model, &err) == 0, "%s", err.text);
    return model;
}

static void check_refused(const char *name, const char *value, const char *says)
{
    struct model *model = NULL;
    text[0] = 0;
    if (overrides_add(text, name, value, &err) == 0)
        ck_assert_msg(model_open_overridden(path, text, true, &model, &err) < 0, "%s %s", name, value);
    ck_assert_msg(strstr(err.text, says), "%s %s: %s", name, value, err.text);
}

/* As llama-server -c 16384 --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 4096 has it. */
START_TEST(yarn_makes_the_context_longer_by_its_factor)
{
    add("rope-scaling", "yarn");
    add("rope-scale", "4");
    struct model *model = open_model();
    const struct rotary *rotary = &model->layers[0].traits.rotary;
    ck_assert_uint_eq(model->params.n_context, 16384);
    ck_assert_int_eq(rotary->scaling, ROTARY_YARN);
    ck_assert_float_eq(rotary->factor, 4);
    ck_assert_uint_eq(rotary->trained_context, 4096);
    ck_assert_float_eq_tol(rotary->magnitude, 1 + 0.1f * logf(4), 1e-6f);
    ck_assert(rotary->fast_turns == 32 && rotary->slow_turns == 1);
    model_free(model);

    add("yarn-orig-ctx", "2048");
    add("yarn-attn-factor", "0.5");
    add("yarn-beta-fast", "16");
    add("yarn-beta-slow", "2");
    add("rope-freq-base", "1e6");
    add("override-kv", "llama.context_length=int:9000");
    model = open_model();
    rotary = &model->layers[0].traits.rotary;
    ck_assert_uint_eq(model->params.n_context, 9000); /* 8192, but for the override */
    ck_assert_uint_eq(rotary->trained_context, 2048);
    ck_assert_float_eq_tol(rotary->magnitude, 0.5f * (1 + 0.1f * logf(4)), 1e-6f);
    ck_assert(rotary->fast_turns == 16 && rotary->slow_turns == 2 && rotary->base == 1e6f);
    model_free(model);
}
END_TEST

START_TEST(a_factor_alone_is_linear_and_may_be_said_as_its_inverse)
{
    for (int i = 0; i < 3; i++) {
        text[0] = 0;
        add(i == 1 ? "rope-freq-scale" : "rope-scale", i == 1 ? "0.5" : "2");
        if (i == 2) {
            add("rope-scaling", "yarn");
            add("yarn-ext-factor", "0"); /* no part of it is YaRN's then */
        }
        struct model *model = open_model();
        ck_assert_int_eq(model->layers[0].traits.rotary.scaling, ROTARY_LINEAR);
        ck_assert_float_eq(model->layers[0].traits.rotary.factor, 2);
        ck_assert_float_eq(model->layers[0].traits.rotary.magnitude, 1);
        ck_assert_uint_eq(model->params.n_context, 8192);
        model_free(model);
    }
}
END_TEST

START_TEST(a_value_is_replaced_by_one_of_its_kind_or_added)
{
    add("override-kv", "llama.rope.freq_base=float:5e5");
    add("override-kv", "tokenizer.ggml.add_bos_token=bool:false");
    add("override-kv", "general.name=str:a b=c: d");
    add("override-kv", "llama.context_length=int:1");
    add("override-kv", "llama.context_length=int:77"); /* the last one counts */
    struct model *model = open_model();
    struct bytes name = {0};
    ck_assert_float_eq(model->params.rope_base, 5e5f);
    ck_assert_uint_eq(model->params.n_context, 77);
    ck_assert(!tokenizer_adds_bos(model->tokenizer));
    const struct gguf_value *value = gguf_find(model->gguf, "general.name");
    ck_assert_ptr_nonnull(value);
    name = value->string;
    ck_assert(bytes_equal(name, BYTES_LITERAL("a b=c: d")));
    model_free(model);
}
END_TEST

/* Only the key itself: neither another one that ends like it, nor a text that has it inside. */
START_TEST(a_context_that_nobody_set_grows_with_the_factor)
{
    add("rope-scale", "2");
    add("override-kv", "general.name=str:llama.context_length=int:original_7");
    add("override-kv", "llama.rope.scaling.original_context_length=int:4096");
    struct model *model = open_model();
    ck_assert_uint_eq(model->params.n_context, 8192);
    model_free(model);
    add("override-kv", "llama.context_length=int:4000");
    model = open_model();
    ck_assert_uint_eq(model->params.n_context, 4000);
    model_free(model);
}
END_TEST

/* Another message would come from a reader; one of the tokenizer reads it where the model has none, too. */
START_TEST(a_key_that_nothing_reads_is_refused)
{
    static const char *const unread[] = {"llama.x=int:5", "general.context_length=int:5", "llama.x.y=str:a=b",
                                         "tokenizer.ggml.no_such_token_id=int:3", "general.license=str:mit"};
    static const char *const read[] = {
        "tokenizer.ggml.fim_pre_token_id=int:3", "general.sampling.temp=float:0.5",
        "tokenizer.chat_template=str:a",         "llama.rope.scaling.type=str:none",
        "llama.attention.key_length=int:64",     "general.name=str:another"};
    struct model *model = NULL;
    for (size_t i = 0; i < sizeof unread / sizeof *unread; i++) {
        char key[64], says[128];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(unread[i], "="), unread[i]);
        snprintf(says, sizeof says, "--override-kv: %s has no effect on this llama model", key);
        check_refused("override-kv", unread[i], says);
        add("override-kv", "general.name=str:another"); /* the last of two is no better */
        ck_assert_int_eq(model_open_overridden(path, text, false, &model, &err), -EINVAL);
        ck_assert_str_eq(err.text, says);
    }
    text[0] = 0;
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        add("override-kv", read[i]);
    for (int with_tokenizer = 0; with_tokenizer < 2; with_tokenizer++) {
        ck_assert_msg(model_open_overridden(path, text, with_tokenizer, &model, &err) == 0, "%s", err.text);
        model = model_free(model);
    }
}
END_TEST

START_TEST(other_overrides_are_another_model)
{
    uint8_t digests[4][16];
    for (int i = 0; i < 4; i++) {
        text[0] = 0;
        if (i % 2)
            add("rope-scale", i == 1 ? "2" : "3");
        struct model *model = open_model();
        ck_assert_int_eq(model_read_digest(model, 1, NULL, NULL, &err), 0);
        memcpy(digests[i], model->digest, 16);
        model_free(model);
    }
    ck_assert_mem_eq(digests[0], digests[2], 16);
    ck_assert_mem_ne(digests[0], digests[1], 16);
    ck_assert_mem_ne(digests[1], digests[3], 16);
}
END_TEST

START_TEST(what_contradicts_the_file_is_refused)
{
    check_refused("override-kv", "llama.embedding_length=int:96",
                  "tensor token_embd.weight has 512 rows of 256");
    check_refused("override-kv", "llama.attention.head_count=int:3", "");
    check_refused("override-kv", "llama.block_count=int:9", "there are only 20 tensors");
    check_refused("override-kv", "llama.vocab_size=int:3",
                  "llama.vocab_size=3, but the embedding has 512 rows");
    check_refused("override-kv", "llama.vocab_size=int:-3", "negative");
    check_refused("override-kv", "llama.embedding_length=float:96", "is int in the file, not float");
    check_refused("override-kv", "llama.context_length=int:-5", "negative");
    check_refused("override-kv", "tokenizer.ggml.tokens=str:a", "is a list in the file, not str");
    check_refused("override-kv", "lama.context_length=int:5", "the file has no lama.context_length");
    check_refused("override-kv", "split.count=int:2", "how the file is split");
    check_refused("override-kv", "general.architecture=str:nothing", "nothing");
    check_refused("override-kv", "llama.context_length", "is not KEY=TYPE:VALUE");
    check_refused("override-kv", "llama.context_length=long:5", "expected int, float, bool or str");
    check_refused("override-kv", "llama.context_length=int:5x", "llama.context_length: ");
    check_refused("override-kv", "llama.x=bool:1", "neither true nor false");
    check_refused("rope-scaling", "ntk", "expected none, linear or yarn");
    check_refused("rope-scaling", "yarn", "--rope-scale is missing");
    check_refused("rope-scale", "0.5", "out of range");
    check_refused("rope-scale", "nan", "");
    check_refused("rope-freq-scale", "0", "out of range");
    check_refused("yarn-orig-ctx", "2048", "the scaling is none, not yarn");
    check_refused("yarn-beta-fast", "32", "the scaling is none, not yarn");
    check_refused("no-such", "1", "unknown override");
}
END_TEST

START_TEST(options_that_exclude_one_another_are_refused)
{
    struct model *model = NULL;
    add("rope-scaling", "none");
    add("rope-scale", "2");
    ck_assert_int_lt(model_open_overridden(path, text, false, &model, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.text, "--rope-scaling none excludes it"));
    text[0] = 0;
    add("rope-scaling", "yarn");
    add("rope-scale", "2");
    add("yarn-ext-factor", "0.5");
    ck_assert_int_lt(model_open_overridden(path, text, false, &model, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.text, "only 1 (or -1) and 0"));
}
END_TEST

START_TEST(positions_that_do_not_rotate_are_not_scaled)
{
    struct model *model = open_model();
    add("rope-freq-base", "1e6");
    ck_assert_int_eq(model_check_overrides(model, text, &err), 0);
    for (uint32_t i = 0; i < model->params.n_layers; i++)
        model->layers[i].traits.rotary.kind = ROTARY_NONE;
    ck_assert_int_eq(model_check_overrides(model, text, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "no rotary positions"));
    ck_assert_int_eq(model_check_overrides(model, "", &err), 0);
    model_free(model);
}
END_TEST

START_TEST(a_text_has_room_for_so_much)
{
    char value[OVERRIDES_TEXT];
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = 0;
    memcpy(value, "general.name=str:", 17);
    ck_assert_int_eq(overrides_add(text, "override-kv", value, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "overrides of more than 4095 bytes"));
    ck_assert_str_eq(text, "");
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, yarn_makes_the_context_longer_by_its_factor);
    tcase_add_test(tests, a_factor_alone_is_linear_and_may_be_said_as_its_inverse);
    tcase_add_test(tests, a_value_is_replaced_by_one_of_its_kind_or_added);
    tcase_add_test(tests, a_context_that_nobody_set_grows_with_the_factor);
    tcase_add_test(tests, a_key_that_nothing_reads_is_refused);
    tcase_add_test(tests, other_overrides_are_another_model);
    tcase_add_test(tests, what_contradicts_the_file_is_refused);
    tcase_add_test(tests, options_that_exclude_one_another_are_refused);
    tcase_add_test(tests, positions_that_do_not_rotate_are_not_scaled);
    tcase_add_test(tests, a_text_has_room_for_so_much);
}

int main(void)
{
    return run_tests("overrides", add_tests);
}
