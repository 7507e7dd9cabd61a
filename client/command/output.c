/* SPDX-License-Identifier: MIT */
/* write(2) until everything is written: a Ctrl-C interrupts the call and is handled by whoever looks at its
 * flag. */

#include "client/command/output.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"

int output_write(const void *data, size_t len)
{
    const char *at = data;
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            /* Somebody else made the terminal non-blocking; it is still to be waited for. */
            struct pollfd writable = {.fd = STDOUT_FILENO, .events = POLLOUT};
            poll(&writable, 1, -1);
            continue;
        }
        if (n < 0) {
            int r = -errno;
            log_error("stdout: %s", strerror(-r));
            return r;
        }
        at += n;
        len -= (size_t)n;
    }
    return 0;
}
