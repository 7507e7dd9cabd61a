/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_GATEWAY_TOOLS_FORMS_H
#define TESTS_UNIT_GATEWAY_TOOLS_FORMS_H

/* Dialects as reported by a pool, each with a different way of writing calls. */

#include <string.h>

#define JSON_CALL(head, more) "{\"calls\": {\"arguments\": \"json\", \"head\": \"" head "\", " more "}}"

static const struct {
    const char *name, *json;
} dialect_forms[] = {
    {"hermes",
     JSON_CALL("<tool_call>\\n{\\\"name\\\": \\\"",
               "\"middle\": \"\\\", \\\"arguments\\\": \", \"tail\": "
               "\"}\\n</tool_call>\", \"between\": \"\\n\", \"name_key\": \"name\", \"arguments_key\": "
               "\"arguments\"")},
    {"mistral", JSON_CALL("{\\\"name\\\": \\\"",
                          "\"open\": \"[TOOL_CALLS][\", \"middle\": \"\\\", \\\"arguments\\\": \", "
                          "\"tail\": \"}\", \"between\": \", \", \"close\": \"]\", \"name_key\": \"name\", "
                          "\"arguments_key\": \"arguments\"")},
    {"command-r",
     JSON_CALL(
         "\\n    {\\\"tool_call_id\\\": \\\"\\u0003\\\", \\\"tool_name\\\": \\\"",
         "\"open\": \"<|START_ACTION|>[\", \"middle\": \"\\\", \\\"parameters\\\": \", \"tail\": \"}\", "
         "\"between\": \",\", \"close\": \"\\n]<|END_ACTION|>\", \"name_key\": \"tool_name\", "
         "\"arguments_key\": \"parameters\"")},
    {"llama3",
     JSON_CALL("{\\\"name\\\": \\\"", "\"middle\": \"\\\", \\\"parameters\\\": \", \"tail\": \"}\", "
                                      "\"name_key\": \"name\", \"arguments_key\": \"parameters\"")},
};

static inline const char *dialect_form(const char *name)
{
    for (size_t i = 0; i < sizeof dialect_forms / sizeof *dialect_forms; i++)
        if (strcmp(dialect_forms[i].name, name) == 0)
            return dialect_forms[i].json;
    return "{}";
}

#endif
