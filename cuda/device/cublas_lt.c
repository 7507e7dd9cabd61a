/* SPDX-License-Identifier: MIT */
/* cuBLASLt by dlopen. The loader looks where it looks for any library: the cache of ldconfig,
 * $LD_LIBRARY_PATH. */

#include "cuda/device/cublas_lt.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct call {
    const char *name;
    size_t place; /* in the table */
} calls[] = {
#define CALL(member, name) {#name, offsetof(struct cublas_lt, member)},
    CUBLAS_LT_CALLS(CALL)
#undef CALL
};

int cublas_lt_find(uint32_t version, struct cublas_lt *ret_calls, struct error *err)
{
    struct cublas_lt found;
    char name[32];
    snprintf(name, sizeof name, "libcublasLt.so.%u", version);
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror(); /* until the loader is called again */
        return error_set(err, -ENOENT, "%s", reason ? reason : name);
    }
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        void *call = dlsym(library, calls[c].name);
        if (!call) {
            dlclose(library);
            return error_set(err, -ENOENT, "%s has no %s", name, calls[c].name);
        }
        memcpy((char *)&found + calls[c].place, &call, sizeof call);
    }
    *ret_calls = found;
    return 0;
}
