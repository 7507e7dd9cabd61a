/* SPDX-License-Identifier: MIT */
/* cuBLASLt by dlopen, the newest version first. The loader looks where it looks for any library: the cache of
 * ldconfig, $LD_LIBRARY_PATH. */

#include "cuda/cublas_lt.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};

static const struct call {
    const char *name;
    size_t place; /* in the table */
} calls[] = {
#define CALL(member, name) {#name, offsetof(struct cublas_lt, member)},
    CUBLAS_LT_CALLS(CALL)
#undef CALL
};

int cublas_lt_find(struct cublas_lt *ret_calls, struct error *err)
{
    struct cublas_lt found;
    void *library = NULL;
    const char *reason = NULL;
    size_t i = 0;
    for (; i < sizeof names / sizeof *names && !library; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (!library && i == 0)
            reason = dlerror();
    }
    if (!library)
        return error_set(err, -ENOENT, "%s", reason ? reason : "libcublasLt.so is not there");
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        void *call = dlsym(library, calls[c].name);
        if (!call) {
            dlclose(library);
            return error_set(err, -ENOENT, "%s has no %s", names[i - 1], calls[c].name);
        }
        memcpy((char *)&found + calls[c].place, &call, sizeof call);
    }
    *ret_calls = found;
    return 0;
}
