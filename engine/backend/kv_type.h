/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_KV_TYPE_H
#define ENGINE_BACKEND_KV_TYPE_H

/* Types of stored keys and values, by name. */

#include "common/error.h"
#include "engine/backend/backend.h"

/* For messages and help. */
#define KV_TYPE_NAMES "f16, bf16, f32, q8_0 or q4_0"

/* Parses one of KV_TYPE_NAMES; open checks whether the backend supports it. 0, or -EINVAL with the supported
 * names. */
int kv_type_by_name(const char *name, enum backend_kv_type *ret_type, struct error *err);

/* "none" for BACKEND_KV_DEFAULT, the type of a backend without keys and values. */
const char *kv_type_name(enum backend_kv_type type);

#endif
