/* SPDX-License-Identifier: MIT */
/* The demo model is looked for beside the source's build folder, then where it is installed: from this
 * program on, so that an installed tree can be moved, and under the prefix of the build. */

#include "common/files/default_model.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEMO_MODEL "quern-demo-Q8_0.gguf"

int default_model(char ret_path[PATH_MAX], struct error *err)
{
    static const char *const places[] = {"../demo/" DEMO_MODEL, "../share/quern/models/" DEMO_MODEL,
                                         QUERN_DATA "/models/" DEMO_MODEL};
    const char *named = getenv("QUERN_MODEL");
    char folder[PATH_MAX];
    if (named && *named) {
        snprintf(ret_path, PATH_MAX, "%s", named);
        return 0;
    }
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (n < 0)
        return error_set(err, -errno, "/proc/self/exe: %s", strerror(errno));
    folder[n] = 0;
    *strrchr(folder, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char path[2 * PATH_MAX];
        bool absolute = places[i][0] == '/';
        snprintf(path, sizeof path, "%s/%s", absolute ? "" : folder, places[i]);
        if (strlen(path) < PATH_MAX && access(path, R_OK) == 0 && realpath(path, ret_path))
            return 0;
    }
    return error_set(err, -ENOENT, "the demo model is not installed (looked for %s beside %s and in %s)",
                     DEMO_MODEL, folder, QUERN_DATA);
}
