/* SPDX-License-Identifier: MIT */
/* Any bytes as the place of a digest in the cache on disk: a digest is found only in what digest_file_keep
 * writes for it, byte by byte, and what is kept there afterwards is found. */

#include "tests/fuzz/driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "worker/start/digest_file.h"

enum { PLACE = 64, MEANT = 40 /* of these the rest is padding */ };

static const uint8_t key[16] = "the key of files";

static void check_found(const uint8_t *data, size_t len, const uint8_t digest[16])
{
    static int fresh = -1;
    uint8_t place[PLACE];
    if (fresh < 0 && (fresh = memfd_create("fuzz-digest", 0)) < 0)
        abort();
    if (digest_file_keep(fresh, key, digest) < 0 || pread(fresh, place, PLACE, 0) != PLACE || len < PLACE ||
        memcmp(place, data, MEANT) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static int fd = -1;
    static const uint8_t untouched[16], other[16] = "another digest..";
    uint8_t digest[16] = {0};
    if (fd < 0 && (fd = memfd_create("fuzz-digest", 0)) < 0)
        return 0;
    if (ftruncate(fd, 0) < 0 || pwrite(fd, data, len, 0) != (ssize_t)len)
        abort();
    if (digest_file_find(fd, key, digest))
        check_found(data, len, digest);
    else if (memcmp(digest, untouched, sizeof digest) != 0)
        abort();
    if (digest_file_keep(fd, key, other) < 0 || !digest_file_find(fd, key, digest) ||
        memcmp(digest, other, sizeof digest) != 0 || digest_file_find(fd, other, digest))
        abort();
    return 0;
}
