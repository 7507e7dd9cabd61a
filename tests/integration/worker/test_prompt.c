/* SPDX-License-Identifier: MIT */
/* What a real quern-worker makes of prompts: texts, conversations and tools, limits, and what cannot be
 * served. */

#include "tests/integration/worker/told.h"
#include "tests/unit/run.h"

#include <string.h>

START_TEST(a_limit_that_nobody_gave_is_cut_to_what_the_prompt_leaves)
{
    static const struct {
        uint32_t n_prompt;
        uint64_t n_made;
    } cases[] = {{4000, 96}, {4095, 1}, {100, 3996}};
    struct scripted *s = scripted_new(NULL);
    handshake(s);
    for (uint8_t i = 0; i < 3; i++) {
        struct message assign = assignment(i, cases[i].n_prompt, 0);
        say(s, &assign);
        struct message finished = expect(s, MESSAGE_FINISHED);
        ck_assert_int_eq(finished.finished.end.reason, END_LENGTH);
        ck_assert_uint_eq(finished.finished.count, cases[i].n_made);
    }
    scripted_free(s);
}
END_TEST

START_TEST(what_cannot_be_served_ends_with_its_reason)
{
    struct scripted *s = scripted_new(NULL);
    handshake(s);
    const struct chat_message turn = {.role = BYTES_LITERAL("user"), .content = BYTES_LITERAL("hi")};
    const int32_t bad_id = 1 << 20;
    struct {
        struct message assign;
        enum proto_error error;
        const char *says;
    } cases[3] = {{assignment(1, 4000, 97), PROTO_TOO_LONG, "4096"},
                  {assignment(2, 5, 5), PROTO_BAD_REQUEST, "1048576"},
                  {assignment(3, 5, 5), PROTO_UNSUPPORTED, "text"}};
    cases[1].assign.assign.generation.prompt.ids = (struct id_list){&bad_id, 1};
    cases[2].assign.assign.generation.prompt = (struct prompt){.form = PROMPT_CHAT};
    cases[2].assign.assign.generation.prompt.chat.items = &turn;
    cases[2].assign.assign.generation.prompt.chat.n = 1;
    for (int i = 0; i < 3; i++) {
        struct frame frame;
        say(s, &cases[i].assign);
        ck_assert(next_frame(s, WAIT_MS, &frame));
        ck_assert(frame.has_end && frame.ids.n == 0 && frame.seq == 0);
        ck_assert_int_eq(frame.end.reason, END_ERROR);
        ck_assert_str_eq(proto_error_name(frame.end.error), proto_error_name(cases[i].error));
        ck_assert_ptr_nonnull(
            memmem(frame.end.text.data, frame.end.text.len, cases[i].says, strlen(cases[i].says)));
        struct message finished = expect(s, MESSAGE_FINISHED);
        ck_assert_uint_eq(finished.finished.count, 0);
        ck_assert_int_eq(finished.finished.end.error, cases[i].error);
    }
    check_serves(s, 9);
    scripted_free(s);
}
END_TEST

static struct message conversation(uint8_t id)
{
    static const struct chat_message turns[] = {
        {.role = BYTES_LITERAL("system"), .content = BYTES_LITERAL("Be brief.")},
        {.role = BYTES_LITERAL("user"), .content = BYTES_LITERAL("How are you?")}};
    struct message message = assignment(id, 1, 10);
    message.assign.generation.prompt = (struct prompt){.form = PROMPT_CHAT};
    message.assign.generation.prompt.chat.items = turns;
    message.assign.generation.prompt.chat.n = 2;
    return message;
}

START_TEST(a_conversation_goes_through_the_models_template)
{
    struct scripted *s = scripted_new_with_template(
        "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]");
    handshake(s);
    struct message assign = conversation(1);
    say(s, &assign);
    struct told told = read_request(s, 1);
    ck_assert_int_eq(told.end.reason, END_LENGTH);
    expect(s, MESSAGE_FINISHED);
    struct message ask = {.kind = MESSAGE_TOKENIZE};
    ask.tokenize.has_text = true;
    ask.tokenize.text = BYTES_LITERAL("[system]Be brief.[user]How are you?[assistant]");
    say(s, &ask);
    ck_assert_uint_eq(expect(s, MESSAGE_TOKENIZE_OK).tokenize_ok.ids.n, told.end.usage.prompt_tokens);
    told_deinit(&told);
    scripted_free(s);
}
END_TEST

/* What a template writes of a message's calls: from it their form is derived. */
#define WRITES_CALLS                                                                                         \
    "{% for c in m.tool_calls or [] %}<tool_call>{\"name\": \"{{ c.function.name }}\", \"arguments\": "      \
    "{{ c.function.arguments | tojson }}}</tool_call>{% endfor %}"

START_TEST(tools_go_to_templates_that_know_them)
{
    for (int knows = 0; knows < 2; knows++) {
        struct scripted *s = scripted_new_with_template(
            knows ? "{{ tools | tojson if tools }}{% for m in messages %}{{ m.content }}" WRITES_CALLS
                    "{% endfor %}"
                  : "{% for m in messages %}{{ m.content }}{% endfor %}");
        struct frame frame;
        handshake(s);
        struct message assign = conversation(1);
        assign.assign.generation.tools = BYTES_LITERAL("[{}, {}]");
        say(s, &assign);
        if (!knows) {
            ck_assert(next_frame(s, WAIT_MS, &frame));
            ck_assert_int_eq(frame.end.error, PROTO_UNSUPPORTED);
            scripted_free(s);
            continue;
        }
        struct told told = read_request(s, 1);
        ck_assert_int_eq(told.end.reason, END_LENGTH);
        expect(s, MESSAGE_FINISHED);
        struct message ask = {.kind = MESSAGE_TOKENIZE};
        ask.tokenize.has_text = true;
        ask.tokenize.text = BYTES_LITERAL("[{}, {}]Be brief.How are you?");
        say(s, &ask);
        ck_assert_uint_eq(expect(s, MESSAGE_TOKENIZE_OK).tokenize_ok.ids.n, told.end.usage.prompt_tokens);
        struct message back = {.kind = MESSAGE_DETOKENIZE};
        const int32_t ids[] = {1, 'a' + 3};
        back.detokenize.ids = (struct id_list){ids, 2};
        back.detokenize.special = true;
        say(s, &back);
        struct bytes text = expect(s, MESSAGE_DETOKENIZE_OK).detokenize_ok.text;
        ck_assert_msg(bytes_equal(text, BYTES_LITERAL("<s>a")), "%.*s", (int)text.len,
                      (const char *)text.data);
        told_deinit(&told);
        scripted_free(s);
    }
}
END_TEST

/* A control token has no text, but where it marks the calls of a request that has tools. */
START_TEST(marks_of_calls_are_text_where_there_are_tools)
{
    enum { MARK = 300 };
    const struct logit_bias forced = {MARK, 100};
    struct scripted *s = scripted_new_with_mark(
        "{{ tools if tools }}{% for m in messages %}{{ m.content }}" WRITES_CALLS "{% endfor %}", MARK,
        "<tool_call>");
    handshake(s);
    for (uint8_t tools = 0; tools < 2; tools++) {
        struct message assign = conversation(1 + tools);
        assign.assign.generation.max_tokens = 2;
        assign.assign.generation.sampling.logit_bias = (struct logit_bias_list){&forced, 1};
        if (tools)
            assign.assign.generation.tools = BYTES_LITERAL("[{}]");
        say(s, &assign);
        struct told told = read_request(s, 1 + tools);
        ck_assert_uint_eq(told.ids.len, 2);
        ck_assert_int_eq(told.ids.data[0], MARK);
        struct bytes text = {told.text.data, told.text.len};
        ck_assert_msg(bytes_equal(text, tools ? BYTES_LITERAL("<tool_call><tool_call>") : BYTES_LITERAL("")),
                      "%.*s", (int)text.len, (const char *)text.data);
        expect(s, MESSAGE_FINISHED);
        told_deinit(&told);
    }
    scripted_free(s);
}
END_TEST

START_TEST(a_template_that_refuses_or_does_not_compile_costs_only_conversations)
{
    static const struct {
        const char *source, *says;
        enum proto_error error;
    } cases[] = {{"{{ raise_exception('only \xff one turn') }}", "one turn", PROTO_BAD_REQUEST},
                 {"{% for %}", "cannot be used", PROTO_UNSUPPORTED}};
    for (int i = 0; i < 2; i++) {
        struct scripted *s = scripted_new_with_template(cases[i].source);
        struct frame frame;
        handshake(s);
        struct message assign = conversation(1);
        say(s, &assign);
        ck_assert(next_frame(s, WAIT_MS, &frame));
        ck_assert(frame.has_end);
        ck_assert_str_eq(proto_error_name(frame.end.error), proto_error_name(cases[i].error));
        ck_assert_ptr_nonnull(
            memmem(frame.end.text.data, frame.end.text.len, cases[i].says, strlen(cases[i].says)));
        expect(s, MESSAGE_FINISHED);
        check_serves(s, 2);
        scripted_free(s);
    }
}
END_TEST

START_TEST(text_is_tokenized_for_clients)
{
    struct scripted *s = scripted_new(NULL);
    handshake(s);
    struct message ask = {.kind = MESSAGE_TOKENIZE};
    ask.tokenize.ref = 7;
    ask.tokenize.has_text = true;
    ask.tokenize.text = BYTES_LITERAL("Hello there");
    say(s, &ask);
    struct message answer = expect(s, MESSAGE_TOKENIZE_OK);
    ck_assert_uint_eq(answer.tokenize_ok.ref, 7);
    ck_assert_uint_gt(answer.tokenize_ok.ids.n, 1);
    scripted_free(s);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, a_limit_that_nobody_gave_is_cut_to_what_the_prompt_leaves);
    tcase_add_test(tests, what_cannot_be_served_ends_with_its_reason);
    tcase_add_test(tests, a_conversation_goes_through_the_models_template);
    tcase_add_test(tests, tools_go_to_templates_that_know_them);
    tcase_add_test(tests, marks_of_calls_are_text_where_there_are_tools);
    tcase_add_test(tests, a_template_that_refuses_or_does_not_compile_costs_only_conversations);
    tcase_add_test(tests, text_is_tokenized_for_clients);
}

int main(void)
{
    return run_tests("prompt", add);
}
