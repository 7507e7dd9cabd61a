/* SPDX-License-Identifier: MIT */
/* GGUF files: opening, mapping and joining parts.
 *
 * A struct gguf owns its mappings (one a part) and its tables; everything else points into the mappings. A
 * model in parts has the metadata of the first part and the tensors of all. Each part is parsed alone and
 * checked against the first before its tensors are added. Immutable once opened; threads share it. */

#include "gguf/gguf_internal.h"
#include "gguf/gguf_values.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/utf8.h"
#include "gguf/truncation.h"

/* Far above any published model; bounds descriptors and mappings. */
#define MAX_PARTS 1024

static void drop_map(struct gguf_map *map)
{
    if (map->memory) {
        truncation_forget(map->memory);
        munmap(map->memory, map->size);
    }
    free(map->path);
}

static void drop_maker(struct gguf *gguf)
{
    if (gguf->maker)
        gguf->maker->free(gguf->maker->arg);
    free(gguf->maker);
    gguf->maker = NULL;
    for (size_t i = 0; i < gguf->n_tensors; i++)
        gguf->tensors[i].maker = NULL;
}

struct gguf *gguf_free(struct gguf *gguf)
{
    if (!gguf)
        return NULL;
    drop_maker(gguf);
    for (size_t i = 0; i < gguf->n_maps; i++)
        drop_map(&gguf->maps[i]);
    free(gguf->maps);
    gguf_drop_index(gguf);
    free(gguf->pairs);
    free(gguf->tensors);
    free(gguf);
    return NULL;
}

static int map_file(const char *path, const char *kind, struct gguf_map *ret_map, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, -errno, "%s", strerror(errno));
    struct stat st = {0};
    int r = fstat(fd, &st) < 0 ? -errno : 0;
    if (r == 0 && S_ISDIR(st.st_mode))
        r = -EISDIR;
    else if (r == 0 && !S_ISREG(st.st_mode))
        r = -ENODEV;
    if (r == 0 && st.st_size == 0) {
        close(fd);
        return error_set(err, -EINVAL, "not a %s file (it is empty)", kind);
    }
    struct gguf_map map = {.size = (size_t)st.st_size,
                           .device = st.st_dev,
                           .inode = st.st_ino,
                           .modified = st.st_mtim,
                           .changed = st.st_ctim};
    if (r == 0) {
        map.memory = mmap(NULL, map.size, PROT_READ, MAP_SHARED, fd, 0);
        r = map.memory == MAP_FAILED ? -errno : 0;
        map.memory = r == 0 ? map.memory : NULL;
    }
    close(fd);
    if (r == 0) {
        map.path = strdup(path);
        r = map.path ? truncation_watch(map.memory, map.size, path) : -ENOMEM;
    }
    if (r < 0) {
        drop_map(&map);
        return error_set(err, r, "%s", strerror(-r));
    }
    *ret_map = map;
    return 0;
}

int gguf_map_file(struct gguf *gguf, const char *path, const char *kind, struct bytes *ret_bytes,
                  struct error *err)
{
    struct gguf_map *maps = reallocarray(gguf->maps, gguf->n_maps + 1, sizeof *maps);
    if (!maps)
        return -ENOMEM;
    gguf->maps = maps;
    int r = map_file(path, kind, &maps[gguf->n_maps], err);
    if (r < 0)
        return r;
    *ret_bytes = (struct bytes){maps[gguf->n_maps].memory, maps[gguf->n_maps].size};
    gguf->n_maps++;
    return 0;
}

/* Maps and parses one file; the result has no indexes yet. */
static int open_part(const char *path, struct gguf **ret_part, struct error *err)
{
    struct gguf *part = calloc(1, sizeof *part);
    if (!part)
        return -ENOMEM;
    struct bytes file;
    int r = gguf_map_file(part, path, "GGUF", &file, err);
    if (r == 0)
        r = gguf_parse_file(file, part, err);
    if (r < 0) {
        gguf_free(part);
        return r;
    }
    *ret_part = part;
    return 0;
}

/* Appends the tensors and mappings of `other` and frees it, whatever comes. */
static int consume_part(struct gguf *gguf, struct gguf *other)
{
    int r = -ENOMEM;
    struct gguf_tensor *tensors =
        reallocarray(gguf->tensors, gguf->n_tensors + other->n_tensors + 1, sizeof *tensors);
    if (!tensors)
        goto out;
    gguf->tensors = tensors;
    struct gguf_map *maps = reallocarray(gguf->maps, gguf->n_maps + other->n_maps, sizeof *maps);
    if (!maps)
        goto out;
    gguf->maps = maps;
    memcpy(tensors + gguf->n_tensors, other->tensors, other->n_tensors * sizeof *tensors);
    memcpy(maps + gguf->n_maps, other->maps, other->n_maps * sizeof *maps);
    gguf->n_tensors += other->n_tensors;
    gguf->n_maps += other->n_maps;
    other->n_maps = 0;
    r = 0;
out:
    gguf_free(other);
    return r;
}

/* Reads split.no and split.count; a file without them is part 0 of 1. The part has its indexes. */
static int read_split(const struct gguf *part, uint32_t *ret_no, uint32_t *ret_count, struct error *err)
{
    uint32_t no = 0, count = 1;
    int r = gguf_u32(part, "split.count", &count, err);
    if (r >= 0)
        r = gguf_u32(part, "split.no", &no, err);
    if (r < 0)
        return r;
    if (count == 0) /* some writers mark a whole file so */
        count = 1;
    if (count > MAX_PARTS || no >= count)
        return error_set(err, -EINVAL, "split.no %" PRIu32 " of split.count %" PRIu32 " is invalid", no,
                         count);
    *ret_no = no;
    *ret_count = count;
    return 0;
}

static int open_other_part(const char *path, uint32_t no, uint32_t count, struct gguf **ret_part,
                           struct error *err)
{
    struct gguf *part;
    uint32_t its_no, its_count;
    int r = open_part(path, &part, err);
    if (r < 0)
        return error_prefix(err, r, "part %" PRIu32 " of %" PRIu32 ", %s", no + 1, count, path);
    r = gguf_index(part, err);
    if (r == 0)
        r = read_split(part, &its_no, &its_count, err);
    if (r == 0 && (its_no != no || its_count != count))
        r = error_set(err, -EINVAL,
                      "it is part %" PRIu32 " of %" PRIu32 "; expected part %" PRIu32 " of %" PRIu32,
                      its_no + 1, its_count, no + 1, count);
    if (r < 0) {
        gguf_free(part);
        return error_prefix(err, r, "%s", path);
    }
    *ret_part = part;
    return 0;
}

/* Opens parts 2 … count beside the first, whose path ends in -00001-of-0000N.gguf. */
static int open_other_parts(const char *path, uint32_t count, struct gguf *gguf, struct error *err)
{
    char ending[32];
    snprintf(ending, sizeof ending, "-00001-of-%05" PRIu32 ".gguf", count);
    size_t stem = strlen(path), len = strlen(ending);
    if (stem < len || strcmp(path + stem - len, ending) != 0)
        return error_set(err, -EINVAL, "%s: the first of %" PRIu32 " parts, so its name must end in %s", path,
                         count, ending);
    stem -= len;
    char *other = malloc(stem + sizeof ending);
    if (!other)
        return -ENOMEM;
    memcpy(other, path, stem);
    int r = 0;
    for (uint32_t no = 1; no < count && r == 0; no++) {
        struct gguf *part = NULL;
        snprintf(other + stem, sizeof ending, "-%05" PRIu32 "-of-%05" PRIu32 ".gguf", no + 1, count);
        r = open_other_part(other, no, count, &part, err);
        if (r == 0)
            r = consume_part(gguf, part);
    }
    free(other);
    uint32_t announced;
    if (r == 0)
        r = gguf_u32(gguf, "split.tensors.count", &announced, err);
    if (r == 0 && announced != gguf->n_tensors)
        return error_set(err, -EINVAL, "%s: the parts hold %zu tensors, but split.tensors.count is %" PRIu32,
                         path, gguf->n_tensors, announced);
    return r == GGUF_E_MISSING ? 0 : r;
}

int gguf_open(const char *path, struct gguf **ret_gguf, struct error *err)
{
    struct gguf *gguf;
    uint32_t no, count;
    int r = open_part(path, &gguf, err);
    if (r < 0)
        return error_prefix(err, r, "%s", path);
    r = gguf_index(gguf, err);
    if (r == 0)
        r = read_split(gguf, &no, &count, err);
    if (r == 0 && no != 0)
        r = error_set(err, -EINVAL, "part %" PRIu32 " of %" PRIu32 ": open the first part", no + 1, count);
    if (r < 0) {
        error_prefix(err, r, "%s", path);
    } else if (count > 1) {
        r = open_other_parts(path, count, gguf, err);
        if (r == 0)
            r = gguf_index(gguf, err);
    }
    if (r < 0) {
        gguf_free(gguf);
        return r;
    }
    *ret_gguf = gguf;
    return 0;
}

int gguf_check_output(const struct gguf *gguf, const char *path, struct error *err)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return 0; /* whatever is wrong with it, it is no file of ours */
    for (size_t i = 0; i < gguf->n_maps; i++)
        if (gguf->maps[i].kind == GGUF_MAP_FILE && gguf->maps[i].device == st.st_dev &&
            gguf->maps[i].inode == st.st_ino)
            return error_set(err, -EEXIST, "%s: input and output are the same file", path);
    return 0;
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

int gguf_check_unchanged(const struct gguf *gguf, struct error *err)
{
    for (size_t i = 0; i < gguf->n_maps; i++) {
        const struct gguf_map *map = &gguf->maps[i];
        struct stat st;
        if (map->kind != GGUF_MAP_FILE || stat(map->path, &st) < 0 || st.st_dev != map->device ||
            st.st_ino != map->inode)
            continue; /* it was moved, removed or replaced: what is mapped stays */
        if ((size_t)st.st_size != map->size)
            return error_set(err, -ESTALE, "%s changed size while being read, from %zu to %zu bytes",
                             map->path, map->size, (size_t)st.st_size);
        if (!is_same_time(&st.st_mtim, &map->modified))
            return error_set(err, -ESTALE, "%s was written to while being read", map->path);
        if (!is_same_time(&st.st_ctim, &map->changed)) /* written to, perhaps, and its time set back */
            return error_set(err, -ESTALE, "%s was changed while being read", map->path);
    }
    return 0;
}

int gguf_parse(const void *data, size_t len, struct gguf **ret_gguf, struct error *err)
{
    struct gguf *gguf = calloc(1, sizeof *gguf);
    if (!gguf)
        return -ENOMEM;
    gguf->borrowed = (struct bytes){data, len};
    int r = gguf_parse_file(gguf->borrowed, gguf, err);
    if (r == 0)
        r = gguf_index(gguf, err);
    if (r < 0) {
        gguf_free(gguf);
        return r;
    }
    *ret_gguf = gguf;
    return 0;
}

/* ---- memory ---- */

void gguf_give_back(const struct gguf *gguf, const void *data, size_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)data, end = start + size;
    for (size_t i = 0; i < gguf->n_maps; i++) {
        uintptr_t map = (uintptr_t)gguf->maps[i].memory;
        if (start < map || end > map + gguf->maps[i].size)
            continue;
        const enum gguf_map_kind kind = gguf->maps[i].kind;
        if (kind != GGUF_MAP_FILE && kind != GGUF_MAP_MADE)
            return; /* it would be gone */
        start = (start + page - 1) / page * page;
        end = end / page * page;
        if (start < end)
            madvise((void *)start, end - start, MADV_DONTNEED); /* refused, it only costs memory */
        return;
    }
}

void gguf_let_go(struct gguf *gguf)
{
    drop_maker(gguf);
    for (size_t i = 0; i < gguf->n_maps; i++) {
        struct gguf_map *map = &gguf->maps[i];
        truncation_forget(map->memory);
        mmap(map->memory, map->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0);
    }
}
