/* SPDX-License-Identifier: MIT */
/* Any bytes as an answer in each form of calls: what is told does not depend on how the answer was cut, calls
 * begin and end in turn, and an answer without calls is told byte by byte. The first byte picks the form, the
 * second the cut. For libFuzzer the sources are gateway and common. */

#include "tests/fuzz/driver.h"

#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "gateway/tools/tool_parser.h"

#define REQUIRE(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            abort();                                                                                         \
    } while (0)

/* What was told, one after the other; \1 and \2 stand around calls. */
struct told {
    struct buffer log;
    bool inside, any, whole; /* whole: the answer comes at once, and is UTF-8 */
};

static void put(struct told *told, const void *data, size_t len)
{
    REQUIRE(buffer_append(&told->log, data, len) == 0);
}

static void on_text(void *arg, struct bytes text)
{
    struct told *told = arg;
    REQUIRE(!told->inside && text.len > 0);
    REQUIRE(!told->whole || utf8_valid(text) == text.len); /* a piece ends where a character does */
    put(told, text.data, text.len);
}

static void on_call(void *arg, const char *name)
{
    struct told *told = arg;
    REQUIRE(!told->inside && name[0]);
    told->inside = told->any = true;
    put(told, "\1", 1);
    put(told, name, strlen(name));
}

static void on_arguments(void *arg, struct bytes json)
{
    struct told *told = arg;
    REQUIRE(told->inside);
    put(told, json.data, json.len);
}

static void on_end(void *arg)
{
    struct told *told = arg;
    REQUIRE(told->inside);
    told->inside = false;
    put(told, "\2", 1);
}

/* Parses it: up to the cut at once, then in pieces of `size`. */
static struct told parse(const struct tool_form *form, struct bytes answer, size_t cut, size_t size)
{
    static const char *const names[] = {"rain", "time"};
    struct told told = {.whole = cut == answer.len && utf8_valid(answer) == answer.len};
    const struct tool_sink sink = {on_text, on_call, on_arguments, on_end, &told};
    struct tool_parser parser;
    tool_parser_init(&parser, form, names, 2);
    REQUIRE(tool_parser_push(&parser, (struct bytes){answer.data, cut}, &sink) == 0);
    for (size_t at = cut; at < answer.len; at += size) {
        size_t n = answer.len - at < size ? answer.len - at : size;
        REQUIRE(tool_parser_push(&parser, (struct bytes){(const uint8_t *)answer.data + at, n}, &sink) == 0);
    }
    REQUIRE(tool_parser_finish(&parser, &sink) == 0);
    REQUIRE(!told.inside);
    tool_parser_deinit(&parser);
    return told;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const char *const forms[] = {"hermes", "mistral", "command-r", "llama3"};
    if (len < 2 || len > 20000)
        return 0;
    const struct tool_form *form = tool_form_find(forms[data[0] % 4]);
    struct bytes answer = {data + 2, len - 2};
    struct told whole = parse(form, answer, answer.len, 1), bytes = parse(form, answer, 0, 1),
                parts = parse(form, answer, data[1] < answer.len ? data[1] : answer.len, 7);
    REQUIRE(bytes_equal((struct bytes){whole.log.data, whole.log.len},
                        (struct bytes){bytes.log.data, bytes.log.len}));
    REQUIRE(bytes_equal((struct bytes){whole.log.data, whole.log.len},
                        (struct bytes){parts.log.data, parts.log.len}));
    if (!whole.any)
        REQUIRE(bytes_equal((struct bytes){whole.log.data, whole.log.len}, answer));
    buffer_deinit(&whole.log);
    buffer_deinit(&bytes.log);
    buffer_deinit(&parts.log);
    return 0;
}
