/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_JSON_VALUES_H
#define MODEL_HUGGINGFACE_JSON_VALUES_H

/* Typed reads of JSON files that somebody else wrote. Reasons name the key; who knows the file puts its name
 * before them. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"

/* The object that the bytes are, at most `most` of them. -EMSGSIZE, -EINVAL with line and reason, -ENOMEM. */
int json_object_parse(struct bytes text, size_t most, json_t **ret_object, struct error *err);

/* What an object has under a key. 0; JSON_E_MISSING when there is nothing, or null, and the output is left as
 * it is; -EINVAL with a reason when it is something else, or beyond the range. `object` may be NULL: it has
 * nothing. */
enum { JSON_E_MISSING = 1 };
int json_read_u32(const json_t *object, const char *key, uint32_t *ret_value, struct error *err);
int json_read_real(const json_t *object, const char *key, float *ret_value, struct error *err);
int json_read_flag(const json_t *object, const char *key, bool *ret_value, struct error *err);
int json_read_text(const json_t *object, const char *key, const char **ret_text, struct error *err);

/* What the value under "type" says an object is; "null" without an object, "" without a type. */
const char *json_type_name(const json_t *object);

#endif
