/* SPDX-License-Identifier: MIT */
#include "tests/unit/text/dialect/templates.h"

#include <string.h>

#include "tests/unit/run.h"
#include "text/dialect/derive/derive.h"

#define TOOLS "{% if tools %}Tools: {{ tools | tojson }}\n{% endif %}"
#define TURN_OTHERS                                                                                          \
    "{% if m.role != 'assistant' %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% else %}"
#define TURNS   TOOLS "{% for m in messages %}" TURN_OTHERS "<|im_start|>assistant\n"
#define CONTENT "{{ m.content or '' }}"
#define END     "<|im_end|>\n{% endif %}{% endfor %}"
#define OPEN    "{% if add_generation_prompt %}<|im_start|>assistant\n"
#define CALLS   "{% for c in m.tool_calls or [] %}"
#define THOUGHT "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"

const struct own_template own_templates[] = {
    /* A JSON object in a tag; thinks if it wants, and not when it is told not to. */
    {"object", TURNS THOUGHT CONTENT CALLS
     "{{ '\n' if m.content or not loop.first }}<tool_call>\n{\"name\": \"{{ c.function.name }}\", "
     "\"arguments\": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}" END OPEN
     "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif "
     "%}"},
    /* A list of JSON objects with ids; no thoughts. */
    {"list", TURNS CONTENT
     "{% if m.tool_calls %}[TOOL_CALLS][" CALLS "{\"name\": \"{{ c.function.name }}\", \"arguments\": "
     "{{ c.function.arguments | tojson }}, \"id\": \"{{ c.id }}\"}{% if not loop.last %}, {% endif %}"
     "{% endfor %}]{% endif %}" END OPEN "{% endif %}"},
    /* Parameters in tags; the prompt opens a thought. */
    {"parameters", TURNS THOUGHT CONTENT CALLS
     "\n<tool_call>\n<function={{ c.function.name }}>\n{% for k, v in c.function.arguments.items() %}"
     "<parameter={{ k }}>\n{{ v if v is string else (v | tojson if v is mapping or v is iterable else v) }}\n"
     "</parameter>\n{% endfor %}</function>\n</tool_call>{% endfor %}" END OPEN "<think>\n{% endif %}"},
    /* Parameters whose type is told, in a section. */
    {"typed", TURNS CONTENT
     "{% if m.tool_calls %}\n\n<calls>\n" CALLS "<invoke name=\"{{ c.function.name }}\">\n"
     "{% for k, v in c.function.arguments.items() %}<parameter name=\"{{ k }}\" string=\""
     "{{ 'true' if v is string else 'false' }}\">{{ v if v is string else v | tojson }}</parameter>\n"
     "{% endfor %}</invoke>\n{% endfor %}</calls>{% endif %}" END OPEN "{% endif %}"},
    /* Calls as Python writes them. */
    {"python", TURNS CONTENT
     "{% if m.tool_calls %}<|calls|>[" CALLS
     "{{ c.function.name }}({% for k, v in c.function.arguments.items() %}"
     "{{ k }}={% if v is string %}'{{ v }}'{% else %}{{ v | string if v is not mapping else v | tojson }}{% "
     "endif %}"
     "{% if not loop.last %}, {% endif %}{% endfor %}){% if not loop.last %}, {% endif %}{% endfor %}]<|end|>"
     "{% endif %}" END OPEN "{% endif %}"},
    /* The name outside, JSON behind it. */
    {"named", TURNS CONTENT CALLS
     "[CALL]{{ c.function.name }}[ARGS]{{ c.function.arguments | tojson }}{% endfor %}" END OPEN
     "{% endif %}"},
    /* The text between marks, then such calls. */
    {"spoken",
     TURNS "{% if m.content %}<t>{{ m.content }}</t>{% endif %}" CALLS
           "[CALL]{{ c.function.name }}[ARGS]{{ c.function.arguments | tojson }}{% endfor %}" END OPEN
           "{% endif %}"},
    /* Channels: everything has a header; one call. */
    {"channels", TOOLS
     "{% for m in messages %}{% if m.role != 'assistant' %}<|start|>{{ m.role }}<|message|>{{ m.content "
     "}}<|end|>"
     "{% else %}{% if m.thinking %}<|start|>assistant<|channel|>analysis<|message|>{{ m.thinking }}<|end|>"
     "{% endif %}{% if m.tool_calls %}<|start|>assistant to=functions.{{ m.tool_calls[0].function.name }}"
     "<|channel|>commentary json<|message|>{{ m.tool_calls[0].function.arguments | tojson }}<|call|>{% else "
     "%}"
     "<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|return|>{% endif %}{% endif %}{% endfor "
     "%}"
     "{% if add_generation_prompt %}<|start|>assistant{% endif %}"},
    /* A JSON object and nothing around it: one call. */
    {"bare", TURNS "{% if m.tool_calls %}{\"name\": \"{{ m.tool_calls[0].function.name }}\", \"parameters\": "
                   "{{ m.tool_calls[0].function.arguments | tojson }}}{% else %}" CONTENT
                   "{% endif %}" END OPEN "{% endif %}"},
};
const size_t n_own_templates = sizeof own_templates / sizeof *own_templates;

void derive_from(const char *source, struct model_dialect *dialect)
{
    struct chat_template *chat_template;
    struct error err = {0};
    const struct bytes text = bytes_of_string(source);
    int r = chat_template_new(text, BYTES_LITERAL("<s>"), BYTES_LITERAL("</s>"), &chat_template, &err);
    ck_assert_msg(r == 0, "%s", err.text);
    const struct bytes stops[] = {BYTES_LITERAL("<|im_end|>"), BYTES_LITERAL("<|call|>"),
                                  BYTES_LITERAL("<|return|>")};
    dialect_init(dialect);
    ck_assert_int_eq(dialect_derive(chat_template, text, (struct dialect_stops){stops, 3}, dialect), 0);
    chat_template_free(chat_template);
}

void own_dialect(const char *name, struct model_dialect *dialect)
{
    for (size_t i = 0; i < n_own_templates; i++)
        if (strcmp(own_templates[i].name, name) == 0) {
            derive_from(own_templates[i].source, dialect);
            return;
        }
    ck_abort_msg("no template %s", name);
}
