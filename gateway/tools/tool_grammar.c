/* SPDX-License-Identifier: MIT */
/* See tool_grammar.h.
 *
 *     root ::= calls                        they are forced
 *     root ::= text calls?                  they are not
 *     root ::= calls | %json {…}            beside JSON that is asked for
 *     calls ::= "<tool_call>\n" call ("\n</tool_call>\n<tool_call>\n" call)* "\n</tool_call>"
 *     call ::= "{\"name\": \"" ("rain" "\", \"arguments\": " arguments-0-rain | …) "}"
 *     arguments-0-rain ::= %json {…}
 *
 * `text` is any that does not have the mark of calls in it, so where a model writes the mark, a call follows.
 * No mark has its first character twice: whatever follows a part of it, only that character can begin
 * another. A form without marks has a call where the answer begins with a brace; there `text` begins with
 * anything else. */

#include "gateway/tools/tool_grammar.h"

#include <string.h>

#include "gateway/json/json_out.h"

/* A set of all characters but these. */
static void write_others(struct json_out *out, const char * not, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    json_out_text(out, "[^");
    for (size_t i = 0; i < n; i++) {
        uint8_t byte = (uint8_t) not [i];
        const char escape[] = {'\\', 'x', digits[byte >> 4], digits[byte & 15], 0};
        json_out_text(out, escape);
    }
    json_out_text(out, "]");
}

/* One character, as a literal. */
static void write_character(struct json_out *out, char character)
{
    const char text[] = {'"', character, '"', 0}; /* no mark has a quote or a backslash */
    json_out_text(out, text);
}

/* What may stand behind the first character of the mark, so that the mark does not come about. `first` is the
 * mark's own, which may begin another one; 0: it begins none, because marks count only at the beginning. */
static void write_behind_first(struct json_out *out, const char *mark, char first)
{
    size_t len = strlen(mark);
    for (size_t i = 1; i < len; i++) {
        const char not [] = {mark[i], first};
        json_out_text(out, "(");
        write_others(out, not, first ? 2 : 1);
        json_out_text(out, first ? " free*" : " .*");
        json_out_text(out, i + 1 < len ? " | " : "");
        if (i + 1 < len) {
            write_character(out, mark[i]);
            json_out_text(out, " ");
        }
    }
    for (size_t i = 1; i < len; i++)
        json_out_text(out, ")?");
}

static void write_text(struct json_out *out, const struct tool_form *form)
{
    const char *mark = form->open;
    if (form->at_start) {
        const char begins[] = {' ', '\t', '\r', '\n', '{', mark[0]};
        json_out_text(out, "text ::= [ \\t\\r\\n]* (");
        write_others(out, begins, sizeof begins);
        json_out_text(out, " .* | ");
        write_character(out, mark[0]);
        json_out_text(out, " ");
        write_behind_first(out, mark, 0);
        json_out_text(out, ")?\n");
        return;
    }
    json_out_text(out, "free ::= ");
    write_others(out, mark, 1);
    json_out_text(out, "\ntext ::= free* (");
    write_character(out, mark[0]);
    json_out_text(out, " ");
    write_behind_first(out, mark, mark[0]);
    json_out_text(out, ")*\n");
}

/* The rule of a tool's arguments: with its number, as names are unlike and rules' names are shorter. */
static void write_rule_name(struct json_out *out, const struct parameters *parameters, size_t i)
{
    char name[41];
    size_t n = 0;
    for (const char *from = parameters->tools[i].name; *from && n < sizeof name - 1; from++)
        name[n++] = *from == '.' ? '-' : *from;
    name[n] = 0;
    json_out_text(out, "arguments-");
    json_out_number(out, (int64_t)i);
    json_out_text(out, "-");
    json_out_text(out, name);
}

/* `calls`, and what it is made of. */
static void write_calls(struct json_out *out, const struct parameters *parameters,
                        const struct tool_form *form)
{
    bool forced = parameters->tool_use == TOOLS_REQUIRED, first = true;
    json_out_text(out, "calls ::= ");
    json_out_text(out, form->before);
    json_out_text(out, " call ");
    if (form->between && !parameters->one_call) {
        json_out_text(out, "(");
        json_out_text(out, form->between);
        json_out_text(out, " call)* ");
    }
    json_out_text(out, form->behind);
    json_out_text(out, "\ncall ::= ");
    json_out_text(out, form->head);
    json_out_text(out, " (");
    for (size_t i = 0; i < parameters->n_tools; i++) {
        if (parameters->tools[i].barred)
            continue;
        json_out_text(out, first ? "\"" : " | \"");
        json_out_text(out, parameters->tools[i].name); /* letters, digits, _, - and . */
        json_out_text(out, "\" ");
        json_out_text(out, form->to_arguments);
        json_out_text(out, " ");
        write_rule_name(out, parameters, i);
        first = false;
    }
    json_out_text(out, ") \"}\"\n");
    for (size_t i = 0; i < parameters->n_tools; i++) {
        if (parameters->tools[i].barred)
            continue;
        write_rule_name(out, parameters, i);
        json_out_text(out, " ::= %json ");
        json_out_text(out, forced || parameters->tools[i].strict ? parameters->tools[i].schema
                                                                 : "{\"type\":\"object\"}");
        json_out_text(out, "\n");
    }
}

/* ---- whether there is to be one ---- */

static bool is_needed(const struct parameters *parameters)
{
    bool needed = parameters->tool_use == TOOLS_REQUIRED || parameters->one_call;
    for (size_t i = 0; i < parameters->n_tools; i++)
        needed |= parameters->tools[i].strict || parameters->tools[i].barred;
    return needed;
}

/* A tool whose arguments are held to a schema has one that is of objects. */
static int check_schemas(const struct parameters *parameters, struct refusal *refusal)
{
    for (size_t i = 0; i < parameters->n_tools; i++) {
        const struct offered_tool *tool = &parameters->tools[i];
        bool held = !tool->barred && (tool->strict || parameters->tool_use == TOOLS_REQUIRED);
        if (held && !tool->schema)
            return refuse_value(refusal, "tools",
                                "tools[%zu]: the schema of \"%.64s\" does not describe an object", i,
                                tool->name);
    }
    return 0;
}

/* JSON that is asked for beside the tools, as a schema; NULL: none is. */
static int find_content(const struct parameters *parameters, const char **ret_schema, struct refusal *refusal)
{
    const struct quern_request *request = &parameters->request;
    *ret_schema = NULL;
    if (!request->grammar || parameters->tool_use == TOOLS_REQUIRED)
        return 0;
    if (request->grammar_kind == QUERN_JSON) {
        *ret_schema = "{\"type\":\"object\"}";
        return 0;
    }
    if (!parameters->schema_is_object)
        return refuse_value(refusal, "tools", "tools: a schema given with tools must describe a JSON object");
    *ret_schema = request->grammar;
    return 0;
}

int tool_grammar_set(struct parameters *parameters, const struct tool_form *form, struct refusal *refusal)
{
    struct quern_request *request = &parameters->request;
    const char *content;
    bool json =
        request->grammar && (request->grammar_kind == QUERN_JSON || request->grammar_kind == QUERN_SCHEMA);
    if (!json && !is_needed(parameters))
        return 0;
    if (request->grammar && !json)
        return refuse_value(refusal, "tools", "tools: not supported together with a grammar");
    if (check_schemas(parameters, refusal) != 0 || find_content(parameters, &content, refusal) != 0)
        return REFUSED;
    struct json_out out = {0};
    if (content) {
        json_out_text(&out, "root ::= calls | content\ncontent ::= %json ");
        json_out_text(&out, content);
        json_out_text(&out, "\n");
    } else if (parameters->tool_use == TOOLS_REQUIRED) {
        json_out_text(&out, "root ::= calls\n");
    } else {
        json_out_text(&out, form->at_start ? "root ::= text | calls\n" : "root ::= text calls?\n");
        write_text(&out, form);
    }
    write_calls(&out, parameters, form);
    char *text = out.failed ? NULL : parameters_memory(parameters, out.buffer.len + 1, 1);
    if (text)
        memcpy(text, out.buffer.data, out.buffer.len);
    json_out_deinit(&out);
    if (!text)
        return parameters_out_of_memory(refusal);
    request->grammar = text;
    request->grammar_kind = QUERN_GBNF;
    return 0;
}
