/* SPDX-License-Identifier: MIT */
/* See curl_calls.h. The interface is that of libcurl.so.4 since 2006, which distributions also build with
 * GnuTLS under a name of its own; either does. */

#include "gateway/telemetry/curl_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

static const char *const libraries[] = {"libcurl-gnutls.so.4", "libcurl.so.4"};

static const struct {
    const char *name;
    size_t place; /* in the table */
} calls[] = {
#define CALL(name) {"curl_" #name, offsetof(struct curl_calls, name)},
    CURL_CALLS(CALL)
#undef CALL
};

static int find_calls(void *library, const char *name, struct curl_calls *ret_calls, struct error *err)
{
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        void *call = dlsym(library, calls[c].name);
        if (!call)
            return error_set(err, -ENOTSUP, "%s has no %s", name, calls[c].name);
        memcpy((char *)ret_calls + calls[c].place, &call, sizeof call);
    }
    return 0;
}

const struct curl_calls *curl_calls_load(struct error *err)
{
    static struct curl_calls loaded;
    void *library = NULL;
    size_t i = 0;
    if (loaded.free)
        return &loaded;
    for (; i < sizeof libraries / sizeof *libraries; i++)
        if ((library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL)))
            break;
    if (!library) {
        error_set(err, -ENOTSUP, "libcurl, which sends spans, cannot be loaded: %s", dlerror());
        return NULL;
    }
    struct curl_calls found;
    if (find_calls(library, libraries[i], &found, err) < 0) {
        dlclose(library);
        return NULL;
    }
    loaded = found;
    return &loaded;
}
