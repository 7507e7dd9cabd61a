/* SPDX-License-Identifier: MIT */
/* Finds sibling programs through /proc/self/exe, so that neither $PATH nor the working directory matters. */

#include "common/program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/utf8.h"

void program_hold_standard_files(void)
{
    /* open takes the lowest that is free, so each finds those before it in use. */
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void program_forgo_core_dumps(void)
{
    /* To a limit of 0 a dump is still piped to who gathers them; one byte is the kernel's mark of such a
     * program itself, which gets none, and too little for a file. */
    struct rlimit limit;
    if (getenv("QUERN_CORE_DUMPS") || getrlimit(RLIMIT_CORE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max = limit.rlim_max > 1 ? 1 : limit.rlim_max;
    setrlimit(RLIMIT_CORE, &limit);
}

void program_survive_file_limits(void)
{
    signal(SIGXFSZ, SIG_IGN);
}

void program_error(const char *format, ...)
{
    char line[1024];
    int n = snprintf(line, sizeof line, "%s: ", program_invocation_short_name);
    va_list args;
    va_start(args, format);
    if (n >= 0 && (size_t)n < sizeof line)
        vsnprintf(line + n, sizeof line - (size_t)n, format, args);
    va_end(args);
    utf8_clean(line);
    size_t len = strlen(line);
    line[len] = '\n'; /* where the zero was */
    ssize_t written = write(STDERR_FILENO, line, len + 1);
    (void)written; /* there is nowhere else to say it */
}

int program_sibling(const char *name, char ret_path[PATH_MAX], struct error *err)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n < 0)
        return error_set(err, -errno, "/proc/self/exe: %s", strerror(errno));
    path[n] = 0;
    char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    if (folder + strlen(name) >= sizeof path)
        return error_set(err, -ENAMETOOLONG, "the path of %s is too long", name);
    strcpy(path + folder, name);
    if (access(path, X_OK) < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    strcpy(ret_path, path);
    return 0;
}
