/* SPDX-License-Identifier: MIT */
/* JSON by jansson. A file is parsed whole, so its length bounds the memory: some dozen bytes for each of
 * its own. */

#include "model/huggingface/json_values.h"

#include <errno.h>
#include <math.h>

#include "common/amount.h"
#include "common/utf8.h"

int json_object_parse(struct bytes text, size_t most, json_t **ret_object, struct error *err)
{
    json_error_t reason;
    if (text.len > most)
        return error_set(err, -EMSGSIZE, "%s; at most %s are read", amount_of_bytes(text.len).text,
                         amount_of_bytes(most).text);
    json_t *json = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, &reason);
    if (!json && json_error_code(&reason) == json_error_out_of_memory)
        return error_set(err, -ENOMEM, "not enough memory for %s of JSON", amount_of_bytes(text.len).text);
    if (!json)
        return error_set(err, -EINVAL, "line %d: invalid JSON: %s", reason.line, utf8_clean(reason.text));
    if (!json_is_object(json)) {
        json_decref(json);
        return error_set(err, -EINVAL, "the JSON is not an object");
    }
    *ret_object = json;
    return 0;
}

static const json_t *find(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

int json_read_u32(const json_t *object, const char *key, uint32_t *ret_value, struct error *err)
{
    const json_t *value = find(object, key);
    if (!value)
        return JSON_E_MISSING;
    json_int_t found = json_integer_value(value);
    if (!json_is_integer(value) || found < 0 || found > UINT32_MAX)
        return error_set(err, -EINVAL, "%s is not an integer from 0 to %u", key, UINT32_MAX);
    *ret_value = (uint32_t)found;
    return 0;
}

int json_read_real(const json_t *object, const char *key, float *ret_value, struct error *err)
{
    const json_t *value = find(object, key);
    if (!value)
        return JSON_E_MISSING;
    float found = (float)json_number_value(value);
    if (!json_is_number(value) || !isfinite(found))
        return error_set(err, -EINVAL, "%s is not a finite number", key);
    *ret_value = found;
    return 0;
}

int json_read_positive(const json_t *json, const char *key, float otherwise, float *ret_value,
                       struct error *err)
{
    float value = otherwise;
    int r = json_read_real(json, key, &value, err);
    if (r < 0)
        return r;
    if (r == 0 && !(value > 0))
        return error_set(err, -EINVAL, "%s is %g; a number above 0 is required", key, (double)value);
    *ret_value = value;
    return 0;
}

int json_read_flag(const json_t *object, const char *key, bool *ret_value, struct error *err)
{
    const json_t *value = find(object, key);
    if (!value)
        return JSON_E_MISSING;
    if (!json_is_boolean(value))
        return error_set(err, -EINVAL, "%s is neither true nor false", key);
    *ret_value = json_is_true(value);
    return 0;
}

int json_read_text(const json_t *object, const char *key, const char **ret_text, struct error *err)
{
    const json_t *value = find(object, key);
    if (!value)
        return JSON_E_MISSING;
    if (!json_is_string(value))
        return error_set(err, -EINVAL, "%s is not a string", key);
    *ret_text = json_string_value(value);
    return 0;
}

const char *json_type_name(const json_t *object)
{
    const char *type = json_string_value(json_object_get(object, "type"));
    return type ? type : json_is_object(object) ? "" : "null";
}
