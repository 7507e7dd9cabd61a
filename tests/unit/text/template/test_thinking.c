/* SPDX-License-Identifier: MIT */
/* Templates that show that their model thinks, and those that do not. */

#include "text/template/thinking.h"
#include "tests/unit/run.h"

#include <string.h>

#define TURNS "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
#define OPEN  "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"

static const struct {
    const char *source;
    bool thinks;
} templates[] = {
    {TURNS OPEN, false},
    /* It thinks unless it is told not to. */
    {TURNS OPEN
     "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>{% endif %}",
     true},
    {"Reasoning: {{ reasoning_effort or 'medium' }}\n" TURNS OPEN, true},
    {"{% if thinking_budget is defined %}{{ thinking_budget }} tokens{% endif %}" TURNS OPEN, true},
    /* It thinks only if it is told to: none is what happens anyway. */
    {TURNS OPEN "{% if thinking %}<think>{% else %}</think>{% endif %}", false},
    {TURNS OPEN "<think>\n{% if not enable_thinking %}</think>{% endif %}", false},
    /* It always does. */
    {TURNS OPEN "<think>\n", true},
    {TURNS OPEN "<|START_THINKING|>", true},
    /* It only takes thoughts out of what was said before. */
    {"{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}" OPEN, false},
    /* It fails on a short question, or says no to it. */
    {"{{ messages[5].content }}{{ raise_exception('no') }}", false},
    /* It fails when it is told not to think. */
    {TURNS OPEN "{% if thinking is defined %}{{ raise_exception('no') }}{% endif %}", true},
    {"", false},
};

START_TEST(a_template_shows_whether_its_model_thinks)
{
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        struct chat_template *chat_template;
        struct error err = {0};
        ck_assert_msg(chat_template_new(bytes_of_string(templates[i].source), BYTES_LITERAL("<s>"),
                                        BYTES_LITERAL("</s>"), &chat_template, &err) == 0,
                      "%s", err.text);
        ck_assert_msg(thinking_of(chat_template) == templates[i].thinks, "%s", templates[i].source);
        chat_template_free(chat_template);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_template_shows_whether_its_model_thinks);
}

int main(void)
{
    return run_tests("template/thinking", add);
}
