/* SPDX-License-Identifier: MIT */
/* What was derived, tried on what it was derived from: byte by byte, as answers come. */

#include <stdlib.h>
#include <string.h>

#include "text/dialect/answer_parser.h"
#include "text/dialect/derive/internal.h"

struct read_back {
    size_t n_calls;
    bool wrong;
    struct buffer arguments;
};

static void on_text(void *arg, struct bytes text)
{
}

static void on_call(void *arg, const char *name)
{
    static const char *const names[] = {PROBE_FIRST, PROBE_SECOND};
    struct read_back *back = arg;
    back->wrong |= back->n_calls >= 2 || strcmp(name, names[back->n_calls]) != 0;
    back->n_calls++;
    back->arguments.len = 0;
}

static void on_arguments(void *arg, struct bytes json)
{
    struct read_back *back = arg;
    back->wrong |= buffer_append(&back->arguments, json.data, json.len) < 0;
}

static void on_end(void *arg)
{
    struct read_back *back = arg;
    json_t *wanted = json_pack("{s:s, s:s}", PROBE_ONE, "qvone", PROBE_TWO, "qvtwo");
    json_t *read = json_loadb((const char *)back->arguments.data, back->arguments.len, 0, NULL);
    back->wrong |= !json_equal(wanted, read);
    json_decref(wanted);
    json_decref(read);
}

bool derive_reads_back(struct derivation *derivation, struct span answer, size_t n_calls)
{
    static const struct dialect_tool tools[] = {{PROBE_FIRST, NULL}, {PROBE_SECOND, NULL}};
    struct answer_parser parser;
    struct read_back back = {0};
    const struct answer_sink sink = {on_text, on_text, on_call, on_arguments, on_end, &back};
    int r = answer_parser_init(&parser, derivation->dialect, tools, 2, true, true, DIALECT_START_TEXT);
    for (size_t i = 0; i < answer.len && r == 0; i++)
        r = answer_parser_push(&parser, (struct bytes){answer.at + i, 1}, &sink);
    if (r == 0)
        r = answer_parser_finish(&parser, &sink);
    if (r < 0)
        derivation->fatal = r;
    answer_parser_deinit(&parser);
    buffer_deinit(&back.arguments);
    return r == 0 && back.n_calls == n_calls && !back.wrong;
}
