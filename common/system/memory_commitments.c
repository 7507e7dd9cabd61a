/* SPDX-License-Identifier: MIT */
/* Promises by the kernel's files: what a process has mapped privately to write to (VmData) less what it has
 * in memory (RssAnon) and less the stacks of its threads, of which nobody uses more than a little. */

#include "common/system/memory_commitments.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* The file's text up to `size` − 1 bytes, zero-terminated; "" when it cannot be read. */
static void read_text(const char *root, const char *pid, const char *name, char *ret_text, size_t size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/%s/%s", root, pid, name);
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(ret_text, 1, size - 1, file) : 0;
    if (file)
        fclose(file);
    ret_text[n] = 0;
}

/* A number of /proc/PID/status; 0 without it. */
static uint64_t field(const char *status, const char *key)
{
    const char *at = strstr(status, key);
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static uint64_t stack_bytes(void)
{
    struct rlimit limit;
    bool known = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return known ? limit.rlim_cur : 8u << 20;
}

static struct memory_commitment read_promise(const char *root, const char *pid, const char *status,
                                             uint64_t parent, uint64_t most)
{
    uint64_t threads = field(status, "\nThreads:"), stacks = threads > 1 ? (threads - 1) * stack_bytes() : 0;
    uint64_t mapped = field(status, "\nVmData:") * 1024, kept = field(status, "\nRssAnon:") * 1024;
    struct memory_commitment promise = {
        .open = mapped > kept + stacks && mapped <= most ? mapped - kept - stacks : 0,
        .kept = kept,
        .sibling = parent != 0 && field(status, "\nPPid:") == parent,
        .groups = "\n"};
    read_text(root, pid, "cgroup", promise.groups + 1, sizeof promise.groups - 1);
    return promise;
}

static int add(struct memory_commitments *commitments, const struct memory_commitment *promise)
{
    struct memory_commitment *all = reallocarray(commitments->all, commitments->n + 1, sizeof *all);
    if (!all)
        return -ENOMEM;
    commitments->all = all;
    all[commitments->n++] = *promise;
    return 0;
}

int memory_commitments_read(const char *root, uint64_t most, struct memory_commitments *ret_commitments)
{
    char path[PATH_MAX], own_name[64], name[64], own_status[4096], status[4096];
    struct memory_commitments commitments = {0};
    snprintf(path, sizeof path, "%s/proc", root);
    read_text(root, "self", "comm", own_name, sizeof own_name);
    read_text(root, "self", "status", own_status, sizeof own_status);
    uint64_t self = field(own_status, "\nPid:"), parent = field(own_status, "\nPPid:");
    DIR *proc = opendir(path);
    struct dirent *entry;
    int r = 0;
    while (r == 0 && proc && own_name[0] && (entry = readdir(proc))) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || strtoull(entry->d_name, NULL, 10) == self)
            continue;
        read_text(root, entry->d_name, "comm", name, sizeof name);
        if (strcmp(name, own_name) != 0)
            continue;
        read_text(root, entry->d_name, "status", status, sizeof status);
        struct memory_commitment promise = read_promise(root, entry->d_name, status, parent, most);
        r = add(&commitments, &promise);
    }
    if (proc)
        closedir(proc);
    if (r < 0) {
        memory_commitments_deinit(&commitments);
        return r;
    }
    *ret_commitments = commitments;
    return 0;
}

void memory_commitments_deinit(struct memory_commitments *commitments)
{
    free(commitments->all);
    *commitments = (struct memory_commitments){0};
}

/* Whether a line begins so, and the path goes no further than to a group below. */
static bool is_below(const char *groups, const char *line)
{
    size_t len = strlen(line);
    for (const char *at = groups; (at = strchr(at, '\n')); at++)
        if (strncmp(at + 1, line, len) == 0 && (len == 0 || strchr("/\n", at[1 + len])))
            return true;
    return false;
}

uint64_t memory_commitments_open(const struct memory_commitments *commitments, const char *line)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < commitments->n; i++)
        if (is_below(commitments->all[i].groups, line))
            bytes += commitments->all[i].open;
    return bytes;
}

uint64_t memory_commitments_of_siblings(const struct memory_commitments *commitments)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < commitments->n; i++)
        if (commitments->all[i].sibling)
            bytes += commitments->all[i].open + commitments->all[i].kept;
    return bytes;
}
