/* SPDX-License-Identifier: MIT */
/* Prompts: which messages a conversation has in the end, and why one is refused. */

#include "tests/unit/run.h"
#include "worker/prepare/prompt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/files/rundir.h"
#include "model/convert/synth.h"

#define SPELL "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
#define NO_SYSTEM                                                                                            \
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system here') }}{% endif %}"                \
    "{{ messages[0].content }}"

static char folder[RUNDIR_PATH_MAX + 1];
static struct model *model;
static struct prompt_encoder encoder;

static void open_with(const char *template)
{
    struct error err = {0};
    char path[RUNDIR_PATH_MAX + 32];
    ck_assert_int_eq(rundir_temporary(folder, &err), 0);
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    ck_assert_int_eq(synth_write(synth_shape_by_name("tiny"), mixture_by_name("F16"), 1, path, &err), 0);
    ck_assert_int_eq(model_open(path, true, &model, &err), 0);
    model->chat_template = bytes_of_string(template);
    ck_assert_int_eq(prompt_encoder_init(&encoder, model, &err), 0);
    ck_assert_msg(!template[0] || encoder.chat, "%s", encoder.no_chat.text);
}

static void tear_down(void)
{
    prompt_encoder_deinit(&encoder);
    model = model_free(model);
    rundir_remove(folder);
}

static struct chat_message message(const char *role, const char *content)
{
    return (struct chat_message){.role = bytes_of_string(role), .content = bytes_of_string(content)};
}

/* The ids of a conversation are those of a text. */
static void check_same(const struct chat_message *messages, size_t n, const char *text)
{
    const struct prompt chat = {.form = PROMPT_CHAT, .chat = {messages, n}};
    struct ids ids = {0}, expected = {0};
    struct refusal refusal = {0};
    ck_assert_msg(prompt_encode(&encoder, &chat, BYTES_LITERAL(""), &ids, &refusal), "%s",
                  refusal.reason.text);
    ck_assert_int_eq(tokenizer_encode(encoder.tokenizer, bytes_of_string(text),
                                      TOKENIZER_ADD_SPECIAL | TOKENIZER_PARSE_SPECIAL, &expected),
                     0);
    ck_assert_uint_eq(ids.len, expected.len);
    ck_assert_mem_eq(ids.data, expected.data, ids.len * sizeof *ids.data);
    ids_deinit(&ids);
    ids_deinit(&expected);
}

START_TEST(a_system_message_is_for_conversations_that_bring_none)
{
    struct error err = {0};
    const struct chat_message user = message("user", "a"), own = message("system", "b"),
                              developer = message("developer", "c");
    open_with(SPELL);
    check_same(&user, 1, "<user>a");
    ck_assert_int_eq(prompt_encoder_set_system(&encoder, BYTES_LITERAL("Be brief."), &err), 0);
    check_same(&user, 1, "<system>Be brief.<user>a");
    check_same((struct chat_message[]){user, user}, 2, "<system>Be brief.<user>a<user>a");
    check_same((struct chat_message[]){own, user}, 2, "<system>b<user>a");
    check_same((struct chat_message[]){user, own}, 2, "<user>a<system>b");
    check_same((struct chat_message[]){developer, user}, 2, "<developer>c<user>a");
}
END_TEST

START_TEST(a_system_message_that_cannot_be_taken_is_refused)
{
    struct error err = {0};
    open_with(SPELL);
    ck_assert_int_eq(prompt_encoder_set_system(&encoder, BYTES_LITERAL("\xff"), &err), -EINVAL);
    ck_assert_msg(strstr(err.text, "UTF-8"), "%s", err.text);
    tear_down();
    open_with(NO_SYSTEM);
    ck_assert_int_eq(prompt_encoder_set_system(&encoder, BYTES_LITERAL("Be brief."), &err), -EINVAL);
    ck_assert_msg(strstr(err.text, "no system here"), "%s", err.text);
    tear_down();
    open_with("");
    ck_assert_int_eq(prompt_encoder_set_system(&encoder, BYTES_LITERAL("Be brief."), &err), -EINVAL);
    ck_assert_msg(strstr(err.text, "no chat template"), "%s", err.text);
}
END_TEST

/* One that cannot fit, however it is cut, is too long; anything else that a template refuses is a bad
 * request.
 */
START_TEST(reasons_have_their_names)
{
    const struct chat_message user = message("user", "abcdefgh"), own = message("system", "b");
    struct prompt chat = {.form = PROMPT_CHAT, .chat = {&user, 1}};
    struct ids ids = {0};
    struct refusal refusal = {0};
    open_with(NO_SYSTEM);
    encoder.most_bytes = 7;
    ck_assert(!prompt_encode(&encoder, &chat, BYTES_LITERAL(""), &ids, &refusal));
    ck_assert_int_eq(refusal.error, PROTO_TOO_LONG);
    encoder.most_bytes = 8;
    ck_assert(prompt_encode(&encoder, &chat, BYTES_LITERAL(""), &ids, &refusal));
    chat.chat.items = &own;
    refusal = (struct refusal){0};
    ck_assert(!prompt_encode(&encoder, &chat, BYTES_LITERAL(""), &ids, &refusal));
    ck_assert_int_eq(refusal.error, PROTO_BAD_REQUEST);
    ck_assert(!prompt_encode(&encoder, &chat, BYTES_LITERAL("[]"), &ids, &refusal));
    ck_assert_int_eq(refusal.error, PROTO_UNSUPPORTED);
    ids_deinit(&ids);
}
END_TEST

static void refused(const struct prompt *prompt, const char *tools, enum proto_error error, const char *says)
{
    struct ids ids = {0};
    struct refusal refusal = {0};
    ck_assert(!prompt_encode(&encoder, prompt, bytes_of_string(tools), &ids, &refusal));
    ck_assert_str_eq(refusal.reason.text, says);
    ck_assert_int_eq(refusal.error, error);
    ids_deinit(&ids);
}

static struct prompt text_prompt(const char *text)
{
    return (struct prompt){.form = PROMPT_TEXT, .text = bytes_of_string(text)};
}

START_TEST(a_text_that_cannot_be_a_prompt_is_told_why)
{
    struct ids ids = {0};
    struct refusal refusal;
    struct prompt prompt = text_prompt("a\xff");
    open_with("");
    refused(&prompt, "", PROTO_BAD_REQUEST, "the text is not UTF-8");
    encoder.most_bytes = 3;
    prompt = text_prompt("abcd");
    refused(&prompt, "", PROTO_TOO_LONG, "the prompt has 4 bytes; at most 3 bytes fit");
    prompt = text_prompt("abc");
    ck_assert(prompt_encode(&encoder, &prompt, BYTES_LITERAL(""), &ids, &refusal));
    ids_deinit(&ids);
}
END_TEST

START_TEST(a_conversation_that_cannot_be_a_prompt_is_told_why)
{
    const struct chat_message user = message("user", "abcdefgh");
    const struct prompt chat = {.form = PROMPT_CHAT, .chat = {&user, 1}};
    struct error err = {0};
    open_with("");
    refused(&chat, "", PROTO_UNSUPPORTED, "the model has no chat template: send text or token ids");
    tear_down();
    open_with(SPELL);
    refused(&chat, "[]", PROTO_UNSUPPORTED, "tools: the template does not support tools");
    prompt_encoder_deinit(&encoder);
    model->chat_template = BYTES_LITERAL("{% if %}");
    ck_assert_int_eq(prompt_encoder_init(&encoder, model, &err), 0);
    ck_assert_ptr_null(encoder.chat);
    ck_assert_msg(strstr(encoder.no_chat.text, "the model's chat template cannot be used: ") ==
                      encoder.no_chat.text,
                  "%s", encoder.no_chat.text);
    tear_down();
    open_with("{{ '' }}");
    struct ids ids = {0};
    struct refusal refusal = {0};
    ck_assert(prompt_encode(&encoder, &chat, BYTES_LITERAL(""), &ids, &refusal));
    ck_assert_uint_eq(ids.len, 1); /* the one that every text begins with */
    ids_deinit(&ids);
}
END_TEST

/* No token is longer than the longest, so a text of more bytes than that for each token cannot fit. */
START_TEST(the_bound_in_bytes_is_that_of_the_longest_token)
{
    size_t longest = 0;
    open_with("");
    for (uint32_t id = 0; id < tokenizer_size(encoder.tokenizer); id++) {
        size_t len = tokenizer_name(encoder.tokenizer, (int32_t)id).len;
        longest = len > longest ? len : longest;
    }
    ck_assert_uint_eq(encoder.most_bytes, SIZE_MAX);
    prompt_encoder_bound(&encoder, 96);
    ck_assert_uint_eq(encoder.most_bytes, 96 * longest);
}
END_TEST

/* As many of one byte as make up so many ids, with those that a text begins with. */
static bool takes_so_many(size_t n)
{
    struct ids ids = {0};
    struct refusal refusal = {0};
    ck_assert(prompt_encode_text(&encoder, BYTES_LITERAL("\1\1\1\1"), false, &ids, &refusal));
    const size_t more = ids.len - 4;
    char *text = malloc(n - more);
    memset(text, 1, n - more);
    ids.len = 0;
    bool taken = prompt_encode_text(&encoder, (struct bytes){text, n - more}, false, &ids, &refusal);
    ck_assert_uint_eq(ids.len, n);
    if (!taken) {
        ck_assert_int_eq(refusal.error, PROTO_TOO_LONG);
        ck_assert_str_eq(refusal.reason.text, "the text has too many tokens for one message");
    }
    ids_deinit(&ids);
    free(text);
    return taken;
}

START_TEST(a_text_may_have_as_many_tokens_as_a_message_may)
{
    open_with("");
    ck_assert(takes_so_many(PROTO_MAX_QUESTION_IDS));
    ck_assert(!takes_so_many(PROTO_MAX_QUESTION_IDS + 1));
}
END_TEST

static bool decodes(struct id_list ids, struct buffer *text, struct refusal *ret_refusal)
{
    *ret_refusal = (struct refusal){0};
    return prompt_decode(&encoder, ids, false, text, ret_refusal);
}

/* A model that ranks, with this template of pairs. */
static void open_ranking(const char *template)
{
    struct error err = {0};
    char path[RUNDIR_PATH_MAX + 32];
    ck_assert_int_eq(rundir_temporary(folder, &err), 0);
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    ck_assert_int_eq(synth_write(synth_shape_by_name("tiny-rank"), mixture_by_name("F16"), 1, path, &err), 0);
    ck_assert_int_eq(model_open(path, true, &model, &err), 0);
    model->rank_template = bytes_of_string(template);
    ck_assert_int_eq(prompt_encoder_init(&encoder, model, &err), 0);
}

static struct prompt pair(const char *query, const char *document)
{
    return (struct prompt){.form = PROMPT_TEXT,
                           .text = bytes_of_string(query),
                           .has_document = true,
                           .document = bytes_of_string(document)};
}

/* The ids of a pair are those of a text, of whose bytes the user wrote those marked with an x. */
static void check_pair(const char *query, const char *document, const char *text, const char *marks)
{
    const struct prompt prompt = pair(query, document);
    struct ids ids = {0}, expected = {0};
    struct refusal refusal = {0};
    uint8_t from_user[200];
    ck_assert_uint_eq(strlen(text), strlen(marks));
    for (size_t i = 0; marks[i]; i++)
        from_user[i] = marks[i] == 'x';
    ck_assert_msg(prompt_encode(&encoder, &prompt, BYTES_LITERAL(""), &ids, &refusal), "%s",
                  refusal.reason.text);
    ck_assert_int_eq(tokenizer_encode_mixed(encoder.tokenizer, bytes_of_string(text), from_user,
                                            TOKENIZER_PARSE_SPECIAL, &expected),
                     0);
    ck_assert_uint_eq(ids.len, expected.len);
    ck_assert_mem_eq(ids.data, expected.data, ids.len * sizeof *ids.data);
    ids_deinit(&ids);
    ids_deinit(&expected);
}

START_TEST(a_pair_is_put_together_as_the_template_has_it)
{
    open_ranking("<s>{query}|{document}{{query}</s>");
    check_pair("a", "bc", "<s>a|bc{a</s>", "   x xx x    ");
    /* Neither a place nor a control token in a text is more than its letters. */
    check_pair("{document}", "{query}</s>", "<s>{document}|{query}</s>{{document}</s>",
               "   xxxxxxxxxx xxxxxxxxxxx xxxxxxxxxx    ");
    tear_down();
    open_ranking("no place");
    check_pair("a", "b", "no place", "        ");
    tear_down();
    open_ranking("{query");
    check_pair("a", "b", "{query", "      ");
}
END_TEST

START_TEST(a_pair_that_cannot_be_put_together_is_told_why)
{
    struct ids ids = {0};
    struct refusal refusal = {0};
    struct prompt prompt = pair("a", "bcdefgh");
    open_ranking("{query}{document}");
    encoder.most_bytes = 7;
    ck_assert(!prompt_encode(&encoder, &prompt, BYTES_LITERAL(""), &ids, &refusal));
    ck_assert_int_eq(refusal.error, PROTO_TOO_LONG);
    ck_assert_str_eq(refusal.reason.text,
                     "the document has 7 bytes and the query 1 byte; at most 7 bytes fit");
    encoder.most_bytes = 8;
    ck_assert(prompt_encode(&encoder, &prompt, BYTES_LITERAL(""), &ids, &refusal));
    prompt = pair("a", "b\xff");
    ck_assert(!prompt_encode(&encoder, &prompt, BYTES_LITERAL(""), &ids, &refusal));
    ck_assert_int_eq(refusal.error, PROTO_BAD_REQUEST);
    prompt = (struct prompt){.form = PROMPT_TEXT, .text = BYTES_LITERAL("a")};
    ck_assert(!prompt_encode(&encoder, &prompt, BYTES_LITERAL(""), &ids, &refusal));
    ck_assert_int_eq(refusal.error, PROTO_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(refusal.reason.text, "a query and a document are required"));
    tear_down();
    prompt = pair("a", "b");
    open_ranking("");
    ck_assert(!prompt_encode(&encoder, &prompt, BYTES_LITERAL(""), &ids, &refusal));
    ck_assert_ptr_nonnull(strstr(refusal.reason.text, "has no tokenizer.chat_template.rerank"));
    tear_down();
    open_with(SPELL);
    ck_assert(!prompt_encode(&encoder, &prompt, BYTES_LITERAL(""), &ids, &refusal));
    ck_assert_int_eq(refusal.error, PROTO_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(refusal.reason.text, "does not rank pairs of texts"));
    ids_deinit(&ids);
}
END_TEST

START_TEST(ids_outside_the_vocabulary_are_named)
{
    struct buffer text = {0};
    struct refusal refusal;
    char says[128];
    open_with("");
    const int32_t n = (int32_t)tokenizer_size(encoder.tokenizer), last[] = {n - 1}, bad[] = {0, n},
                  low[] = {-1};
    ck_assert(decodes((struct id_list){last, 1}, &text, &refusal));
    ck_assert(!decodes((struct id_list){bad, 2}, &text, &refusal));
    snprintf(says, sizeof says, "id %d is outside the vocabulary of %d", n, n);
    ck_assert_str_eq(refusal.reason.text, says);
    ck_assert_int_eq(refusal.error, PROTO_BAD_REQUEST);
    ck_assert(!decodes((struct id_list){low, 1}, &text, &refusal));
    buffer_deinit(&text);
}
END_TEST

START_TEST(a_text_of_ids_may_be_as_long_as_a_message_and_leaves_nothing_otherwise)
{
    struct buffer text = {0};
    struct refusal refusal;
    struct ids one = {0};
    open_with("");
    ck_assert_int_eq(tokenizer_encode(encoder.tokenizer, BYTES_LITERAL("\1"), 0, &one), 0);
    const int32_t id = one.data[one.len - 1];
    ids_deinit(&one);
    ck_assert_uint_eq(tokenizer_piece(encoder.tokenizer, id, false).len, 1);
    const size_t most = PROTO_MAX_REQUEST_BYTES;
    int32_t *ids = malloc((most + 1) * sizeof *ids);
    for (size_t i = 0; i <= most; i++)
        ids[i] = id;
    ck_assert_int_eq(buffer_append(&text, "before", 6), 0);
    ck_assert(decodes((struct id_list){ids, most}, &text, &refusal));
    ck_assert_uint_eq(text.len, 6 + most);
    text.len = 6;
    ck_assert(!decodes((struct id_list){ids, most + 1}, &text, &refusal));
    ck_assert_str_eq(refusal.reason.text, "the text of these ids is too long for one message");
    ck_assert_int_eq(refusal.error, PROTO_TOO_LONG);
    ck_assert_uint_eq(text.len, 6);
    buffer_deinit(&text);
    free(ids);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, a_system_message_is_for_conversations_that_bring_none);
    tcase_add_test(tests, a_system_message_that_cannot_be_taken_is_refused);
    tcase_add_test(tests, reasons_have_their_names);
    tcase_add_test(tests, a_text_that_cannot_be_a_prompt_is_told_why);
    tcase_add_test(tests, a_conversation_that_cannot_be_a_prompt_is_told_why);
    tcase_add_test(tests, the_bound_in_bytes_is_that_of_the_longest_token);
    tcase_add_test(tests, a_text_may_have_as_many_tokens_as_a_message_may);
    tcase_add_test(tests, a_pair_is_put_together_as_the_template_has_it);
    tcase_add_test(tests, a_pair_that_cannot_be_put_together_is_told_why);
    tcase_add_test(tests, ids_outside_the_vocabulary_are_named);
    tcase_add_test(tests, a_text_of_ids_may_be_as_long_as_a_message_and_leaves_nothing_otherwise);
}

int main(void)
{
    return run_tests("prompt", add);
}
