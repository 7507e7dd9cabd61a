/* SPDX-License-Identifier: MIT */
/* What a budget for thoughts needs: ids that spell the end of a thought, where a prompt leaves the model, the
 * template's own variables. */

#include "tests/unit/run.h"
#include "tests/unit/text/tokenizer/vocabularies.h"
#include "worker/prepare/thinking.h"

#include <string.h>

static const struct dialect_thoughts known = {.known = true,
                                              .open = " <think>",
                                              .close = "</think>",
                                              .end = "\n</think>\n\n",
                                              .budget_key = "",
                                              .reason = ""};

/* A vocabulary that puts a space before every text, with the mark as a control token or in bytes only. */
static struct tokenizer *tokenizer_with(bool mark)
{
    struct test_vocabulary v;
    vocabulary_begin(&v, "llama");
    vocabulary_add(&v, (struct test_token){"<unk>", TOKEN_UNKNOWN, 0});
    vocabulary_add(&v, (struct test_token){"<s>", TOKEN_CONTROL, 0});
    vocabulary_add(&v, (struct test_token){"</s>", TOKEN_CONTROL, 0});
    vocabulary_add_bytes(&v);
    vocabulary_add(&v, (struct test_token){"▁", TOKEN_NORMAL, -1});
    vocabulary_add(&v, (struct test_token){"<think>", mark ? TOKEN_CONTROL : TOKEN_NORMAL, 0});
    if (mark)
        vocabulary_add(&v, (struct test_token){"</think>", TOKEN_CONTROL, 0});
    vocabulary_finish(&v);
    return vocabulary_must_open(&v);
}

static void check_spells(const struct tokenizer *t, const struct ids *ids, const char *text)
{
    struct buffer got = {0};
    for (size_t i = 0; i < ids->len; i++) {
        const struct bytes piece = tokenizer_type(t, ids->data[i]) == TOKEN_CONTROL
                                       ? tokenizer_name(t, ids->data[i])
                                       : tokenizer_piece(t, ids->data[i], false);
        buffer_append(&got, piece.data, piece.len);
    }
    ck_assert_uint_eq(got.len, strlen(text));
    ck_assert_mem_eq(got.data, text, got.len);
    buffer_deinit(&got);
}

START_TEST(the_ids_of_an_end_spell_it_and_no_space_before)
{
    for (int mark = 0; mark < 2; mark++) {
        struct tokenizer *t = tokenizer_with(mark);
        struct thought_ends ends;
        ck_assert_int_eq(thought_ends_init(&ends, t, &known), 0);
        check_spells(t, &ends.close, "\n</think>");
        check_spells(t, &ends.whole, mark ? "\n</think> \n\n" : "\n</think>\n\n"); /* as in a prompt */
        ck_assert_uint_eq(ends.close.len, mark ? 2 : strlen("\n</think>"));
        thought_ends_deinit(&ends);
        /* Where the template is known by its marks alone. */
        struct dialect_thoughts bare = known;
        bare.end = "";
        ck_assert_int_eq(thought_ends_init(&ends, t, &bare), 0);
        check_spells(t, &ends.close, "</think>");
        check_spells(t, &ends.whole, "</think>");
        thought_ends_deinit(&ends);
        tokenizer_free(t);
    }
}
END_TEST

START_TEST(a_budget_that_cannot_be_kept_is_refused_by_name)
{
    struct tokenizer *t = tokenizer_with(true);
    struct thought_ends ends;
    struct refusal refusal = {0};
    ck_assert_int_eq(thought_ends_init(&ends, t, &known), 0);
    ck_assert(thinking_check(&ends, &known, 0, &refusal) && thinking_check(&ends, &known, 5, &refusal));
    thought_ends_deinit(&ends);
    struct dialect_thoughts unknown = {.open = "", .close = "", .end = "", .budget_key = "", .reason = "so"};
    ck_assert_int_eq(thought_ends_init(&ends, t, &unknown), 0);
    ck_assert(thinking_check(&ends, &unknown, 0, &refusal)); /* there is no thought */
    ck_assert(!thinking_check(&ends, &unknown, 1, &refusal));
    ck_assert_int_eq(refusal.error, PROTO_UNSUPPORTED);
    ck_assert_str_eq(refusal.reason.text, "thinking_budget: unknown how this model ends a thought: so");
    ck_assert(!thinking_check(&ends, &known, 0, &refusal)); /* with the ends of a tokenizer that has none */
    ck_assert_str_eq(refusal.reason.text,
                     "thinking_budget: the model's tokenizer cannot write the end of a thought (</think>)");
    thought_ends_deinit(&ends);
    tokenizer_free(t);
}
END_TEST

static bool is_inside(const struct tokenizer *t, enum prompt_form form, bool continued, const char *text)
{
    const struct prompt prompt = {.form = form, .continue_turn = continued};
    struct ids ids = {0};
    bool inside = false;
    ck_assert_int_eq(tokenizer_encode(t, bytes_of_string(text), TOKENIZER_PARSE_SPECIAL, &ids), 0);
    ck_assert_int_eq(thinking_is_inside(t, &known, &prompt, (struct ids_view){ids.data, ids.len}, &inside),
                     0);
    ids_deinit(&ids);
    return inside;
}

START_TEST(a_prompt_may_leave_the_model_inside_a_thought)
{
    struct tokenizer *t = tokenizer_with(true);
    ck_assert(is_inside(t, PROMPT_CHAT, false, "a <think>") &&
              is_inside(t, PROMPT_CHAT, false, "a<think>\n\n "));
    ck_assert(!is_inside(t, PROMPT_CHAT, false, "a <think> b")); /* what a user writes is no thought */
    ck_assert(!is_inside(t, PROMPT_CHAT, false, "a <think>\n\n</think>\n\n"));
    ck_assert(!is_inside(t, PROMPT_CHAT, false, "a") && !is_inside(t, PROMPT_CHAT, false, ""));
    ck_assert(is_inside(t, PROMPT_CHAT, true, "a <think> b"));
    ck_assert(!is_inside(t, PROMPT_CHAT, true, "a <think> b</think> c"));
    for (enum prompt_form form = PROMPT_TEXT; form <= PROMPT_IDS; form++) {
        ck_assert(is_inside(t, form, false, "a <think> b") == (form != PROMPT_CHAT));
        ck_assert(!is_inside(t, form, false, "a <think> b</think> c"));
    }
    ck_assert(is_inside(t, PROMPT_IDS, false, "</think> <think> a"));
    tokenizer_free(t);
}
END_TEST

static void check_variables(const struct dialect_thoughts *thoughts, bool has, uint32_t budget,
                            const char *given, const char *wanted)
{
    const struct prompt prompt = {.form = PROMPT_CHAT,
                                  .template_kwargs = bytes_of_string(given),
                                  .has_thinking_budget = has,
                                  .thinking_budget = budget};
    struct bytes got;
    char *made;
    ck_assert(thinking_variables(thoughts, &prompt, &got, &made));
    ck_assert_msg(bytes_equal(got, bytes_of_string(wanted)), "%.*s", (int)got.len, (const char *)got.data);
    free(made);
}

START_TEST(templates_get_their_own_variables)
{
    struct dialect_thoughts thoughts = known;
    check_variables(&thoughts, true, 0, "", "");
    thoughts.switch_off = json_pack("{s:b}", "enable_thinking", 0);
    check_variables(&thoughts, true, 0, "", "{\"enable_thinking\":false}");
    check_variables(&thoughts, true, 1, "", "");
    check_variables(&thoughts, false, 0, "", "");
    check_variables(&thoughts, true, 0, "{\"a\":1}", "{\"a\":1,\"enable_thinking\":false}");
    check_variables(&thoughts, true, 0, "{\"enable_thinking\":true}", "{\"enable_thinking\":true}");
    check_variables(&thoughts, true, 0, "{no", "{no"); /* whoever reads it says so */
    check_variables(&thoughts, true, 0, "[1]", "[1]");
    thoughts.budget_key = "thinking_budget";
    check_variables(&thoughts, true, 7, "", "{\"thinking_budget\":7}");
    check_variables(&thoughts, true, 7, "{\"thinking_budget\":9}", "{\"thinking_budget\":9}");
    json_decref(thoughts.switch_off);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_ids_of_an_end_spell_it_and_no_space_before);
    tcase_add_test(tests, a_budget_that_cannot_be_kept_is_refused_by_name);
    tcase_add_test(tests, a_prompt_may_leave_the_model_inside_a_thought);
    tcase_add_test(tests, templates_get_their_own_variables);
}

int main(void)
{
    return run_tests("thinking", add);
}
