/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_JSON_VALUES_H
#define MODEL_HUGGINGFACE_JSON_VALUES_H

/* Typed reads of untrusted JSON files. Reasons name the key; callers that know the file add its name. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"

/* Parses the bytes, at most `most`, as an object. -EMSGSIZE, -EINVAL with line and reason, -ENOMEM. */
int json_object_parse(struct bytes text, size_t most, json_t **ret_object, struct error *err);

/* The value of a key. 0; JSON_E_MISSING if it is missing or null, with the output unchanged; -EINVAL with a
 * reason if it has the wrong type or is out of range. `object` may be NULL, which has no keys. */
enum { JSON_E_MISSING = 1 };
int json_read_u32(const json_t *object, const char *key, uint32_t *ret_value, struct error *err);
int json_read_real(const json_t *object, const char *key, float *ret_value, struct error *err);
int json_read_flag(const json_t *object, const char *key, bool *ret_value, struct error *err);
int json_read_text(const json_t *object, const char *key, const char **ret_text, struct error *err);

/* A number above 0, or `otherwise` if it is missing (then also 0). -EINVAL names the key. */
int json_read_positive(const json_t *object, const char *key, float otherwise, float *ret_value,
                       struct error *err);

/* The value of "type"; "null" without an object, "" without a type. */
const char *json_type_name(const json_t *object);

#endif
