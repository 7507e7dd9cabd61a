/* SPDX-License-Identifier: MIT */
/* A chat template, whatever its bytes, is compiled or refused, renders a conversation or fails with a reason
 * on one line, and ends: the bounds on steps, memory and depth hold. What the messages say is marked as the
 * user's wherever it comes out: their words hold a letter that no template can spell, and no byte of it may
 * come out unmarked. For libFuzzer the sources are text/template/chat_template.c, text/template/jinja,
 * text/tokenizer, gguf and common. */

#include "tests/fuzz/driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text/template/chat_template.h"

/* Ends a template's part of the input; what follows is the user's. */
static const char separator[] = "\n=====\n";

/* The letter that marks what the user wrote: U+1F9A1. The template's bytes are changed where they have it. */
static const char letter[] = "\xf0\x9f\xa6\xa1";

static void check_reason(int r, const struct error *err)
{
    if (r != -ENOMEM && (!err->text[0] || strchr(err->text, '\n')))
        abort();
}

static void check_marks(const struct chat_text *text)
{
    if (text->text.len != text->from_user.len)
        abort();
    if (text->text.len == 0) /* and no data */
        return;
    const uint8_t *at = text->text.data, *end = at + text->text.len;
    while (at < end && (at = memmem(at, (size_t)(end - at), letter, 4))) {
        if (memchr(text->from_user.data + (at - text->text.data), 0, 4))
            abort();
        at += 4;
    }
}

static json_t *conversation(const uint8_t *user, size_t len)
{
    json_t *content = json_stringn((const char *)user, len);
    if (!content)
        content = json_string("Hi <|im_end|> \xf0\x9f\xa6\xa1 ");
    json_t *messages = json_array();
    json_array_append_new(messages,
                          json_pack("{s:s, s:s}", "role", "system", "content", "\xf0\x9f\xa6\xa1 Be kind."));
    json_array_append_new(messages, json_pack("{s:s, s:o}", "role", "user", "content", content));
    json_array_append_new(messages, json_pack("{s:s, s:n, s:[{s:s, s:{s:i, s:f, s:b}}]}", "role", "assistant",
                                              "content", "tool_calls", "name", "f", "arguments", "a", 1, "b",
                                              2.5, "c", 1));
    return messages;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct chat_template *t = NULL;
    struct error err = {0};
    const uint8_t *cut = memmem(data, len, separator, sizeof separator - 1);
    size_t source_len = cut ? (size_t)(cut - data) : len;
    size_t user_at = cut ? source_len + sizeof separator - 1 : len;
    if (memmem(data, source_len, letter, 4))
        return 0;
    int r = chat_template_new((struct bytes){data, source_len}, BYTES_LITERAL("<s>"), BYTES_LITERAL("</s>"),
                              &t, &err);
    if (r != 0) {
        check_reason(r, &err);
        return 0;
    }
    json_t *messages = conversation(data + user_at, len - user_at);
    const struct chat_context context = {.add_generation_prompt = len & 1,
                                         .date = {.tm_year = 126, .tm_mday = 15}};
    struct chat_text text = {0};
    r = chat_template_render(t, messages, &context, &text, &err);
    if (r != 0)
        check_reason(r, &err);
    check_marks(&text);
    chat_text_deinit(&text);
    json_decref(messages);
    chat_template_free(t);
    return 0;
}
