/* SPDX-License-Identifier: MIT */
/* Names and times of files.
 *
 * What a name says is enough here: a part that is missing, or a file of a folder that belongs to nothing, is
 * one more name that may be read, and found out when the model is. A link stands for the file that it leads
 * to, as it does for who opens it: the caches of Hugging Face are made of links. */

#include "model/files.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/hash.h"
#include "model/huggingface/folder.h"

#define MOST_PARTS  1024 /* that gguf opens */
#define FIRST       "-00001-of-"
#define FIRST_BYTES (sizeof FIRST "00001.gguf" - 1)

/* A file that was touched within this time may be touched again without a later time to show for it: clocks
 * of file systems are coarse. */
#define SETTLED_S 2

static int add(struct model_files *files, const char *path, bool has_tensors)
{
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    char **paths = reallocarray(files->paths, files->n + 1, sizeof *paths);
    if (!paths)
        return -ENOMEM;
    files->paths = paths;
    paths[files->n] = strdup(path);
    if (!paths[files->n])
        return -ENOMEM;
    files->n++;
    files->bytes += has_tensors ? (uint64_t)st.st_size : 0;
    return 0;
}

/* ---- a file and its parts ---- */

/* As the name of the first says; 1 where it says nothing. */
static uint32_t count_parts(const char *path)
{
    char ending[48];
    const size_t len = strlen(path);
    if (len < FIRST_BYTES)
        return 1;
    const char *end = path + len - FIRST_BYTES;
    const unsigned long n = strtoul(end + strlen(FIRST), NULL, 10);
    snprintf(ending, sizeof ending, FIRST "%05lu.gguf", n);
    return n >= 1 && n <= MOST_PARTS && strcmp(end, ending) == 0 ? (uint32_t)n : 1;
}

static int add_parts(struct model_files *files, const char *path)
{
    const uint32_t n = count_parts(path);
    char part[PATH_MAX];
    int r = add(files, path, true);
    for (uint32_t no = 2; no <= n && r == 0; no++) {
        const int stem = (int)(strlen(path) - FIRST_BYTES);
        if (snprintf(part, sizeof part, "%.*s-%05u-of-%05u.gguf", stem, path, no, n) < (int)sizeof part)
            r = add(files, part, true);
    }
    return r;
}

/* ---- a folder ---- */

static bool ends_with(const char *text, const char *with)
{
    const size_t len = strlen(text), end = strlen(with);
    return len >= end && strcmp(text + len - end, with) == 0;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int add_folder(struct model_files *files, const char *path)
{
    char file[PATH_MAX];
    struct dirent *entry;
    int r = 0;
    DIR *dir = opendir(path);
    if (!dir)
        return 0;
    while (r == 0 && (entry = readdir(dir)))
        if (entry->d_name[0] != '.' &&
            snprintf(file, sizeof file, "%s/%s", path, entry->d_name) < (int)sizeof file)
            r = add(files, file, ends_with(file, ".safetensors"));
    closedir(dir);
    if (r == 0 && snprintf(file, sizeof file, "%s/" HUGGINGFACE_POOLING, path) < (int)sizeof file)
        r = add(files, file, false);
    if (files->n > 0) /* in an order of their own: whoever looks comes to the same key */
        qsort(files->paths, files->n, sizeof *files->paths, compare_paths);
    return r;
}

/* ---- keys ---- */

static struct hash128 read_times(const struct model_files *files, bool *ret_settled)
{
    struct hash128 key = {0};
    const time_t now = time(NULL);
    *ret_settled = true;
    for (size_t i = 0; i < files->n; i++) {
        struct stat st = {0}; /* stays so when the file is gone: another key */
        stat(files->paths[i], &st);
        const uint64_t link[] = {key.low,
                                 key.high,
                                 st.st_dev,
                                 st.st_ino,
                                 (uint64_t)st.st_size,
                                 (uint64_t)st.st_mtim.tv_sec,
                                 (uint64_t)st.st_mtim.tv_nsec,
                                 (uint64_t)st.st_ctim.tv_sec,
                                 (uint64_t)st.st_ctim.tv_nsec};
        key = hash128(link, sizeof link, 0);
        *ret_settled &= now - st.st_ctim.tv_sec > SETTLED_S;
    }
    key.low ^= files->variant;
    return key;
}

static uint64_t hash_text(const char *text)
{
    return text ? hash64(text, strlen(text), 0) : 0;
}

int model_files_find(const char *path, const char *variant, struct model_files *ret_files, struct error *err)
{
    const bool is_folder = huggingface_is_folder(path);
    *ret_files = (struct model_files){.variant = hash_text(variant)};
    if (is_folder) /* its head is ours: another version may write another one */
        ret_files->variant ^= hash_text(QUERN_VERSION);
    int r = is_folder ? add_folder(ret_files, path) : add_parts(ret_files, path);
    if (r < 0)
        return error_set(err, r, "%s: not enough memory for the names of its files", path);
    const struct hash128 key = read_times(ret_files, &ret_files->settled);
    memcpy(ret_files->key, &key, sizeof ret_files->key);
    return 0;
}

void model_files_deinit(struct model_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        free(files->paths[i]);
    free(files->paths);
    *files = (struct model_files){0};
}

bool model_files_changed(const struct model_files *files)
{
    bool settled;
    const struct hash128 key = read_times(files, &settled);
    return memcmp(files->key, &key, sizeof files->key) != 0;
}
