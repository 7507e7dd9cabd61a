/* SPDX-License-Identifier: MIT */
/* A line for each record: steps in columns, marks of requests in words. */

#include "client/command/trace_view.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/amount.h"

#define LINE_BYTES 512 /* names have 128 bytes at most */
#define CELL_BYTES 24
#define TEXT_BYTES 64

/* What the number of a mark counts. */
static const struct {
    const char *what, *noun;
} nouns[] = {{"tokenized", "token"},   {"prefix", "token"},      {"prefill_begin", "token"},
             {"prefill_end", "token"}, {"first_token", "token"}, {"slot_lost", "token"},
             {"given_back", "token"},  {"end", "token"}};

int trace_view_heading(struct buffer *out)
{
    char line[LINE_BYTES];
    int n = snprintf(line, sizeof line, "%-10s %12s  %-7s %8s %5s %5s %4s %9s %9s %9s %9s %9s\n", "WORKER",
                     "SECONDS", "STEP", "NUMBER", "DEC", "PREF", "PAD", "EMBED ms", "LAYERS ms", "SAMPLE ms",
                     "TOTAL ms", "TOK/S");
    return buffer_append(out, line, (size_t)n);
}

static const char *kind_of(const struct quern_trace_record *record)
{
    if (record->prefill_rows == 0)
        return "decode";
    return record->decode_rows == 0 ? "prefill" : "mixed";
}

static const char *milliseconds(uint32_t us, char cell[CELL_BYTES])
{
    if (us == 0)
        return "-";
    snprintf(cell, CELL_BYTES, "%.3f", (double)us / 1e3);
    return cell;
}

static double tokens_a_second(const struct quern_trace_record *record)
{
    return record->total_us > 0 ? (double)record->ids * 1e6 / (double)record->total_us : 0;
}

static int append_step(struct buffer *out, const char *worker, const struct quern_trace_record *record)
{
    char line[LINE_BYTES], embed[CELL_BYTES], layers[CELL_BYTES], sample[CELL_BYTES], total[CELL_BYTES];
    int n =
        snprintf(line, sizeof line, "%-10.64s %12.6f  %-7s %8" PRIu64 " %5u %5u %4u %9s %9s %9s %9s %9.1f\n",
                 worker, (double)record->at_us / 1e6, kind_of(record), record->n, record->decode_rows,
                 record->prefill_rows, record->padding_rows, milliseconds(record->embed_us, embed),
                 milliseconds(record->layers_us, layers), milliseconds(record->sample_us, sample),
                 milliseconds(record->total_us, total), tokens_a_second(record));
    return buffer_append(out, line, (size_t)n);
}

static void describe(const struct quern_trace_record *record, char text[TEXT_BYTES])
{
    const size_t size = TEXT_BYTES;
    if (strcmp(record->what, "admitted") == 0)
        snprintf(text, size, "queued %.3f ms", (double)record->n / 1e3);
    else
        snprintf(text, size, "%" PRIu64, record->n);
    for (size_t i = 0; i < sizeof nouns / sizeof *nouns; i++)
        if (strcmp(record->what, nouns[i].what) == 0)
            snprintf(text, size, "%s", amount_of(record->n, nouns[i].noun).text);
}

static int append_mark(struct buffer *out, const char *worker, const struct quern_trace_record *record)
{
    char line[LINE_BYTES], text[TEXT_BYTES];
    describe(record, text);
    int n = snprintf(line, sizeof line, "%-10.64s %12.6f  request %.32s%s%.128s  %s: %s%s%s\n", worker,
                     (double)record->at_us / 1e6, record->id, record->request_id[0] ? " " : "",
                     record->request_id, record->what, text, record->reason[0] ? ", " : "", record->reason);
    return buffer_append(out, line, (size_t)n);
}

/* Takes the reference; NULL: no memory. */
static int append_json(struct buffer *out, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    int r = text ? buffer_append(out, text, strlen(text)) : -ENOMEM;
    if (r == 0)
        r = buffer_append(out, "\n", 1);
    free(text);
    json_decref(json);
    return r;
}

static json_t *json_of(const char *worker, const struct quern_trace_record *record)
{
    json_t *json = json_pack("{s:s, s:s, s:I, s:I}", "worker", worker, "what", record->what, "at_us",
                             (json_int_t)record->at_us, "n", (json_int_t)record->n);
    const struct {
        const char *key;
        uint32_t value;
    } numbers[] = {{"decode_rows", record->decode_rows},   {"prefill_rows", record->prefill_rows},
                   {"padding_rows", record->padding_rows}, {"ids", record->ids},
                   {"total_us", record->total_us},         {"embed_us", record->embed_us},
                   {"layers_us", record->layers_us},       {"sample_us", record->sample_us}};
    const bool step = record->id[0] == 0;
    for (size_t i = 0; step && i < sizeof numbers / sizeof *numbers; i++)
        json_object_set_new(json, numbers[i].key, json_integer(numbers[i].value));
    if (!step)
        json_object_set_new(json, "id", json_string(record->id));
    if (record->request_id[0])
        json_object_set_new(json, "request_id", json_string(record->request_id));
    if (record->reason[0])
        json_object_set_new(json, "reason", json_string(record->reason));
    return json;
}

int trace_view_record(struct buffer *out, const char *worker, const struct quern_trace_record *record,
                      bool json)
{
    if (json)
        return append_json(out, json_of(worker, record));
    return record->id[0] ? append_mark(out, worker, record) : append_step(out, worker, record);
}

int trace_view_lost(struct buffer *out, const char *worker, uint64_t n, bool json)
{
    if (json)
        return append_json(
            out, json_pack("{s:s, s:s, s:I}", "worker", worker, "what", "lost", "n", (json_int_t)n));
    char line[LINE_BYTES];
    int len =
        snprintf(line, sizeof line, "%-10.64s %12s  lost %s\n", worker, "", amount_of(n, "record").text);
    return buffer_append(out, line, (size_t)len);
}

int trace_view_restarted(struct buffer *out, const char *worker, bool json)
{
    if (json)
        return append_json(out, json_pack("{s:s, s:s}", "worker", worker, "what", "restarted"));
    char line[LINE_BYTES];
    int len = snprintf(line, sizeof line, "%-10.64s %12s  restarted\n", worker, "");
    return buffer_append(out, line, (size_t)len);
}
