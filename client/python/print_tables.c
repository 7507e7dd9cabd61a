/* SPDX-License-Identifier: MIT */
/* Prints the tables of the protocol as the Python module that the client reads:
 * client/python/src/quern/_tables.py.
 *
 *     build/client/python/print_tables > client/python/src/quern/_tables.py
 *
 * The module is kept in the repository, so that the client needs no compiler; a test compares it with what
 * this prints. So a field, a bound or a parameter that is new in proto/ cannot be forgotten in Python. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/fields.h"

static const char *const type_names[] = {
    [FIELD_BOOL] = "BOOL",
    [FIELD_U32] = "INT",
    [FIELD_U64] = "INT",
    [FIELD_I32] = "INT",
    [FIELD_REAL] = "REAL",
    [FIELD_ENUM] = "ENUM",
    [FIELD_ID] = "ID",
    [FIELD_DIGEST] = "ID",
    [FIELD_FLOATS] = "FLOATS",
    [FIELD_BIN] = "BIN",
    [FIELD_TEXT] = "TEXT",
    [FIELD_NAME] = "NAME",
    [FIELD_EPOCH] = "EPOCH",
    [FIELD_RANGE] = "RANGE",
    [FIELD_NAMES] = "TEXTS",
    [FIELD_IDS] = "IDS",
    [FIELD_BINS] = "BINS",
    [FIELD_PROMPT] = "PROMPT",
    [FIELD_BIASES] = "BIASES",
    [FIELD_LOGPROBS] = "LOGPROBS",
    [FIELD_MAP] = "MAP",
    [FIELD_MAPS] = "MAPS",
    [FIELD_HISTOGRAM] = "HISTOGRAM",
};

/* As short as it can be written without becoming another number. */
static void print_real(const char *what, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof text, "%.17g", value);
    printf("%s%s", what, text);
}

/* Texts here hold no quote and no backslash. */
static void print_names(const struct name_table *names, int64_t first)
{
    printf("(");
    for (uint32_t i = (uint32_t)first; i < names->n; i++)
        printf("%s\"%s\"", i > (uint32_t)first ? ", " : "", names->names[i]);
    printf(",)");
}

static void print_table(const struct field_table *table);

static void print_field(const struct field *field)
{
    printf("Field(\"%s\", %s", field->key, type_names[field->type]);
    if (field->flags & FIELD_REQUIRED)
        printf(", required=True");
    if (field->flags & FIELD_ALWAYS)
        printf(", always=True");
    if (field->present || field->flags & FIELD_LEFT)
        printf(", optional=True");
    if (field->type == FIELD_REAL || field->type == FIELD_BIASES) {
        print_real(", real_low=", field->real_low);
        print_real(", real_high=", field->real_high);
    }
    if (field->type != FIELD_ENUM && field->low != 0)
        printf(", low=%" PRId64, field->low);
    if (field->high != 0)
        printf(", high=%" PRIu64, field->high);
    if (field->item_high != 0)
        printf(", item_high=%" PRIu64, field->item_high);
    if (field->initial != 0)
        print_real(", initial=", field->initial);
    if (field->help)
        printf(", help=\"%s\"", field->help);
    if (field->names) {
        printf(", names=");
        print_names(field->names, field->low);
        /* An enum whose first value means nothing is left out when nothing is meant. */
        if (field->low > 0)
            printf(", optional=True");
    }
    if (field->table) {
        printf(", table=");
        print_table(field->table);
    }
    printf(")");
}

static void print_table(const struct field_table *table)
{
    printf("table(");
    for (unsigned i = 0; i < table->n; i++) {
        printf("%s", i > 0 ? ", " : "");
        print_field(&table->fields[i]);
    }
    printf(")");
}

static void print_kinds(void)
{
    printf("KINDS: dict[str, Table] = {\n");
    for (int kind = MESSAGE_NONE + 1; kind < MESSAGE_KIND_COUNT; kind++) {
        const struct field_table *table = field_table_of((enum message_kind)kind);
        printf("    \"%s\": table(\n", message_kind_name((enum message_kind)kind));
        for (unsigned i = 0; i < table->n; i++) {
            printf("        ");
            print_field(&table->fields[i]);
            printf(",\n");
        }
        printf("        max_bytes=%zu,\n    ),\n", message_max_bytes((enum message_kind)kind));
    }
    printf("}\n\nMESSAGE: Table = ");
    print_table(field_table_of_chat());
    printf("\n\n");
}

/* What a caller of the client may give for a field. */
static const char *given_type(const struct field *field)
{
    if (strcmp(field->key, "grammar") == 0)
        return "str | Mapping[str, object]"; /* a schema as Python has it */
    switch ((enum field_type)field->type) {
    case FIELD_BOOL:
        return "bool";
    case FIELD_U32:
    case FIELD_U64:
    case FIELD_I32:
        return "int";
    case FIELD_REAL:
        return "float";
    case FIELD_IDS:
        return "Sequence[int]";
    case FIELD_DIGEST:
        return "bytes";
    case FIELD_NAMES:
        return "str | Sequence[str]";
    case FIELD_BIASES:
        return "Mapping[int, float] | Sequence[tuple[int, float]]";
    case FIELD_MAPS: /* logit_bias_text */
        return "Mapping[str, float] | Sequence[Mapping[str, object]]";
    default:
        return "str";
    }
}

/* Every key of a generate but those which the client sets itself, takes as an argument of its own, or has a
 * method for. */
static void print_parameters(void)
{
    const struct field_table *table = field_table_of(MESSAGE_GENERATE);
    printf("\nclass Parameters(TypedDict, total=False):\n"
           "    \"\"\"Parameters of `generate` and `chat` besides the prompt. Those left out have the "
           "protocol's defaults.\"\"\"\n\n");
    for (unsigned i = 0; i < table->n; i++) {
        const struct field *field = &table->fields[i];
        if (field->type == FIELD_ID || field->type == FIELD_PROMPT ||
            strcmp(field->key, "on_disconnect") == 0 || strcmp(field->key, "embed") == 0 ||
            strcmp(field->key, "document") == 0)
            continue;
        /* A client says `keep` by giving it a time. */
        bool keep = strcmp(field->key, "keep_s") == 0;
        printf("    %s: %s\n    \"\"\"%s", field->key, given_type(field),
               keep ? "0: ends with the session; else lives so many seconds without it" : field->help);
        if (field->flags & FIELD_LEFT || field->type == FIELD_REAL ||
            (field->type == FIELD_U32 && field->initial != 0))
            printf(field->flags & FIELD_LEFT ? " (default: the pool's or the model's, else %g)"
                                             : " (default %g)",
                   field->initial);
        printf("\"\"\"\n");
    }
}

static void print_scale(const char *name, const struct histogram_scale *scale)
{
    printf("    \"%s\": (", name);
    print_real("", scale->per_unit);
    printf(", (");
    for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++)
        print_real(i > 0 ? ", " : "", scale->reals[i]);
    printf(")),\n");
}

/* What a number of them is, and where the buckets end. */
static void print_histograms(void)
{
    printf("\nHISTOGRAMS: dict[str, tuple[float, tuple[float, ...]]] = {\n");
#define PRINT_SECONDS(name)               print_scale(name, &histogram_seconds);
#define PRINT_ROWS(name)                  print_scale(name, &histogram_rows);
#define PRINT_SHARES(name)                print_scale(name, &histogram_shares);
#define PRINT_HISTOGRAM(scale, name, ...) PRINT_##scale(#name)
    WORKER_HISTOGRAMS(PRINT_HISTOGRAM)
    printf("}");
}

int main(void)
{
    printf("# SPDX-License-Identifier: MIT\n"
           "# fmt: off\n"
           "# ruff: noqa: E501, I001\n"
           "\"\"\"The protocol as data. Printed by client/python/print_tables.c from proto/; a test holds it "
           "to that.\"\"\"\n\n"
           "from __future__ import annotations\n\n"
           "from collections.abc import Mapping, Sequence\n"
           "from typing import TypedDict\n\n"
           "from ._field import (\n"
           "    BIASES, BIN, BINS, BOOL, ENUM, EPOCH, FLOATS, HISTOGRAM, ID, IDS, INT, LOGPROBS, MAP, MAPS, "
           "NAME, PROMPT, "
           "RANGE, REAL, TEXT, TEXTS,\n"
           "    Field, Table, table,\n"
           ")\n\n"
           "VERSION_MIN = %d\nVERSION_MAX = %d\nMAX_KEYS = %d\nMAX_DEPTH = %d\nMAX_MESSAGES = %d\n"
           "MAX_PROMPT_IDS = %d\nMAX_REQUEST_BYTES = %d\nMAX_GENERATE_BYTES = %d\nMAX_TEXT_BYTES = %d\n"
           "MAX_FRAME_IDS = %d\nMAX_BYTES = %d\n",
           PROTO_VERSION_MIN, PROTO_VERSION_MAX, FIELDS_MAX_KEYS, FIELDS_MAX_DEPTH, PROTO_MAX_MESSAGES,
           PROTO_MAX_PROMPT_IDS, PROTO_MAX_REQUEST_BYTES, PROTO_MAX_GENERATE_BYTES, PROTO_MAX_TEXT_BYTES,
           PROTO_MAX_FRAME_IDS, PROTO_MAX_ANSWER_BYTES);
    printf("ERRORS = ");
    print_names(&names_of_errors, 1);
    printf("\nREASONS = ");
    print_names(&names_of_reasons, 0);
    print_histograms();
    printf("\n\n");
    print_kinds();
    print_parameters();
    return 0;
}
