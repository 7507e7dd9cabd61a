/* SPDX-License-Identifier: MIT */
/* See tool_form.h. A template is asked for the words that it writes around calls made earlier: the model was
 * trained to write the same. */

#include "text/template/tool_form.h"

#include <string.h>

static const struct tool_form forms[] = {
    {"mistral", "[TOOL_CALLS]", {"[TOOL_CALLS]"}},
    {"command-r", "<|START_ACTION|>", {"<|START_ACTION|>", "<|END_ACTION|>"}},
    {"hermes", "<tool_call>", {"<tool_call>", "</tool_call>"}},
    {"llama3", "Environment: ipython", {"<|python_tag|>"}},
};

static bool contains(struct bytes source, const char *words)
{
    return source.len > 0 && memmem(source.data, source.len, words, strlen(words)) != NULL;
}

const struct tool_form *tool_form_of(struct bytes source)
{
    if (!contains(source, "tools"))
        return NULL;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (contains(source, forms[i].shows))
            return &forms[i];
    return NULL;
}
