/* SPDX-License-Identifier: MIT */
/* Any values of the variables by which a service manager tells a pool what it gives it, and of those that say
 * where things lie: each is taken or refused with a reason on one line, and what was meant for this process
 * alone is not there for its children.
 *
 * An input is lines, a value each, in the order of the list; '$' in one is this process's number, and a line
 * that is only '-' is a variable that is not set. */

#include "tests/fuzz/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/system/listen.h"
#include "common/log.h"
#include "common/files/rundir.h"
#include "supervisor/notify.h"

static const char *const names[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC",   "WATCHDOG_PID", "LISTEN_PID",
                                    "LISTEN_FDS",    "XDG_RUNTIME_DIR", "TMPDIR",       "QUERN_LOG"};
enum { N = sizeof names / sizeof *names, FOR_CHILDREN = 5 /* from this one on */, VALUE_MOST = 8192 };

static void set(const char *name, const uint8_t *value, size_t len)
{
    static char text[VALUE_MOST];
    size_t used = 0;
    for (size_t i = 0; i < len && value[i] && used < sizeof text - 16; i++) {
        if (value[i] == '$')
            used += (size_t)snprintf(text + used, 16, "%d", (int)getpid());
        else
            text[used++] = (char)value[i];
    }
    text[used] = 0;
    if (strcmp(text, "-") == 0)
        unsetenv(name);
    else
        setenv(name, text, 1);
}

static void set_all(const uint8_t *data, size_t len)
{
    for (size_t i = 0, at = 0; i < N; i++) {
        size_t n = 0;
        while (at + n < len && data[at + n] != '\n')
            n++;
        set(names[i], data + (at < len ? at : 0), n);
        at += at + n < len ? n + 1 : n;
    }
}

static void check_reason(int r, const struct error *err)
{
    if (r < 0 && (!err->text[0] || strchr(err->text, '\n')))
        abort();
}

static void check_gone(const char *name)
{
    if (getenv(name))
        abort();
}

static void try_notify(void)
{
    struct notify notify;
    struct error err = {{0}};
    int r = notify_init(&notify, &err);
    check_reason(r, &err);
    for (int i = 0; i < 3; i++)
        check_gone(names[i]);
    if (r == 0 && notify.fd >= 0) {
        if (notify.address_size > sizeof notify.address || notify.every_ns > UINT64_MAX / 4)
            abort();
        notify_due(&notify, 1000);
    }
    notify_deinit(&notify);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char path[RUNDIR_PATH_MAX + 1];
    struct error err = {{0}};
    int fd = -2;
    set_all(data, len);
    try_notify();
    int r = listen_passed(&fd, &err);
    check_reason(r, &err);
    if (r == 0 && fd != -1 && fd != 3)
        abort();
    for (int i = 3; i < FOR_CHILDREN && r == 0; i++)
        check_gone(names[i]);
    r = rundir_path(NULL, path, &err);
    check_reason(r, &err);
    if (r == 0 && (path[0] != '/' || strlen(path) > RUNDIR_PATH_MAX))
        abort();
    log_init("fuzz");
    return 0;
}
