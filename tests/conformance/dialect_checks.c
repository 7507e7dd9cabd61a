/* SPDX-License-Identifier: MIT */
/* See dialect_checks.h. */

#include "tests/conformance/dialect_checks.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/dialect/answer_parser.h"
#include "text/dialect/call_grammar.h"
#include "text/grammar/grammar.h"

#define TOOLS                                                                                                \
    "[{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"description\": \"Weather\", "     \
    "\"parameters\": {\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\", "              \
    "\"description\": \"City\"}, \"days\": {\"type\": \"integer\", \"description\": \"Days\"}}, "            \
    "\"required\": [\"city\"]}}}, "                                                                          \
    "{\"type\": \"function\", \"function\": {\"name\": \"book_seat\", \"description\": \"Seats\", "          \
    "\"parameters\": {\"type\": \"object\", \"properties\": {"                                               \
    "\"kind\": {\"type\": \"string\", \"enum\": [\"window\", \"aisle\"], \"description\": \"Kind\"}, "       \
    "\"seats\": {\"type\": \"integer\", \"description\": \"Number\"}, "                                      \
    "\"quiet\": {\"type\": \"boolean\", \"description\": \"Quiet\"}, "                                       \
    "\"tags\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}, \"description\": \"Tags\"}, "        \
    "\"where\": {\"type\": \"object\", \"properties\": {\"row\": {\"type\": \"integer\"}}, "                 \
    "\"required\": [\"row\"], \"additionalProperties\": false, \"description\": \"Place\"}}, "               \
    "\"required\": [\"kind\", \"seats\"]}}}]"

/* ---- the case ---- */

bool dialect_case_open(struct dialect_case *test, const char *path)
{
    struct error err = {0};
    *test = (struct dialect_case){0};
    dialect_init(&test->dialect);
    FILE *file = fopen(path, "rb");
    int r = file ? buffer_read(&test->source, fileno(file), 1 << 20) : -1;
    if (file)
        fclose(file);
    const struct bytes source = {test->source.data, test->source.len};
    if (r == 0)
        r = chat_template_new(source, BYTES_LITERAL("<BOS>"), BYTES_LITERAL("<EOS>"), &test->chat_template,
                              &err);
    if (r == 0) {
        chat_template_permit_changes(test->chat_template);
        r = dialect_derive(test->chat_template, source, (struct dialect_stops){0}, &test->dialect);
    }
    if (r != 0)
        printf("%s: %s\n", path, err.text);
    return r == 0;
}

void dialect_case_close(struct dialect_case *test)
{
    dialect_deinit(&test->dialect);
    chat_template_free(test->chat_template);
    buffer_deinit(&test->source);
}

bool dialect_case_understood(const struct dialect_case *test)
{
    return test->dialect.calls.known ||
           strcmp(test->dialect.calls.reason, "the template does not support tools") == 0;
}

/* ---- reading answers ---- */

struct heard {
    struct buffer text, thought;
    json_t *calls; /* [{name, arguments}] */
    struct buffer arguments;
    char name[64];
    bool odd;
};

static void hear_text(void *arg, struct bytes text)
{
    struct heard *heard = arg;
    buffer_append(&heard->text, text.data, text.len);
}

static void hear_thought(void *arg, struct bytes text)
{
    struct heard *heard = arg;
    buffer_append(&heard->thought, text.data, text.len);
}

static void hear_call(void *arg, const char *name)
{
    struct heard *heard = arg;
    snprintf(heard->name, sizeof heard->name, "%s", name);
    heard->arguments.len = 0;
}

static void hear_arguments(void *arg, struct bytes json)
{
    struct heard *heard = arg;
    buffer_append(&heard->arguments, json.data, json.len);
}

static void hear_end(void *arg)
{
    struct heard *heard = arg;
    json_t *arguments = json_loadb((const char *)heard->arguments.data, heard->arguments.len, 0, NULL);
    if (!json_is_object(arguments)) {
        printf("  arguments: %.*s\n", (int)heard->arguments.len, (const char *)heard->arguments.data);
        heard->odd = true;
    }
    json_array_append_new(heard->calls,
                          json_pack("{s:s, s:o?}", "name", heard->name, "arguments", arguments));
}

static json_t *all_tools(void)
{
    return json_loads(TOOLS, 0, NULL);
}

/* Reads an answer in pieces of so many bytes. */
static struct heard hear(const struct model_dialect *dialect, const char *answer, size_t len, size_t piece,
                         enum dialect_start start)
{
    struct heard heard = {.calls = json_array()};
    const struct answer_sink sink = {hear_text, hear_thought, hear_call, hear_arguments, hear_end, &heard};
    struct answer_parser parser;
    struct dialect_tool tools[2];
    json_t *json = all_tools();
    for (size_t i = 0; i < 2; i++) {
        const json_t *function = json_object_get(json_array_get(json, i), "function");
        tools[i] = (struct dialect_tool){json_string_value(json_object_get(function, "name")),
                                         json_object_get(function, "parameters")};
    }
    answer_parser_init(&parser, dialect, tools, 2, true, true, start);
    for (size_t at = 0; at < len; at += piece)
        answer_parser_push(&parser, (struct bytes){answer + at, piece < len - at ? piece : len - at}, &sink);
    answer_parser_finish(&parser, &sink);
    answer_parser_deinit(&parser);
    json_decref(json);
    return heard;
}

static void forget(struct heard *heard)
{
    buffer_deinit(&heard->text);
    buffer_deinit(&heard->thought);
    buffer_deinit(&heard->arguments);
    json_decref(heard->calls);
}

/* ---- parse ---- */

static char *render(const struct dialect_case *test, const json_t *messages, bool prompt)
{
    struct chat_text text = {0};
    struct error err = {0};
    json_t *extra = test->dialect.calls.untold ? json_object() : json_pack("{s:o}", "tools", all_tools());
    struct chat_context context = {.add_generation_prompt = prompt, .date = {.tm_year = 126, .tm_mday = 15}};
    chat_template_add_old_names(extra, &context.date);
    context.extra = extra;
    int r = chat_template_render(test->chat_template, messages, &context, &text, &err);
    if (r == 0)
        buffer_append(&text.text, "", 1);
    char *copy = r == 0 ? strdup((const char *)text.text.data) : NULL;
    chat_text_deinit(&text);
    json_decref(extra);
    return copy;
}

/* The arguments of a case; texts for templates that want them so. */
static json_t *call(const struct dialect_case *test, const char *name, const char *id, const char *arguments)
{
    json_t *value =
        test->dialect.calls.text_arguments ? json_string(arguments) : json_loads(arguments, 0, NULL);
    return json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", id, "type", "function", "function", "name", name,
                     "arguments", value);
}

static json_t *conversation(const char *content, json_t *calls)
{
    json_t *turn =
        json_pack("{s:s, s:s?, s:o}", "role", "assistant", "content", content, "tool_calls", calls);
    return json_pack("[{s:s, s:s}, o]", "role", "user", "content", "Xquestion", turn);
}

static const char *behind_question(const char *text)
{
    const char *at = NULL;
    for (const char *next = text; (next = strstr(next, "Xquestion")); next++)
        at = next;
    return at ? at + strlen("Xquestion") : text;
}

/* What the answer in a rendered conversation is: behind what a prompt ends with. */
static const char *answer_in(const struct dialect_case *test, const char *text)
{
    json_t *question = json_pack("[{s:s, s:s}]", "role", "user", "content", "Xquestion");
    char *prompt = render(test, question, true);
    const char *answer = behind_question(text), *other = prompt ? behind_question(prompt) : "";
    while (*answer && *answer == *other) {
        answer++;
        other++;
    }
    while (answer > text && answer[-1] != '>' && answer[-1] != '\n' && answer[-1] != ']' && *other)
        answer--; /* not in the middle of a mark */
    json_decref(question);
    free(prompt);
    return answer;
}

static bool same_calls(const struct heard *heard, const json_t *wanted, const struct dialect_case *test)
{
    bool same = json_array_size(heard->calls) == json_array_size(wanted) && !heard->odd;
    for (size_t i = 0; i < json_array_size(wanted) && same; i++) {
        const json_t *function = json_object_get(json_array_get(wanted, i), "function"),
                     *arguments = json_object_get(function, "arguments"),
                     *got = json_array_get(heard->calls, i);
        json_t *parsed = json_is_string(arguments) ? json_loads(json_string_value(arguments), 0, NULL)
                                                   : json_deep_copy(arguments);
        same = json_equal(json_object_get(function, "name"), json_object_get(got, "name")) &&
               json_equal(parsed, json_object_get(got, "arguments"));
        json_decref(parsed);
    }
    return same;
}

static bool has(const struct buffer *buffer, const char *text)
{
    return buffer->len > 0 && memmem(buffer->data, buffer->len, text, strlen(text));
}

static bool has_call(const char *text)
{
    const char *answer = behind_question(text);
    return strstr(answer, "get_weather") || strstr(answer, "book_seat");
}

static bool check_conversation(const struct dialect_case *test, const char *content, json_t *calls)
{
    static const size_t pieces[] = {1, 3, 1 << 20};
    const char *const contents[] = {content, "", NULL}; /* some have none beside calls */
    json_t *messages = NULL;
    char *text = NULL;
    for (size_t i = 0; i < 3 && !(text && has_call(text)); i++) {
        free(text);
        json_decref(messages);
        messages = conversation(contents[i], json_incref(calls));
        text = render(test, messages, false);
    }
    const char *answer = text ? answer_in(test, text) : "";
    bool good = text != NULL;
    for (size_t i = 0; i < 3 && good; i++) {
        struct heard heard = hear(&test->dialect, answer, strlen(answer), pieces[i], DIALECT_START_TEXT);
        good = same_calls(&heard, calls, test);
        if (good && content[0] && strstr(answer, content))
            good = has(&heard.text, content) || has(&heard.thought, content);
        if (!good) {
            printf("  parse, in pieces of %zu, answer: %s\n  calls: ", pieces[i], answer);
            json_dumpf(heard.calls, stdout, 0);
            printf("\n  text: %.*s\n", (int)heard.text.len, (const char *)heard.text.data);
        }
        forget(&heard);
    }
    if (!text)
        printf("  parse: the template does not render\n");
    free(text);
    json_decref(messages);
    json_decref(calls);
    return good;
}

bool check_parsing(const struct dialect_case *test)
{
    static const char *const arguments[] = {
        "{\"city\": \"Zürich \\\"Altstadt\\\"\", \"days\": 2}",
        "{\"city\": \"two\\nlines, it's <b>bold</b> & \\\\ more\"}",
        "{\"city\": \"2\"}",
        "{\"city\": \"\"}",
    };
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
        if (!check_conversation(test, i == 0 ? "Let me see." : "",
                                json_pack("[o]", call(test, "get_weather", "call00001", arguments[i]))))
            return false;
    if (!check_conversation(
            test, "",
            json_pack("[o]", call(test, "book_seat", "call00001",
                                  "{\"kind\": \"aisle\", \"quiet\": true, \"seats\": 3, \"tags\": [\"a\", "
                                  "\"b c\"], \"where\": {\"row\": 7}}"))))
        return false;
    return !test->dialect.calls.between ||
           check_conversation(
               test, "Both.",
               json_pack("[o, o]", call(test, "get_weather", "call00001", arguments[0]),
                         call(test, "book_seat", "call00002", "{\"kind\": \"window\", \"seats\": 1}")));
}

/* ---- force ---- */

static uint32_t random_below(uint64_t *state, uint32_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % n;
}

/* What an answer is likely to go on with, so that a walk comes to an end. */
struct endings {
    const char *texts[64];
    size_t n;
};

static void add_ending(void *arg, const char *text)
{
    struct endings *endings = arg;
    for (const char *at = text; *at; at++)
        if (*at > 0 && *at <= DIALECT_TYPE)
            return;
    if (text[0] && endings->n < 64)
        endings->texts[endings->n++] = text;
}

/* A walk through the grammar. True: it ended, with the answer. */
static bool walk(struct grammar *grammar, const struct endings *endings, uint64_t *state,
                 struct buffer *answer)
{
    struct grammar_answer *place = NULL;
    struct error err = {0};
    answer->len = 0;
    if (grammar_answer_new(grammar, &place, &err) != 0) {
        printf("  force: %s\n", err.text);
        return false;
    }
    bool ended = false;
    for (int steps = 0; steps < 4000 && !ended; steps++) {
        const bool tired = answer->len > 600;
        if (grammar_answer_may_end(place) && (tired || random_below(state, 4) == 0)) {
            ended = true;
            break;
        }
        const char *ending = endings->texts[random_below(state, (uint32_t)endings->n)];
        const struct bytes whole = bytes_of_string(ending);
        if ((tired || random_below(state, 3) == 0) && grammar_answer_try(place, whole, NULL) == 0) {
            grammar_answer_take(place, whole, NULL);
            buffer_append(answer, whole.data, whole.len);
            continue;
        }
        for (int tries = 0; tries < 2000; tries++) { /* any byte, of those that may come */
            const char byte = (char)random_below(state, tries < 200 ? 256 : 128);
            const struct bytes one = {&byte, 1};
            if (grammar_answer_take(place, one, NULL) == 0) { /* why not, nobody asks */
                buffer_append(answer, &byte, 1);
                break;
            }
        }
    }
    grammar_answer_free(place);
    return ended;
}

static bool is_kind(const json_t *value, const char *type)
{
    return strcmp(type, "string") == 0    ? json_is_string(value)
           : strcmp(type, "integer") == 0 ? json_is_integer(value)
           : strcmp(type, "boolean") == 0 ? json_is_boolean(value)
           : strcmp(type, "array") == 0   ? json_is_array(value)
                                          : json_is_object(value);
}

/* Whether arguments fit the schema, as far as the tools here go. */
static bool fits(const json_t *schema, const json_t *value)
{
    const json_t *required = json_object_get(schema, "required"), *choices = json_object_get(schema, "enum");
    const char *type = json_string_value(json_object_get(schema, "type")), *key;
    json_t *member;
    bool good = is_kind(value, type), chosen = !choices;
    for (size_t i = 0; i < json_array_size(choices); i++)
        chosen |= json_equal(json_array_get(choices, i), value);
    for (size_t i = 0; i < json_array_size(required); i++)
        good &= json_object_get(value, json_string_value(json_array_get(required, i))) != NULL;
    for (size_t i = 0; i < json_array_size(value) && good; i++)
        good = fits(json_object_get(schema, "items"), json_array_get(value, i));
    if (json_is_object(value))
        json_object_foreach((json_t *)value, key, member)
        {
            const json_t *property = json_object_get(json_object_get(schema, "properties"), key);
            good &= property && fits(property, member);
        }
    return good && chosen;
}

static bool call_fits(const json_t *tools, const json_t *call)
{
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *function = json_object_get(json_array_get(tools, i), "function");
        if (json_equal(json_object_get(function, "name"), json_object_get(call, "name")))
            return fits(json_object_get(function, "parameters"), json_object_get(call, "arguments"));
    }
    return false;
}

static struct grammar *forced_grammar(const struct dialect_case *test, const json_t *tools)
{
    struct grammar_tool offered[2];
    struct buffer gbnf = {0};
    struct error err = {0};
    struct grammar *grammar = NULL;
    for (size_t i = 0; i < 2; i++) {
        const json_t *function = json_object_get(json_array_get(tools, i), "function");
        offered[i] = (struct grammar_tool){.name = json_string_value(json_object_get(function, "name")),
                                           .schema = json_object_get(function, "parameters"),
                                           .held = true};
    }
    const struct call_grammar wanted = {
        .dialect = &test->dialect, .tools = offered, .n = 2, .forced = true, .thoughts = true};
    int r = call_grammar_write(&wanted, &gbnf, &err);
    if (r == 0)
        r = grammar_make(GRAMMAR_GBNF, (struct bytes){gbnf.data, gbnf.len}, &grammar, &err);
    if (r != 0)
        printf("  force: %s\n%.*s\n", err.text, (int)gbnf.len, (const char *)gbnf.data);
    buffer_deinit(&gbnf);
    return grammar;
}

bool check_forced_calls(const struct dialect_case *test)
{
    enum { WALKS = 12, LEAST_ENDED = 4 };
    json_t *tools = all_tools();
    struct grammar *grammar = forced_grammar(test, tools);
    struct endings endings = {{"\"", "}", "]", "1", "true", "'", ", ", "{\"row\": 1}"}, 8};
    struct buffer answer = {0};
    uint64_t state = 1;
    size_t ended = 0;
    bool good = grammar != NULL;
    dialect_each_text(&test->dialect, add_ending, &endings);
    for (int i = 0; i < WALKS && good; i++) {
        if (!walk(grammar, &endings, &state, &answer))
            continue;
        ended++;
        struct heard heard = hear(&test->dialect, (const char *)answer.data, answer.len,
                                  1 + random_below(&state, 9), DIALECT_START_TEXT);
        good = json_array_size(heard.calls) > 0 && !heard.odd;
        for (size_t j = 0; j < json_array_size(heard.calls) && good; j++)
            good = call_fits(tools, json_array_get(heard.calls, j));
        if (!good) {
            printf("  force: %.*s\n  calls: ", (int)answer.len, (const char *)answer.data);
            json_dumpf(heard.calls, stdout, 0);
            printf("\n");
        }
        forget(&heard);
    }
    if (good && ended < LEAST_ENDED)
        printf("  force: only %zu of %d walks ended: %.*s\n", ended, WALKS, (int)answer.len,
               (const char *)answer.data);
    buffer_deinit(&answer);
    grammar_free(grammar);
    json_decref(tools);
    return good && ended >= LEAST_ENDED;
}

/* ---- text ---- */

static bool stays(const struct model_dialect *dialect, const char *text)
{
    static const size_t pieces[] = {1, 5, 1 << 20};
    bool good = true;
    for (size_t i = 0; i < 3 && good; i++) {
        struct heard heard = hear(dialect, text, strlen(text), pieces[i], DIALECT_START_TEXT);
        good = json_array_size(heard.calls) == 0 &&
               bytes_equal((struct bytes){heard.text.data, heard.text.len}, bytes_of_string(text));
        if (!good)
            printf("  text, in pieces of %zu: %s\n  became: %.*s\n", pieces[i], text, (int)heard.text.len,
                   (const char *)heard.text.data);
        forget(&heard);
    }
    return good;
}

bool check_text(const struct dialect_case *test)
{
    const struct dialect_calls *calls = &test->dialect.calls;
    char text[512], mark[128] = "";
    size_t n = 0;
    for (const char *at = calls->open[0] ? calls->open : calls->head; *at > DIALECT_TYPE || *at < 0; at++)
        if (n < sizeof mark - 1)
            mark[n++] = *at;
    static const char *const plain[] = {
        "Hello {\"a\": 1} [x] <b>bold</b> it's \"so\".",
        "{\"name\": \"nothing\", \"arguments\": {}, \"parameters\": {}}",
        "get_weather is a tool; a list: [1, 2], and <",
        "<<<[[[{{{ nothing of this is a call }}}]]]>>>",
    };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!stays(&test->dialect, plain[i]))
            return false;
    for (size_t cut = 1; cut <= n; cut++) { /* a mark that ends too early, or with which nothing begins */
        while (cut < n && ((uint8_t)mark[cut] & 0xc0) == 0x80)
            cut++;
        snprintf(text, sizeof text, "Say %.*s: that is all", (int)cut, mark);
        if (!stays(&test->dialect, text))
            return false;
    }
    return true;
}

/* ---- a budget's end of a thought ---- */

bool check_thought_end(const struct dialect_case *test)
{
    static const size_t pieces[] = {1, 5, 1 << 20};
    const struct dialect_thoughts *thoughts = &test->dialect.thoughts;
    char text[1024], begun[128];
    bool good = true;
    if (!thoughts->known)
        return true;
    /* Also where the model has begun to write the mark itself. */
    for (size_t cut = 0; cut < strlen(thoughts->close) && cut < sizeof begun && good; cut++) {
        if (((uint8_t)thoughts->close[cut] & 0xc0) == 0x80)
            continue;
        snprintf(begun, sizeof begun, "I muse %.*s", (int)cut, thoughts->close);
        snprintf(text, sizeof text, "%s%sSo.", begun, thoughts->end);
        while (begun[strlen(begun) - 1] == ' ')
            begun[strlen(begun) - 1] = 0;
        for (size_t i = 0; i < 3 && good; i++) {
            struct heard heard = hear(&test->dialect, text, strlen(text), pieces[i], DIALECT_START_THOUGHT);
            good = bytes_equal((struct bytes){heard.text.data, heard.text.len}, BYTES_LITERAL("So.")) &&
                   bytes_equal((struct bytes){heard.thought.data, heard.thought.len}, bytes_of_string(begun));
            if (!good)
                printf("  an ended thought: %s\n  became: %.*s | %.*s\n", text, (int)heard.thought.len,
                       (const char *)heard.thought.data, (int)heard.text.len, (const char *)heard.text.data);
            forget(&heard);
        }
    }
    return good;
}
