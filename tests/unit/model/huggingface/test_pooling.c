/* SPDX-License-Identifier: MIT */
/* What 1_Pooling/config.json says of embeddings, and what of it is refused. */

#include "model/huggingface/pooling.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <string.h>

/* As the program that trains such models writes it: a flag for each way. */
#define FLAGS(cls, mean, max, root, weighted, last)                                                          \
    "{\"word_embedding_dimension\":1024,\"pooling_mode_cls_token\":" #cls                                    \
    ",\"pooling_mode_mean_tokens\":" #mean ",\"pooling_mode_max_tokens\":" #max                              \
    ",\"pooling_mode_mean_sqrt_len_tokens\":" #root ",\"pooling_mode_weightedmean_tokens\":" #weighted       \
    ",\"pooling_mode_lasttoken\":" #last ",\"include_prompt\":true}"

START_TEST(each_way_has_its_number_in_gguf)
{
    static const struct {
        const char *text;
        uint32_t type;
    } cases[] = {
        {FLAGS(false, true, false, false, false, false), 1},
        {FLAGS(false, false, false, true, false, false), 1},
        {FLAGS(true, false, false, false, false, false), 2},
        {FLAGS(false, false, false, false, false, true), 3},
        {"{\"pooling_mode_cls_token\":true}", 2},
        {"{\"pooling_mode\":\"mean\"}", 1},
        {"{\"pooling_mode\":\"cls\",\"embedding_dimension\":8}", 2},
        {"{\"pooling_mode\":\"lasttoken\"}", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        uint32_t type = 0;
        ck_assert_msg(pooling_parse(bytes_of_string(cases[i].text), &type, &err) == 0, "%s", err.text);
        ck_assert_msg(type == cases[i].type, "%s: %u", cases[i].text, type);
    }
}
END_TEST

START_TEST(what_cannot_be_computed_is_refused_by_name)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", ""},
        {"[]", ""},
        {"{}", "no pooling_mode is set"},
        {FLAGS(false, false, false, false, false, false), "no pooling_mode is set"},
        {FLAGS(false, false, true, false, false, false), "pooling_mode_max_tokens is not supported"},
        {FLAGS(false, false, false, false, true, false), "pooling_mode_weightedmean_tokens is not supported"},
        {FLAGS(true, true, false, false, false, false),
         "pooling_mode_cls_token and pooling_mode_mean_tokens are both set"},
        {FLAGS(true, "yes", false, false, false, false), "pooling_mode_mean_tokens"},
        {"{\"pooling_mode\":\"max\"}", "pooling_mode_max_tokens is not supported"},
        {"{\"pooling_mode\":\"median\\n\"}", "\"median"},
        {"{\"pooling_mode\":3}", "pooling_mode"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        uint32_t type = 77;
        ck_assert_int_eq(pooling_parse(bytes_of_string(cases[i].text), &type, &err), -EINVAL);
        ck_assert_msg(strstr(err.text, cases[i].says) && !strchr(err.text, '\n'), "%s", err.text);
        ck_assert_uint_eq(type, 77);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, each_way_has_its_number_in_gguf);
    tcase_add_test(tests, what_cannot_be_computed_is_refused_by_name);
}

int main(void)
{
    return run_tests("huggingface/pooling", add);
}
