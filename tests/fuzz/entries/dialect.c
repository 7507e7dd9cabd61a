/* SPDX-License-Identifier: MIT */
/* Any bytes as a dialect's texts and an answer in it: what is told does not depend on how the answer was cut,
 * calls begin and end in turn, and an answer without calls and thoughts is told byte by byte. The first byte
 * picks the dialect, the second the cut. Where the first byte is above 127 the dialect is what comes up to a
 * NUL, as a worker may send it: what is read can be parsed and written by. For libFuzzer the source is
 * text/dialect. */

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/driver.h"
#include "text/dialect/answer_parser.h"
#include "text/dialect/call_grammar.h"

#define REQUIRE(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            abort();                                                                                         \
    } while (0)

static const char *const dialects[] = {
    "{\"calls\": {\"arguments\": \"json\", \"head\": \"<tool_call>\\n{\\\"name\\\": \\\"\", \"middle\": "
    "\"\\\", "
    "\\\"arguments\\\": \", \"tail\": \"}\\n</tool_call>\", \"between\": \"\\n\", \"name_key\": \"name\", "
    "\"arguments_key\": \"arguments\"}, \"thoughts\": {\"open\": \"<think>\", \"close\": \"</think>\"}}",
    "{\"calls\": {\"arguments\": \"members\", \"head\": \"<tool_call><function=\", \"middle\": \">\", "
    "\"tail\": "
    "\"</function></tool_call>\", \"between\": \"\", \"before_key\": \"<parameter=\", \"to_text\": \">\\n\", "
    "\"behind_text\": \"\\n</parameter>\", \"to_other\": \">\\n\", \"behind_other\": \"\\n</parameter>\"}}",
    "{\"calls\": {\"arguments\": \"members\", \"open\": \"<|c|>[\", \"middle\": \"(\", \"tail\": \")\", "
    "\"close\": "
    "\"]<|e|>\", \"between\": \", \", \"to_text\": \"='\", \"behind_text\": \"'\", \"to_other\": \"=\", "
    "\"separator\": "
    "\", \", \"quoted\": true}}",
    "{\"calls\": {\"arguments\": \"json\", \"head\": \" to=functions.\", \"middle\": "
    "\"<|channel|>json<|message|>\"}, "
    "\"thoughts\": {\"open\": \"<|channel|>analysis<|message|>\", \"close\": \"<|end|><|start|>assistant\"}, "
    "\"content\": {\"open\": \"<|channel|>final<|message|>\"}}",
    "{\"calls\": {\"arguments\": \"json\", \"middle\": \"\\n\", \"between\": \">>>\"}, \"content\": "
    "{\"open\": \"all\"}}",
};

/* What was told, one after the other; \1 … \4 stand around calls and thoughts. */
struct told {
    struct buffer log;
    bool inside, any;
    char part;
};

static void put(struct told *told, char part, const void *data, size_t len)
{
    if (part != told->part)
        REQUIRE(buffer_append(&told->log, &part, 1) == 0);
    told->part = part;
    told->any |= part != 'x';
    REQUIRE(buffer_append(&told->log, data, len) == 0);
}

static void on_text(void *arg, struct bytes text)
{
    struct told *told = arg;
    REQUIRE(!told->inside && text.len > 0);
    put(told, 'x', text.data, text.len);
}

static void on_thought(void *arg, struct bytes text)
{
    struct told *told = arg;
    REQUIRE(!told->inside && text.len > 0);
    put(told, 't', text.data, text.len);
}

static void on_call(void *arg, const char *name)
{
    struct told *told = arg;
    REQUIRE(!told->inside && name[0]);
    told->inside = true;
    put(told, 'c', name, strlen(name) + 1);
}

static void on_arguments(void *arg, struct bytes json)
{
    struct told *told = arg;
    REQUIRE(told->inside);
    put(told, 'a', json.data, json.len);
}

static void on_end(void *arg)
{
    struct told *told = arg;
    REQUIRE(told->inside);
    told->inside = false;
    put(told, 'e', "", 0);
}

static struct told parse(const struct model_dialect *dialect, struct bytes answer, size_t cut, size_t size)
{
    static const struct dialect_tool tools[] = {{"rain", NULL}, {"time", NULL}};
    struct told told = {.part = 'x'};
    const struct answer_sink sink = {on_text, on_thought, on_call, on_arguments, on_end, &told};
    struct answer_parser parser;
    REQUIRE(answer_parser_init(&parser, dialect, tools, 2, true, true, DIALECT_START_TEXT) == 0);
    REQUIRE(answer_parser_push(&parser, (struct bytes){answer.data, cut}, &sink) == 0);
    for (size_t at = cut; at < answer.len; at += size) {
        size_t n = answer.len - at < size ? answer.len - at : size;
        REQUIRE(answer_parser_push(&parser, (struct bytes){(const uint8_t *)answer.data + at, n}, &sink) ==
                0);
    }
    REQUIRE(answer_parser_finish(&parser, &sink) == 0);
    REQUIRE(!told.inside);
    answer_parser_deinit(&parser);
    return told;
}

static bool has(struct bytes answer, const char *mark)
{
    return mark[0] && answer.len > 0 && memmem(answer.data, answer.len, mark, strlen(mark));
}

static void write_grammar(const struct model_dialect *dialect)
{
    json_t *schema = json_pack("{s:s,s:{s:{s:s},s:{s:s}}}", "type", "object", "properties", "town", "type",
                               "string", "days", "type", "integer");
    const struct grammar_tool tools[] = {{.name = "rain", .schema = schema, .held = true}};
    const struct call_grammar grammar = {.dialect = dialect, .tools = tools, .n = 1, .thoughts = true};
    struct buffer gbnf = {0};
    struct error err = {0};
    REQUIRE(schema);
    int r = call_grammar_write(&grammar, &gbnf, &err);
    REQUIRE(r == 0 || err.text[0]);
    buffer_deinit(&gbnf);
    json_decref(schema);
}

/* A dialect of any bytes, and an answer. */
static void try_dialect(struct bytes input)
{
    struct model_dialect dialect;
    const uint8_t *data = input.data, *end = memchr(data, 6, input.len);
    const size_t len = end ? (size_t)(end - data) : input.len;
    const struct bytes answer = {data + len, input.len - len}; /* with that byte */
    struct error err = {0};
    dialect_init(&dialect);
    if (dialect_read((struct bytes){data, len}, &dialect, &err) == 0) {
        json_t *written = dialect_write(&dialect);
        REQUIRE(written);
        json_decref(written);
        write_grammar(&dialect);
        struct told told = parse(&dialect, answer, 0, 1);
        buffer_deinit(&told.log);
    } else {
        REQUIRE(err.text[0]);
    }
    dialect_deinit(&dialect);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct model_dialect dialect;
    if (len < 2 || len > 20000)
        return 0;
    if (data[0] > 127) {
        try_dialect((struct bytes){data + 2, len - 2});
        return 0;
    }
    dialect_init(&dialect);
    const char *json = dialects[data[0] % (sizeof dialects / sizeof *dialects)];
    REQUIRE(dialect_read(bytes_of_string(json), &dialect, NULL) == 0);
    const struct bytes answer = {data + 2, len - 2};
    struct told whole = parse(&dialect, answer, answer.len, 1), bytes = parse(&dialect, answer, 0, 1),
                parts = parse(&dialect, answer, data[1] < answer.len ? data[1] : answer.len, 7);
    const struct bytes log = {whole.log.data, whole.log.len};
    REQUIRE(bytes_equal(log, (struct bytes){bytes.log.data, bytes.log.len}));
    REQUIRE(bytes_equal(log, (struct bytes){parts.log.data, parts.log.len}));
    const bool marked =
        has(answer, dialect.thoughts.open) || has(answer, dialect.content_open) ||
        has(answer, "<|message|>"); /* an empty thought, and marks around text, are not told */
    if (!whole.any && !marked)
        REQUIRE(bytes_equal(log, answer));
    buffer_deinit(&whole.log);
    buffer_deinit(&bytes.log);
    buffer_deinit(&parts.log);
    dialect_deinit(&dialect);
    return 0;
}
