/* SPDX-License-Identifier: MIT */
/* Texts that bear on sampling become ids: those of the tokenizer, wherever the text stands. */

#include "tests/unit/run.h"
#include "worker/prepare/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/files/rundir.h"
#include "model/convert/synth.h"

static char folder[RUNDIR_PATH_MAX + 1];
static struct model *model;
static struct generation generation;
static struct words words;
static struct refusal refusal;

static void set_up(void)
{
    struct error err = {0};
    char path[RUNDIR_PATH_MAX + 32];
    ck_assert_int_eq(rundir_temporary(folder, &err), 0);
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    ck_assert_int_eq(synth_write(synth_shape_by_name("tiny"), mixture_by_name("F16"), 1, path, &err), 0);
    ck_assert_int_eq(model_open(path, true, &model, &err), 0);
    generation_defaults(&generation);
    generation.sampling.dry_multiplier = 0;
    words = (struct words){0};
}

static void tear_down(void)
{
    words_deinit(&words);
    model = model_free(model);
    rundir_remove(folder);
}

static bool find(void)
{
    words_deinit(&words);
    return words_find(model->tokenizer, &generation, words_with_dry(&generation, 0), &words, &refusal);
}

/* Whether the lists have one that is what the tokenizer makes of the text. */
static bool has(const struct ids *lists, const char *text)
{
    struct ids ids = {0};
    bool found = false;
    ck_assert_int_eq(tokenizer_encode(model->tokenizer, bytes_of_string(text), 0, &ids), 0);
    for (size_t at = 0; at < lists->len; at += 1 + (size_t)lists->data[at])
        found |= (size_t)lists->data[at] == ids.len &&
                 memcmp(lists->data + at + 1, ids.data, ids.len * sizeof *ids.data) == 0;
    ids_deinit(&ids);
    return found;
}

START_TEST(a_bad_word_is_its_ids_alone_and_behind_a_space)
{
    const struct bytes items[] = {BYTES_LITERAL("never"), BYTES_LITERAL(" ever"), BYTES_LITERAL("never")};
    ck_assert(!words_are_wanted(&generation, words_with_dry(&generation, 0)));
    generation.bad_words = (struct text_list){items, 3};
    ck_assert(words_are_wanted(&generation, words_with_dry(&generation, 0)));
    ck_assert(find());
    ck_assert(has(&words.bad, "never") && has(&words.bad, " never") && has(&words.bad, " ever"));
    ck_assert(has(&words.bad, "ever") && !has(&words.bad, "eve")); /* a space is its own */
    const size_t n = words.n_bad;                                  /* each once */
    generation.bad_words.n = 2;
    ck_assert(find());
    ck_assert_uint_eq(words.n_bad, n);
    struct sampling sampling = SAMPLING_GREEDY;
    words_lend(&words, &sampling);
    ck_assert_uint_eq(sampling.bad_words.n, n);
    ck_assert_ptr_eq(sampling.bad_words.items, words.bad.data);
}
END_TEST

START_TEST(a_bias_of_a_text_goes_to_each_of_its_ids_behind_the_requests_own)
{
    const struct logit_bias own[] = {{5, 1}};
    const struct text_bias texts[] = {{BYTES_LITERAL("ab"), -2}, {BYTES_LITERAL("c"), 3}};
    struct ids ab = {0};
    ck_assert_int_eq(tokenizer_encode(model->tokenizer, BYTES_LITERAL("ab"), 0, &ab), 0);
    generation.sampling.logit_bias = (struct logit_bias_list){own, 1};
    generation.logit_bias_text = (struct text_bias_list){texts, 2};
    ck_assert(find());
    ck_assert_uint_gt(words.n_biases, 2);
    ck_assert(words.biases[0].id == 5 && words.biases[0].bias == 1);
    for (size_t i = 0; i < ab.len; i++)
        ck_assert(words.biases[1 + i].id == ab.data[i] && words.biases[1 + i].bias == -2);
    ck_assert(words.biases[words.n_biases - 1].bias == 3);
    ids_deinit(&ab);
    /* Without texts the request's own stay where they are. */
    generation.logit_bias_text.n = 0;
    struct sampling sampling = generation.sampling;
    ck_assert(find());
    words_lend(&words, &sampling);
    ck_assert_ptr_eq(sampling.logit_bias.items, own);
}
END_TEST

START_TEST(more_ids_than_there_may_be_are_refused)
{
    static struct text_bias texts[SAMPLING_MAX_BIASES];
    for (size_t i = 0; i < SAMPLING_MAX_BIASES; i++)
        texts[i] = (struct text_bias){BYTES_LITERAL("#$#$"), 1};
    generation.logit_bias_text = (struct text_bias_list){texts, SAMPLING_MAX_BIASES};
    ck_assert(!find());
    ck_assert_int_eq(refusal.error, PROTO_BAD_REQUEST);
    ck_assert_ptr_nonnull(strstr(refusal.reason.text, "at most 1024"));
}
END_TEST

START_TEST(breakers_are_ids_that_contain_them_and_sequences)
{
    const struct bytes own[] = {BYTES_LITERAL("e"), BYTES_LITERAL("#$#")};
    generation.sampling.dry_multiplier = 0.8;
    ck_assert(words_are_wanted(&generation, words_with_dry(&generation, 0)));
    ck_assert(find());
    ck_assert_uint_eq(words.n_sequences, 0);
    for (int own_ones = 0; own_ones < 2; own_ones++) {
        const char *set = own_ones ? "e" : "\n:\"*";
        unsigned n_set = 0;
        for (uint32_t id = 0; id < tokenizer_size(model->tokenizer); id++) {
            const struct bytes piece = prompt_piece(model->tokenizer, (int32_t)id);
            bool expected = own_ones && piece.len >= 3 && memmem(piece.data, piece.len, "#$#", 3);
            for (size_t i = 0; i < piece.len; i++)
                expected |= strchr(set, ((const char *)piece.data)[i]) && ((const char *)piece.data)[i];
            ck_assert(expected == (words.mask[id / 32] >> id % 32 & 1));
            n_set += expected;
        }
        ck_assert_uint_gt(n_set, 0);
        generation.has_dry_breakers = true;
        generation.dry_breakers = (struct text_list){own, 2};
        ck_assert(find());
    }
    ck_assert(has(&words.sequences, "#$#"));
    generation.dry_breakers.n = 0; /* none */
    ck_assert(find());
    for (size_t i = 0; i < words.n_words; i++)
        ck_assert_uint_eq(words.mask[i], 0);
}
END_TEST

/* Where the request leaves it out, the pool's default says whether ids have to be looked for. */
START_TEST(what_leaves_dry_out_is_prepared_only_where_the_pool_has_it_on)
{
    generation_defaults(&generation);
    ck_assert(!words_with_dry(&generation, 0));
    ck_assert(!words_are_wanted(&generation, words_with_dry(&generation, 0)));
    ck_assert(find());
    ck_assert_ptr_null(words.mask);
    ck_assert(words_with_dry(&generation, 0.5));
    ck_assert(words_are_wanted(&generation, true));
    generation.sampling.dry_multiplier = 0;
    ck_assert(!words_with_dry(&generation, 0.5));
    generation.sampling.dry_multiplier = 0.8;
    ck_assert(words_with_dry(&generation, 0));
    generation.embed = true;
    ck_assert(!words_with_dry(&generation, 0) && !words_are_wanted(&generation, false));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_bad_word_is_its_ids_alone_and_behind_a_space);
    tcase_add_test(tests, a_bias_of_a_text_goes_to_each_of_its_ids_behind_the_requests_own);
    tcase_add_test(tests, more_ids_than_there_may_be_are_refused);
    tcase_add_test(tests, what_leaves_dry_out_is_prepared_only_where_the_pool_has_it_on);
    tcase_add_test(tests, breakers_are_ids_that_contain_them_and_sequences);
}

int main(void)
{
    return run_tests("words", add);
}
