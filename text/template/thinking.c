/* SPDX-License-Identifier: MIT */
/* See thinking.h. The template is rendered as for a request, and again with the variables that tell templates
 * not to think; the two texts are compared. */

#include "text/template/thinking.h"

#include <string.h>

/* How prompts end if the model always thinks. */
static const char *const openings[] = {"<think>", "<|START_THINKING|>", "<seed:think>", "[THINK]",
                                       "<thought>"};

/* 0, or as chat_template_render. The date is always the same. */
static int render(const struct chat_template *chat_template, const json_t *extra, struct chat_text *ret_text)
{
    const struct chat_context context = {
        .add_generation_prompt = true, .date = {.tm_year = 126, .tm_mday = 1}, .extra = extra};
    json_t *messages = json_pack("[{s:s, s:s}]", "role", "user", "content", "Hi");
    int r = messages ? chat_template_render(chat_template, messages, &context, ret_text, NULL) : -1;
    json_decref(messages);
    return r;
}

static bool ends_with_thought(const struct buffer *text)
{
    size_t len = text->len;
    while (len > 0 && strchr(" \n", text->data[len - 1]))
        len--;
    for (size_t i = 0; i < sizeof openings / sizeof *openings; i++) {
        const size_t n = strlen(openings[i]);
        if (len >= n && memcmp(text->data + len - n, openings[i], n) == 0)
            return true;
    }
    return false;
}

bool thinking_of(const struct chat_template *chat_template)
{
    struct chat_text usual = {0}, without = {0};
    json_t *none = json_pack("{s:b, s:b, s:b, s:i, s:s}", "enable_thinking", 0, "thinking", 0, "reasoning", 0,
                             "thinking_budget", 0, "reasoning_effort", "none");
    bool thinks = none && render(chat_template, NULL, &usual) == 0;
    if (thinks && !ends_with_thought(&usual.text))
        thinks = render(chat_template, none, &without) != 0 ||
                 !bytes_equal((struct bytes){usual.text.data, usual.text.len},
                              (struct bytes){without.text.data, without.text.len});
    chat_text_deinit(&usual);
    chat_text_deinit(&without);
    json_decref(none);
    return thinks;
}
