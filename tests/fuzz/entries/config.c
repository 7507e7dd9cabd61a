/* SPDX-License-Identifier: MIT */
/* Any bytes as the file of --config: it is refused with a reason on one line, or what it says can be said on
 * a command line too, which then means the same. */

#include "tests/fuzz/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "broker/settings/options.h"

/* The words that stand for what the command line means; false: it means nothing. */
static bool said_by(int argc, char **argv, struct command_line *ret_line)
{
    static struct options options;
    struct error err = {{0}};
    memset(&options, 0x55, sizeof options);
    if (options_parse(argc, argv, &options, &err) < 0) {
        if (!err.text[0] || strchr(err.text, '\n') || options.workers != 0x55555555)
            abort();
        return false;
    }
    command_line_add(ret_line, "quern-broker");
    options_write(&options, ret_line);
    if (!command_line_words(ret_line))
        abort();
    return true;
}

static void compare(const struct command_line *a, const struct command_line *b)
{
    if (a->n != b->n)
        abort();
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->words[i], b->words[i]) != 0)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static int fd = -1;
    static char path[64];
    char program[] = "quern-broker", model[] = "m";
    char *argv[] = {program, path, model, NULL};
    struct command_line once = {0}, twice = {0};
    if (fd < 0 && (fd = memfd_create("fuzz-config", 0)) < 0)
        return 0;
    snprintf(path, sizeof path, "--config=/proc/self/fd/%d", fd);
    if (ftruncate(fd, 0) < 0 || pwrite(fd, data, len, 0) != (ssize_t)len)
        abort();
    if (said_by(3, argv, &once)) {
        if (!said_by((int)once.n, once.words, &twice))
            abort();
        compare(&once, &twice);
    }
    command_line_deinit(&once);
    command_line_deinit(&twice);
    return 0;
}
