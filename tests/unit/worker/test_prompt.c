/* SPDX-License-Identifier: MIT */
/* Prompts: which messages a conversation has in the end, and why one is refused. */

#include "tests/unit/run.h"
#include "worker/prompt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rundir.h"
#include "worker/convert/synth.h"

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

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, a_system_message_is_for_conversations_that_bring_none);
    tcase_add_test(tests, a_system_message_that_cannot_be_taken_is_refused);
    tcase_add_test(tests, reasons_have_their_names);
}

int main(void)
{
    return run_tests("prompt", add);
}
