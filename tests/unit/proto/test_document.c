/* SPDX-License-Identifier: MIT */
/* PROTOCOL.md against the tables: every kind, key, error, reason and state is named in it, and the table of a
 * generate's keys says of each exactly what its field does: type, bounds, default, meaning. */

#include "proto/fields.h"
#include "tests/unit/run.h"

#include <inttypes.h>
#include <stdlib.h>

static char *document;

static void set_up(void)
{
    FILE *file = fopen(GOLDEN_FOLDER "/../PROTOCOL.md", "r");
    ck_assert_ptr_nonnull(file);
    document = calloc(1, 1 << 20);
    ck_assert_uint_gt(fread(document, 1, (1 << 20) - 1, file), 0);
    fclose(file);
}

static void tear_down(void)
{
    free(document);
}

static void check_named(const char *where, const char *word)
{
    char quoted[80];
    snprintf(quoted, sizeof quoted, "`%s`", word);
    ck_assert_msg(strstr(document, quoted) != NULL, "%s: %s is not in PROTOCOL.md", where, quoted);
}

static void check_table_named(const char *kind, const struct field_table *table)
{
    for (unsigned i = 0; i < table->n; i++) {
        check_named(kind, table->fields[i].key);
        if (table->fields[i].table)
            check_table_named(kind, table->fields[i].table);
    }
}

START_TEST(it_names_every_kind_key_and_error)
{
    for (int k = 1; k < MESSAGE_KIND_COUNT; k++) {
        const char *kind = message_kind_name((enum message_kind)k);
        check_named(kind, kind);
        check_table_named(kind, field_table_of((enum message_kind)k));
    }
    for (int e = 1; e < PROTO_ERROR_COUNT; e++)
        check_named("errors", proto_error_name((enum proto_error)e));
    for (int e = 0; e < END_REASON_COUNT; e++)
        check_named("reasons", end_reason_name((enum end_reason)e));
    for (int s = 0; s < WORKER_STATE_COUNT; s++)
        check_named("states", worker_state_name((enum worker_state)s));
}
END_TEST

/* ---- the keys of generate ---- */

/* A number as the document writes it. */
static const char *number(double value, char buffer[32])
{
    if (value == INT32_MAX)
        return "2³¹−1";
    if (value == (double)(long)value)
        snprintf(buffer, 32, "%s%ld", value < 0 ? "−" : "", labs((long)value));
    else
        snprintf(buffer, 32, "%g", value);
    return buffer;
}

static void describe_type(const struct field *f, char *out, size_t size)
{
    char low[32], high[32];
    switch ((enum field_type)f->type) {
    case FIELD_BOOL:
        snprintf(out, size, "bool");
        break;
    case FIELD_NAME:
        snprintf(out, size, "name");
        break;
    case FIELD_TEXT:
        if (f->high == PROTO_MAX_GENERATE_BYTES) /* no bound of its own */
            snprintf(out, size, "text");
        else
            snprintf(out, size, "text ≤ %" PRIu64 " bytes", f->high);
        break;
    case FIELD_REAL:
        snprintf(out, size, "real %s … %s", number(f->real_low, low), number(f->real_high, high));
        break;
    case FIELD_U32:
    case FIELD_U64:
    case FIELD_I32:
        if (f->high == UINT64_MAX)
            snprintf(out, size, "u64");
        else if (f->high == FIELDS_MAX_COUNTER)
            snprintf(out, size, "counter");
        else
            snprintf(out, size, "int %s … %s", number((double)f->low, low), number((double)f->high, high));
        break;
    case FIELD_NAMES:
        snprintf(out, size, "array of ≤ %" PRIu64 " texts, %" PRId64 " … %" PRIu64 " bytes each", f->high,
                 f->low, f->item_high);
        break;
    case FIELD_DIGEST:
        snprintf(out, size, "bin of 16 bytes");
        break;
    case FIELD_IDS:
        snprintf(out, size, "token ids (≤ %" PRIu64 ")", f->high);
        break;
    case FIELD_BIASES:
        snprintf(out, size, "array of ≤ %" PRIu64 " pairs `[token id, real %s … %s]`", f->high,
                 number(f->real_low, low), number(f->real_high, high));
        break;
    case FIELD_MAPS:
        snprintf(out, size, "array of ≤ %" PRIu64 " maps, see below", f->high);
        break;
    case FIELD_ENUM:
        snprintf(out, size, "text: ");
        for (uint32_t i = 0; i < f->names->n; i++)
            snprintf(out + strlen(out), size - strlen(out), "`%s`%s", f->names->names[i],
                     i + 2 < f->names->n    ? ", "
                     : i + 2 == f->names->n ? " or "
                                            : "");
        break;
    default:
        ck_abort_msg("%s: a type that the document has no words for", f->key);
    }
}

static void describe_default(const struct field *f, char *out, size_t size)
{
    char buffer[32];
    if (f->present)
        snprintf(out, size, strcmp(f->key, "seed") == 0 ? "random" : "none");
    else if (f->type == FIELD_BOOL)
        snprintf(out, size, f->initial != 0 ? "true" : "false");
    else if (f->type == FIELD_ENUM)
        snprintf(out, size, "`%s`", f->names->names[0]);
    else if (f->type == FIELD_NAME)
        snprintf(out, size, "empty");
    else if (f->type == FIELD_NAMES || f->type == FIELD_IDS || f->type == FIELD_BIASES ||
             f->type == FIELD_MAPS || f->type == FIELD_TEXT || f->type == FIELD_DIGEST)
        snprintf(out, size, "none");
    else
        snprintf(out, size, "%s", number(f->initial, buffer));
}

START_TEST(its_table_of_the_keys_of_generate_is_that_of_the_code)
{
    const struct field_table *table = field_table_of(MESSAGE_GENERATE);
    unsigned rows = 0;
    for (const struct field *f = table->fields; f < table->fields + table->n; f++) {
        /* The id of a message and the three forms of a prompt are told in prose. */
        if (f->type == FIELD_ID || f->type == FIELD_PROMPT)
            continue;
        ck_assert_msg(f->help != NULL, "%s has no help", f->key);
        char type[128], initial[64], row[512];
        describe_type(f, type, sizeof type);
        describe_default(f, initial, sizeof initial);
        snprintf(row, sizeof row, "\n| `%s` | %s | %s | %s |\n", f->key, type, initial, f->help);
        ck_assert_msg(strstr(document, row) != NULL, "PROTOCOL.md lacks the row%s", row);
        rows++;
    }
    ck_assert_uint_gt(rows, 15);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, it_names_every_kind_key_and_error);
    tcase_add_test(tests, its_table_of_the_keys_of_generate_is_that_of_the_code);
}

int main(void)
{
    return run_tests("document", add);
}
