/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_KV_TYPE_H
#define ENGINE_BACKEND_KV_TYPE_H

/* The types that keys and values are stored in, by name. */

#include "common/error.h"
#include "engine/backend/backend.h"

/* f16, bf16 or q8_0; whether a backend has it, is the backend's to say. -EINVAL names those that backends
 * have. */
int kv_type_by_name(const char *name, enum backend_kv_type *ret_type, struct error *err);

/* "none" of BACKEND_KV_DEFAULT, which a backend has that keeps nothing. */
const char *kv_type_name(enum backend_kv_type type);

#endif
