/* SPDX-License-Identifier: MIT */
/* Any bytes as the file of the boot number: they are a number and a newline, and the next numbers are above
 * it, here and for who reads the file afterwards; or there is a reason on one line, and no number. */

#include "tests/fuzz/driver.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files/rundir.h"
#include "supervisor/boot.h"

static char rundir[RUNDIR_PATH_MAX + 1], path[RUNDIR_PATH_MAX + 8];

/* The sync of each input would be all that is done. */
int fsync(int fd)
{
    (void)fd;
    return 0;
}

static void end(void)
{
    rundir_remove(rundir);
}

static void begin(void)
{
    if (rundir_temporary(rundir, NULL) < 0)
        abort();
    snprintf(path, sizeof path, "%s/boot", rundir);
    atexit(end);
}

/* Whether that is all there is: digits and a newline. */
static bool is_number(const uint8_t *data, size_t len)
{
    for (size_t i = 0; i + 1 < len; i++)
        if (!isdigit(data[i]))
            return false;
    return len >= 2 && data[len - 1] == '\n';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct boot boot = {0}, next = {0};
    struct error err = {{0}};
    if (!rundir[0])
        begin();
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, len) != (ssize_t)len)
        abort();
    close(fd);
    if (boot_raise(&boot, rundir, &err) < 0) {
        if (boot.number != 0 || !err.text[0] || strchr(err.text, '\n'))
            abort();
        return 0;
    }
    if (!is_number(data, len) || boot.number != strtoull((const char *)data, NULL, 10) + 1)
        abort();
    if (boot_raise(&next, rundir, &err) < 0 ? next.number != 0 : next.number <= boot.last)
        abort();
    return 0;
}
