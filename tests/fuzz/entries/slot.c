/* SPDX-License-Identifier: MIT */
/* Any bytes as the slot of the board that a worker inherits: it is refused with a reason on one line, or what
 * the worker writes there can be read.
 *
 * An input is how many bytes there are (two of its own, the lower one first), and what stands there. */

#include "tests/fuzz/driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "worker/report.h"

static int slot_of(const uint8_t *data, size_t len)
{
    int fd = memfd_create("fuzz-slot", MFD_CLOEXEC);
    size_t size = data[0] | (size_t)data[1] << 8, rest = len - 2 < size ? len - 2 : size;
    if (fd < 0 || ftruncate(fd, (off_t)size) < 0 || pwrite(fd, data + 2, rest, 0) != (ssize_t)rest)
        abort();
    return fd;
}

static void use(struct report *report)
{
    const struct report_facts facts = {.state = WORKER_LOADING, .step_started_ns = 77, .unstarted = 3};
    struct board_snapshot snapshot;
    report_progress(report);
    report_write(report, &facts, 1000, 10);
    if (board_read(report->slot, &snapshot) < 0 || snapshot.state != WORKER_LOADING ||
        snapshot.waiting != 3 || snapshot.step_started_ns != 77 || snapshot.pid != (uint32_t)getpid())
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct report report;
    struct error err = {{0}};
    if (len < 2)
        return 0;
    int r = report_open(&report, slot_of(data, len), 1, &err);
    if (r == 0)
        use(&report);
    else if (report.slot || !err.text[0] || strchr(err.text, '\n'))
        abort();
    report_close(&report);
    return 0;
}
