/* SPDX-License-Identifier: MIT */
/* Checks of single values, shared by decoding and encoding: what is refused on the way in is refused on the
 * way out too. The texts leave out the key: whoever walks the table puts it in front. */

#include "proto/fields.h"

#include <inttypes.h>
#include <math.h>

#include "common/utf8.h"

int field_check_unsigned(const struct field *field, uint64_t value, struct error *err)
{
    if (value > field->high || (field->low > 0 && value < (uint64_t)field->low))
        return error_out_of_range_unsigned(err, MESSAGE_E_MALFORMED, "", value, (uint64_t)field->low,
                                           field->high);
    return 0;
}

int field_check_signed(const struct field *field, int64_t value, struct error *err)
{
    if (value < field->low || value > (int64_t)field->high)
        return error_set(err, MESSAGE_E_MALFORMED, "%" PRId64 " is out of range %" PRId64 "..%" PRIu64, value,
                         field->low, field->high); /* whose bounds fit no one type */
    return 0;
}

int field_check_real(const struct field *field, double value, struct error *err)
{
    /* Written so that NaN fails. */
    if (value >= field->real_low && value <= field->real_high)
        return 0;
    return error_out_of_range_real(err, MESSAGE_E_MALFORMED, "", value, field->real_low, field->real_high);
}

int field_check_text(struct bytes text, uint64_t max, bool name, struct error *err)
{
    if (text.len > max)
        return error_set(err, MESSAGE_E_MALFORMED, "%zu bytes; at most %" PRIu64 " are allowed", text.len,
                         max);
    size_t valid = utf8_valid(text);
    if (valid < text.len)
        return error_set(err, MESSAGE_E_MALFORMED, "not UTF-8 at byte %zu", valid);
    for (size_t i = 0; name && i < text.len; i++) {
        uint8_t c = ((const uint8_t *)text.data)[i];
        if (c < 0x20 || c == 0x7f)
            return error_set(err, MESSAGE_E_MALFORMED, "control character at byte %zu", i);
    }
    return 0;
}

int field_check_item(const struct field *field, struct bytes item, struct error *err)
{
    if (item.len < (uint64_t)field->low)
        return error_set(err, MESSAGE_E_MALFORMED, "is empty");
    if (field->type == FIELD_NAMES)
        return field_check_text(item, field->item_high, false, err);
    if (item.len > field->item_high)
        return error_set(err, MESSAGE_E_MALFORMED, "%zu bytes; at most %" PRIu64 " are allowed", item.len,
                         field->item_high);
    return 0;
}

int field_check_logprob(float value, struct error *err)
{
    return isnan(value) ? error_set(err, MESSAGE_E_MALFORMED, "a log probability that is not a number") : 0;
}

int field_check_bin(const struct field *field, struct bytes bin, struct error *err)
{
    if (bin.len < (uint64_t)field->low)
        return error_set(err, MESSAGE_E_MALFORMED, "is empty");
    if (bin.len > field->high)
        return error_set(err, MESSAGE_E_MALFORMED, "%zu bytes; at most %" PRIu64 " are allowed", bin.len,
                         field->high);
    return 0;
}

int field_check_floats(const struct field *field, struct bytes floats, struct error *err)
{
    if (floats.len % sizeof(float) != 0)
        return error_set(err, MESSAGE_E_MALFORMED, "%zu bytes are not a whole number of 32-bit floats",
                         floats.len);
    return field_check_count(floats.len / sizeof(float), field->high, err);
}

int field_check_count(uint64_t n, uint64_t max, struct error *err)
{
    if (n > max)
        return error_set(err, MESSAGE_E_MALFORMED, "%" PRIu64 " items; at most %" PRIu64 " are allowed", n,
                         max);
    return 0;
}
