/* SPDX-License-Identifier: MIT */
/* The names are those of the file formats with the same numbers. */

#include "engine/backend/kv_type.h"

#include <errno.h>
#include <string.h>

static const char *const names[] = {[BACKEND_KV_F16] = "f16",
                                    [BACKEND_KV_BF16] = "bf16",
                                    [BACKEND_KV_Q8] = "q8_0",
                                    [BACKEND_KV_F32] = "f32",
                                    [BACKEND_KV_Q4] = "q4_0"};

int kv_type_by_name(const char *name, enum backend_kv_type *ret_type, struct error *err)
{
    for (size_t i = BACKEND_KV_F16; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *ret_type = (enum backend_kv_type)i;
            return 0;
        }
    return error_set(err, -EINVAL, "unknown KV type \"%s\" (" KV_TYPE_NAMES ")", name);
}

const char *kv_type_name(enum backend_kv_type type)
{
    return type == BACKEND_KV_DEFAULT ? "none" : names[type];
}
