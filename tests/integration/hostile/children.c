/* SPDX-License-Identifier: MIT */
#include "tests/integration/hostile/children.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"

pid_t fork_child(void)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

bool end_children(const pid_t *pids, size_t n, uint64_t patience_s)
{
    bool ended = true;
    uint64_t until = clock_ns() + patience_s * CLOCK_NS_PER_S;
    for (size_t i = 0; i < n; i++) {
        int status;
        while (waitpid(pids[i], &status, WNOHANG) == 0) {
            if (clock_ns() > until) {
                ended = false;
                kill(pids[i], SIGKILL);
            }
            usleep(5000);
        }
    }
    return ended;
}

void *shared_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return memory;
}

long status_kib(pid_t pid, const char *key)
{
    char path[64], line[256];
    long value = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            value = atol(line + strlen(key) + 1);
    if (file)
        fclose(file);
    return value;
}

void raise_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}
