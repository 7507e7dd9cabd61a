/* SPDX-License-Identifier: MIT */
#include "tests/integration/support/shell.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/integration/support/pool.h"

char dir[RUNDIR_PATH_MAX + 1];
char out[1 << 16], err[1 << 16];

void shell_open(void)
{
    environment_open(dir);
}

void shell_close(void)
{
    environment_close(dir);
}

static void read_file(const char *name, char *ret_text, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ret_text[fread(ret_text, 1, size - 1, file)] = 0;
    fclose(file);
    unlink(path);
}

int shell(const char *line)
{
    char command[8192];
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", build_path("quern"));
    *strrchr(folder, '/') = 0;
    setenv("Q", folder, 1);
    setenv("MODEL", tiny_model(), 1);
    snprintf(command, sizeof command, "exec 2>'%s/err' >'%s/out' </dev/null; %s", dir, dir, line);
    int status = system(command);
    read_file("out", out, sizeof out);
    read_file("err", err, sizeof err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
