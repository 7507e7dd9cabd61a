/* SPDX-License-Identifier: MIT */
/* Any segments of another process as those in which a worker looks for its weights: what it takes of them was
 * sealed, has the bytes that the other wrote, and can be read to its end; and once the other lets go, nobody
 * waits.
 *
 * The other process is a child, which has the segments open. An input is up to four of them: a byte of flags,
 * one that says how many bytes are behind the header (in sixteens), the length of what comes, and the
 * beginning of the header, of which the rest is zero. */

#include "tests/fuzz/driver.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/backend/weight_store.h"

enum { MOST = 4, HEADER = 4096, HEADER_SAID = 255, SEALED = 1, LOCKED = 2, TORN = 4 };

struct segment {
    uint8_t flags;
    size_t bytes; /* behind the header */
    size_t header_len;
    uint8_t header[HEADER_SAID];
};

static const struct weight_store_file file = {.key = "the key of files", .settled = true, .packing = 7};

static struct segment *segments; /* [MOST], shared with the other process */
static int to_other = -1, from_other = -1;

/* ---- the other process ---- */

static uint8_t content(size_t i)
{
    return (uint8_t)(i * 31 + 5);
}

static int show(const struct segment *segment)
{
    uint8_t body[256 * 16];
    const struct flock lock = {.l_type = F_WRLCK};
    int fd = memfd_create("quern-weights", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    for (size_t i = 0; i < segment->bytes; i++)
        body[i] = content(i);
    size_t size = segment->flags & TORN ? segment->header_len : HEADER + segment->bytes;
    if (fd < 0 || fchmod(fd, 0600) < 0 || pwrite(fd, body, segment->bytes, HEADER) < 0 ||
        pwrite(fd, segment->header, segment->header_len, 0) < 0 || ftruncate(fd, (off_t)size) < 0)
        _exit(1);
    if (segment->flags & LOCKED)
        fcntl(fd, F_OFD_SETLK, &lock);
    if (segment->flags & SEALED)
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
    return fd;
}

/* Shows how many segments it is told, until it is told again. */
static void be_the_other(int orders, int answers)
{
    int fds[MOST];
    uint8_t n = 0, wanted;
    while (read(orders, &wanted, 1) == 1) {
        while (n > 0)
            close(fds[--n]);
        while (n < wanted) {
            fds[n] = show(&segments[n]);
            n++;
        }
        if (write(answers, &n, 1) != 1)
            break;
    }
    _exit(0);
}

static void begin(void)
{
    int orders[2], answers[2];
    char name[16];
    snprintf(name, sizeof name, "fuzz-%d", (int)getpid()); /* a worker looks at those of its name */
    prctl(PR_SET_NAME, name);
    segments = mmap(NULL, MOST * sizeof *segments, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (segments == MAP_FAILED || pipe2(orders, O_CLOEXEC) < 0 || pipe2(answers, O_CLOEXEC) < 0)
        abort();
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int signal_number = 1; signal_number < SIGRTMIN; signal_number++)
            signal(signal_number, SIG_DFL);
        close(orders[1]);
        be_the_other(orders[0], answers[1]);
    }
    close(orders[0]);
    close(answers[1]);
    to_other = orders[1];
    from_other = answers[0];
}

static void order(uint8_t n)
{
    uint8_t shown;
    if (write(to_other, &n, 1) != 1 || read(from_other, &shown, 1) != 1 || shown != n)
        abort();
}

/* ---- the worker ---- */

static bool let_go(void *arg)
{
    (void)arg;
    order(0);
    return false;
}

/* Whether one of the sealed ones has these bytes in its header. */
static bool is_said(uint8_t n, const uint8_t digest[16])
{
    for (uint8_t i = 0; i < n; i++)
        if (segments[i].flags & SEALED && memmem(segments[i].header, segments[i].header_len, digest, 16))
            return true;
    return false;
}

static void find(struct weight_store *store, uint8_t n, uint64_t layout, size_t size)
{
    const uint8_t *found = weight_store_find(store, layout, size);
    bool any = false;
    if (!found != !weight_store_is_found(store))
        abort();
    for (uint8_t i = 0; i < n; i++)
        any |= segments[i].flags & SEALED && !(segments[i].flags & TORN) && segments[i].bytes == size;
    if (found && (!any || weight_store_bytes(store) != HEADER + size))
        abort();
    for (size_t i = 0; found && i < size; i++)
        if (found[i] != content(i))
            abort();
}

static void look(uint8_t n, size_t size)
{
    struct weight_store *store;
    struct error err = {{0}};
    uint8_t digest[16] = "the digest of it";
    if (weight_store_open(&file, &store, &err) < 0)
        return; /* not enough memory for a segment */
    if (weight_store_wait(store, let_go, NULL, &err) < 0)
        abort();
    const uint8_t *known = weight_store_digest(store);
    if (known && !is_said(n, known))
        abort();
    if (known)
        memcpy(digest, known, sizeof digest);
    if (known && !weight_store_sees_others(store))
        abort();
    weight_store_know(store, digest);
    find(store, n, 3, size);
    weight_store_free(store);
}

static uint8_t read_segments(const uint8_t *data, size_t len)
{
    uint8_t n = 0;
    for (size_t at = 0; len - at >= 3 && n < MOST; n++) {
        struct segment *segment = &segments[n];
        segment->flags = data[at];
        segment->bytes = data[at + 1] * 16u;
        segment->header_len = data[at + 2] < len - at - 3 ? data[at + 2] : len - at - 3;
        memcpy(segment->header, data + at + 3, segment->header_len);
        at += 3 + segment->header_len;
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (!segments)
        begin();
    uint8_t n = read_segments(data, len);
    if (n == 0)
        return 0;
    order(n);
    look(n, segments[0].bytes);
    return 0;
}
