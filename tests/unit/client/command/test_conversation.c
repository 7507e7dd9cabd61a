/* SPDX-License-Identifier: MIT */
/* A conversation of quern chat, and the files that it is written to and read from. */

#include "client/command/chat/conversation.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];
static struct conversation conversation;

static void set_up(void)
{
    snprintf(path, sizeof path, "/tmp/quern-conversation-%d", (int)getpid());
    conversation = (struct conversation){0};
}

static void tear_down(void)
{
    conversation_deinit(&conversation);
    unlink(path);
}

static void say(const char *role, const char *text, const char *thought)
{
    ck_assert_int_eq(conversation_add(&conversation, role, bytes_of_string(text), bytes_of_string(thought)),
                     0);
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(what_is_saved_is_loaded_again)
{
    struct error err = {0};
    for (int i = 0; i < 40; i++) {
        say("user", "Gr\xc3\xbc\xc3\x9f \"dich\"\n\\", "");
        say("assistant", i % 2 ? "" : "\t\033[1m", i % 3 ? "" : "A thought.");
    }
    ck_assert_int_eq(conversation_set_system(&conversation, "Be brief."), 0);
    ck_assert_msg(conversation_save(&conversation, path, &err) == 0, "%s", err.text);
    struct conversation loaded = {0};
    ck_assert_msg(conversation_load(&loaded, path, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(loaded.n, 81);
    for (size_t i = 0; i < loaded.n; i++) {
        const struct quern_message *was = &conversation.turns[i], *is = &loaded.turns[i];
        ck_assert_str_eq(is->role, was->role);
        ck_assert_str_eq(is->content, was->content);
        ck_assert_int_eq(!is->thought, !was->thought);
        if (is->thought)
            ck_assert_str_eq(is->thought, was->thought);
    }
    conversation_deinit(&loaded);
}
END_TEST

START_TEST(what_is_no_text_is_not_saved)
{
    struct error err = {0};
    ck_assert_int_eq(conversation_set_system(&conversation, "Gr\xfc\xdf"), 0);
    ck_assert_int_eq(conversation_save(&conversation, path, &err), -EILSEQ);
    ck_assert_str_eq(err.text, "the system message (messages[0]) is not UTF-8");
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(a_system_message_is_replaced_and_removed)
{
    say("user", "Hi", "");
    ck_assert_int_eq(conversation_set_system(&conversation, ""), 0);
    ck_assert_uint_eq(conversation.n, 1);
    ck_assert_int_eq(conversation_set_system(&conversation, "One"), 0);
    ck_assert_int_eq(conversation_set_system(&conversation, "Two"), 0);
    ck_assert_uint_eq(conversation.n, 2);
    ck_assert_str_eq(conversation.turns[0].content, "Two");
    ck_assert_str_eq(conversation.turns[1].content, "Hi");
    ck_assert_int_eq(conversation_set_system(&conversation, ""), 0);
    ck_assert_uint_eq(conversation.n, 1);
    ck_assert_str_eq(conversation.turns[0].role, "user");
}
END_TEST

START_TEST(other_files_with_messages_are_read_too)
{
    struct error err = {0};
    write_file("{\"id\": \"x\", \"messages\": [{\"role\": \"user\", \"content\": \"Hi\", \"files\": []},"
               " {\"role\": \"assistant\", \"content\": \"Yes\", \"thought\": \"Hm\", \"end\": \"stop\"}]}");
    ck_assert_msg(conversation_load(&conversation, path, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(conversation.n, 2);
    ck_assert_str_eq(conversation.turns[1].thought, "Hm");
    write_file("[]");
    ck_assert_int_eq(conversation_load(&conversation, path, &err), 0);
    ck_assert_uint_eq(conversation.n, 0);
}
END_TEST

START_TEST(what_cannot_be_loaded_is_named_and_changes_nothing)
{
    static const char *const cases[][2] = {
        {"{", "line 1: "},
        {"", "line 1: "},
        {"{\"prompt\": 5}", "has no array"},
        {"{\"messages\": {}}", "has no array"},
        {"[5]", "messages[0].role is not"},
        {"[{\"role\": \"tool\", \"content\": \"\"}]", "messages[0].role is not system, user or assistant"},
        {"[{\"role\": \"user\", \"content\": \"Hi\", \"images\": [\"aGk=\"]}]", "messages[0] has images"},
        {"[{\"role\": \"user\"}]", "messages[0].content is not a string"},
        {"[{\"role\": \"user\", \"content\": [{\"text\": \"Hi\"}]}]", "messages[0].content is not a string"},
        {"[{\"role\": \"user\", \"content\": \"Hi\"}]", "messages[0] is a user message without an answer"},
        {"[{\"role\": \"user\", \"content\": \"a\\u0000b\"}]", "line 1: "},
        {"[{\"role\": \"user\", \"content\": \"\", \"files\": [{}]}]", "messages[0] has files"},
        {"[{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{}]}]",
         "messages[0] has tool_calls"},
        {"[{\"role\": \"assistant\", \"content\": \"\", \"reasoning_content\": 5}]",
         "messages[0]: the thought"},
        {"[{\"role\": \"user\", \"content\": \"\"}, {\"role\": \"system\", \"content\": \"\"}]",
         "messages[1].role is system; only the first can be"},
    };
    struct error err = {0};
    say("user", "kept", "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(cases[i][0]);
        ck_assert_int_eq(conversation_load(&conversation, path, &err), -EINVAL);
        ck_assert_msg(strncmp(err.text, path, strlen(path)) == 0, "%s", err.text);
        ck_assert_msg(strstr(err.text, cases[i][1]) != NULL, "%s: %s", cases[i][0], err.text);
        ck_assert_uint_eq(conversation.n, 1);
        ck_assert_str_eq(conversation.turns[0].content, "kept");
    }
    unlink(path);
    ck_assert_int_eq(conversation_load(&conversation, path, &err), -ENOENT);
    ck_assert_int_eq(conversation_save(&conversation, "/nowhere/x", &err), -ENOENT);
    ck_assert_uint_eq(conversation.n, 1);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, what_is_saved_is_loaded_again);
    tcase_add_test(tests, what_is_no_text_is_not_saved);
    tcase_add_test(tests, a_system_message_is_replaced_and_removed);
    tcase_add_test(tests, other_files_with_messages_are_read_too);
    tcase_add_test(tests, what_cannot_be_loaded_is_named_and_changes_nothing);
}

int main(void)
{
    return run_tests("client/conversation", add);
}
