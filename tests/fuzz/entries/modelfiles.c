/* SPDX-License-Identifier: MIT */
/* Any name as that of a model, beside files of any names: what is found is what lies there of the parts that
 * the name speaks of, each once and in their order, or of the folder all that may be read; and that one is
 * gone is noticed.
 *
 * An input is a byte whose bits say whether the model is a folder (1) in which the others lie, and whether it
 * is there if not (2), then names, one a line, of which the first is the model's. Each file is a byte longer
 * than the one before. Names that cannot be, or were used, are passed over. */

#include "tests/fuzz/driver.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files/rundir.h"
#include "model/files.h"

enum { MOST_NAMES = 12, MOST_PARTS = 1024, NAME_SIZE = 256 };

static char folder[RUNDIR_PATH_MAX + 1];

struct names {
    char names[MOST_NAMES][NAME_SIZE];
    unsigned n;
};

static void end(void)
{
    rundir_remove(folder);
}

static void begin(void)
{
    if (rundir_temporary(folder, NULL) < 0)
        abort();
    atexit(end);
}

/* ---- the input ---- */

static bool is_good(const struct names *names, const char *name, size_t len)
{
    char text[NAME_SIZE] = "";
    if (len == 0 || len >= sizeof text || memchr(name, '/', len) || memchr(name, 0, len))
        return false;
    memcpy(text, name, len);
    for (unsigned i = 0; i < names->n; i++)
        if (strcmp(names->names[i], text) == 0)
            return false;
    return strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

static void read_names(const char *text, size_t len, struct names *names)
{
    for (const char *at = text, *text_end = text + len; at < text_end && names->n < MOST_NAMES;) {
        const char *newline = memchr(at, '\n', (size_t)(text_end - at));
        const size_t n = (size_t)((newline ? newline : text_end) - at);
        if (is_good(names, at, n)) {
            memcpy(names->names[names->n], at, n);
            names->names[names->n++][n] = 0;
        }
        at += n + 1;
    }
}

/* ---- what has to be found ---- */

/* How many parts the name speaks of, and the length of what stands before their number. */
static unsigned parts_of(const char *name, size_t *ret_stem)
{
    static const char shape[] = "-00001-of-#####.gguf";
    const size_t len = strlen(name), tail = sizeof shape - 1;
    unsigned n = 0;
    if (len < tail)
        return 1;
    for (size_t i = 0; i < tail; i++) {
        const char c = name[len - tail + i];
        if (shape[i] == '#' ? c < '0' || c > '9' : c != shape[i])
            return 1;
        n = shape[i] == '#' ? n * 10 + (unsigned)(c - '0') : n;
    }
    *ret_stem = len - tail;
    return n >= 1 && n <= MOST_PARTS ? n : 1;
}

/* The number of a part, from 1; 0: it is none. */
static unsigned part_number(const char *model, const char *name)
{
    size_t stem = 0;
    const unsigned n = parts_of(model, &stem);
    char part[NAME_SIZE + 32];
    if (strcmp(model, name) == 0)
        return 1;
    const unsigned number = n > 1 && strlen(name) > stem ? (unsigned)strtoul(name + stem + 1, NULL, 10) : 0;
    snprintf(part, sizeof part, "%.*s-%05u-of-%05u.gguf", (int)stem, model, number, n);
    return number >= 2 && number <= n && strcmp(part, name) == 0 ? number : 0;
}

static bool counts(const struct names *names, unsigned i, bool is_folder)
{
    return is_folder ? names->names[i][0] != '.' : part_number(names->names[0], names->names[i]) > 0;
}

static bool has_tensors(const char *name, bool is_folder)
{
    static const char ending[] = ".safetensors";
    const size_t len = strlen(name), tail = sizeof ending - 1;
    return !is_folder || (len >= tail && strcmp(name + len - tail, ending) == 0);
}

static void check(const struct model_files *files, const struct names *names, unsigned first, bool is_folder)
{
    uint64_t bytes = 0;
    size_t n = 0;
    for (unsigned i = first; i < names->n; i++) {
        n += counts(names, i, is_folder);
        if (counts(names, i, is_folder) && has_tensors(names->names[i], is_folder))
            bytes += i;
    }
    if (files->n != n || files->bytes != bytes)
        abort();
    for (size_t i = 0; i + 1 < n; i++) {
        const char *name = strrchr(files->paths[i], '/') + 1, *next = strrchr(files->paths[i + 1], '/') + 1;
        if (is_folder ? strcmp(name, next) >= 0
                      : part_number(names->names[0], name) >= part_number(names->names[0], next))
            abort();
    }
}

static const char *path_in(const char *place, const char *name)
{
    static char path[RUNDIR_PATH_MAX + 2 * NAME_SIZE];
    snprintf(path, sizeof path, "%s/%s", place, name);
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct names names;
    struct model_files files;
    struct error err;
    char model[RUNDIR_PATH_MAX + NAME_SIZE + 1];
    if (!folder[0])
        begin();
    names.n = 0;
    read_names((const char *)data + 1, len > 0 ? len - 1 : 0, &names);
    if (names.n == 0)
        return 0;
    const bool is_folder = data[0] & 1;
    const unsigned first = is_folder || (data[0] & 2) == 0; /* of the names that are files */
    snprintf(model, sizeof model, "%s/%s", folder, names.names[0]);
    const char *place = is_folder ? model : folder;
    if (is_folder && mkdir(model, 0700) < 0)
        abort();
    for (unsigned i = first; i < names.n; i++) {
        int fd = open(path_in(place, names.names[i]), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 || ftruncate(fd, i) < 0)
            abort();
        close(fd);
    }
    if (model_files_find(model, NULL, &files, &err) < 0 || model_files_changed(&files))
        abort();
    check(&files, &names, first, is_folder);
    if (files.n > 0 && (unlink(files.paths[files.n - 1]) < 0 || !model_files_changed(&files)))
        abort();
    model_files_deinit(&files);
    for (unsigned i = first; i < names.n; i++)
        unlink(path_in(place, names.names[i]));
    if (is_folder && rmdir(model) < 0)
        abort();
    return 0;
}
