/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_digest: places as they are kept, of its key and of another. */

#include "tests/fuzz/driver.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "worker/start/digest_file.h"

void fuzz_seeds(void)
{
    static const uint8_t keys[2][16] = {"the key of files", "the key of other"};
    uint8_t place[80] = {0};
    int fd = memfd_create("seeds", 0);
    for (int i = 0; i < 2; i++) {
        if (digest_file_keep(fd, keys[i], keys[1 - i]) < 0 || pread(fd, place, 64, 0) != 64)
            abort();
        fuzz_add_seed(place, 64);
        fuzz_add_seed(place, sizeof place);
    }
    close(fd);
}
