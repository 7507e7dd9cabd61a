/* SPDX-License-Identifier: MIT */
/* Digests, a file for each place. */

#include "worker/start/digest_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files/cache_folder.h"
#include "common/hash.h"

#define N_PLACES 1024u
#define VERSION  1u /* of this file, and of how digests are computed */

struct place {
    uint8_t key[16], digest[16];
    uint64_t sum; /* of the two */
    uint8_t padding[24];
};
_Static_assert(sizeof(struct place) == 64, "a line of a cache");

/* The folder of the places. In an earlier version it was one file for all of them. */
static bool find_folder(char ret_path[PATH_MAX])
{
    if (!cache_folder_find("digests", ret_path))
        return false;
    if (unlink(ret_path) == 0)
        mkdir(ret_path, 0700);
    return true;
}

int digest_file_open(const uint8_t key[16])
{
    char path[PATH_MAX], name[16];
    if (!find_folder(path))
        return -1;
    snprintf(name, sizeof name, "/%03x", (unsigned)(hash64(key, 16, 0) % N_PLACES));
    strcat(path, name);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd >= 0 && !cache_folder_is_ours(fd)) {
        close(fd);
        return -1;
    }
    return fd;
}

static uint64_t sum_of(const struct place *place)
{
    return hash64(place->key, sizeof place->key + sizeof place->digest, VERSION);
}

bool digest_file_find(int fd, const uint8_t key[16], uint8_t ret_digest[16])
{
    struct place place;
    if (fd < 0 || pread(fd, &place, sizeof place, 0) != sizeof place ||
        memcmp(place.key, key, sizeof place.key) != 0 || place.sum != sum_of(&place))
        return false;
    memcpy(ret_digest, place.digest, sizeof place.digest);
    return true;
}

int digest_file_keep(int fd, const uint8_t key[16], const uint8_t digest[16])
{
    struct place place = {0};
    if (fd < 0)
        return -EBADF;
    memcpy(place.key, key, sizeof place.key);
    memcpy(place.digest, digest, sizeof place.digest);
    place.sum = sum_of(&place);
    ssize_t n = pwrite(fd, &place, sizeof place, 0);
    return n == sizeof place ? 0 : n < 0 ? -errno : -ENOSPC;
}
