/* SPDX-License-Identifier: MIT */
/* The forms of the families, by what their chat templates write for calls that were made before: a model
 * writes the same. Members of other orders, other white space and calls of several marks are found too; what
 * an answer is held to is the one way that the templates have. */

#include "gateway/tools/tool_form.h"

#include <stddef.h>
#include <string.h>

#define MAY_BREAK "(\"\\n\" \" \"{0,8})?" /* a list has a call a line, or not */

static const struct tool_form forms[] = {
    {
        .name = "hermes",
        .name_key = "name",
        .arguments_key = "arguments",
        .open = "<tool_call>",
        .close = "</tool_call>",
        .before = "\"<tool_call>\\n\"",
        .between = "\"\\n</tool_call>\\n<tool_call>\\n\"",
        .behind = "\"\\n</tool_call>\"",
        .head = "\"{\\\"name\\\": \\\"\"",
        .to_arguments = "\"\\\", \\\"arguments\\\": \"",
    },
    {
        .name = "mistral",
        .name_key = "name",
        .arguments_key = "arguments",
        .open = "[TOOL_CALLS]",
        .list = true,
        .before = "\"[TOOL_CALLS]\" \" \"? \"[\"",
        .between = "\", \"",
        .behind = "\"]\"",
        .head = "\"{\\\"name\\\": \\\"\"",
        .to_arguments = "\"\\\", \\\"arguments\\\": \"",
    },
    {
        .name = "command-r",
        .name_key = "tool_name",
        .arguments_key = "parameters",
        .open = "<|START_ACTION|>",
        .close = "<|END_ACTION|>",
        .list = true,
        .before = "\"<|START_ACTION|>[\" " MAY_BREAK,
        .between = "\",\" (\" \" | \"\\n\" \" \"{0,8})?",
        .behind = MAY_BREAK " \"]<|END_ACTION|>\"",
        .head = "\"{\" (\"\\\"tool_call_id\\\": \\\"\" [0-9]{1,3} \"\\\", \")? \"\\\"tool_name\\\": \\\"\"",
        .to_arguments = "\"\\\", \\\"parameters\\\": \"",
    },
    {
        .name = "llama3",
        .name_key = "name",
        .arguments_key = "parameters",
        .open = "<|python_tag|>",
        .at_start = true,
        .before = "\"<|python_tag|>\"?",
        .behind = "\"\"",
        .head = "\"{\\\"name\\\": \\\"\"",
        .to_arguments = "\"\\\", \\\"parameters\\\": \"",
    },
};

const struct tool_form *tool_form_find(const char *name)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].name, name) == 0)
            return &forms[i];
    return NULL;
}
