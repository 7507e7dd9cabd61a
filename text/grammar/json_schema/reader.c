/* SPDX-License-Identifier: MIT */
/* What every part of the reader needs: rejecting a schema, bounding the work, reading a count. */

#include "text/grammar/json_schema/internal.h"

#include <stdarg.h>
#include <stdio.h>

#define MOST_SPENT (1u << 24) /* some 0.2 s */

const struct expression *schema_refuse(struct schema_reader *reader, const char *format, ...)
{
    char reason[256];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    if (reader->code == 0)
        reader->code = error_set(reader->err, GRAMMAR_E_INVALID, "schema: at #%s: %s", reader->path, reason);
    return NULL;
}

bool schema_spend(struct schema_reader *reader, uint64_t steps)
{
    reader->spent += steps;
    if (reader->spent > MOST_SPENT)
        schema_refuse(reader, "the schema is too large");
    return reader->spent <= MOST_SPENT;
}

bool schema_count(struct schema_reader *reader, const json_t *schema, const char *keyword, uint32_t missing,
                  uint32_t *ret_count)
{
    const json_t *value = json_object_get(schema, keyword);
    if (!value) {
        *ret_count = missing;
        return true;
    }
    double number = json_number_value(value);
    if (!json_is_number(value) || number < 0 || number > GRAMMAR_MOST_REPEATS ||
        number != (double)(uint32_t)number) {
        schema_refuse(reader, "%s is not an integer from 0 to %u", keyword, GRAMMAR_MOST_REPEATS);
        return false;
    }
    *ret_count = (uint32_t)number;
    return true;
}
