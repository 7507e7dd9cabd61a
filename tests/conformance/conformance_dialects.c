/* SPDX-License-Identifier: MIT */
/* Public chat templates: the dialect of each, and what it is good for.
 *
 * The folder has NAME.jinja. Of each template the dialect is derived, and tried:
 *   parse   calls that the template writes, texts with quotes, lines and other alphabets among their
 * arguments, come back from what it wrote, byte by byte, and with the text before them; force   random walks
 * through the grammar of forced calls end in calls that fit the tools' schemas; text    text that only
 * resembles calls stays text, byte for byte. A template that knows no tools has no calls to try. One line per
 * template: what was found, or why nothing was. Exit status 1 if a check fails, or fewer than LEAST templates
 * are understood. With --show FILE…, prints the dialects of these files instead. */

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/dialect_checks.h"
#include "tests/conformance/reference.h"

#define LEAST 66

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The templates of a folder, sorted. */
static size_t list_templates(const char *folder, char *names[static 512])
{
    DIR *dir = opendir(folder);
    size_t n = 0;
    for (struct dirent *entry; dir && n < 512 && (entry = readdir(dir));) {
        const size_t len = strlen(entry->d_name);
        if (len > 6 && strcmp(entry->d_name + len - 6, ".jinja") == 0)
            names[n++] = strdup(entry->d_name);
    }
    if (dir)
        closedir(dir);
    qsort(names, n, sizeof *names, by_name);
    return n;
}

static int show(int n, char **paths)
{
    for (int i = 0; i < n; i++) {
        struct dialect_case test;
        if (!dialect_case_open(&test, paths[i]))
            return 1;
        json_t *json = dialect_write(&test.dialect);
        printf("%s\n", paths[i]);
        json_dumpf(json, stdout, JSON_INDENT(2));
        printf("\n");
        json_decref(json);
        dialect_case_close(&test);
    }
    return 0;
}

int main(int argc, char **argv)
{
    char *names[512], path[4400];
    size_t understood = 0, failed = 0;
    if (argc > 2 && strcmp(argv[1], "--show") == 0)
        return show(argc - 2, argv + 2);
    const char *folder = reference_folder(argc, argv, "templates");
    const size_t n = list_templates(folder, names);
    for (size_t i = 0; i < n; i++) {
        struct dialect_case test;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (!dialect_case_open(&test, path)) {
            failed++;
        } else {
            const bool knows = dialect_case_understood(&test);
            const bool passed = check_thought_end(&test) &&
                                (!test.dialect.calls.known ||
                                 (check_parsing(&test) && check_forced_calls(&test) && check_text(&test)));
            printf("%-52s %s%s%s; thoughts: %s\n", names[i], passed ? "" : "FAILED ",
                   test.dialect.calls.known ? "calls" : "no calls: ",
                   test.dialect.calls.known ? "" : test.dialect.calls.reason,
                   test.dialect.thoughts.known ? test.dialect.thoughts.close : "none");
            understood += knows && passed;
            failed += !passed;
        }
        dialect_case_close(&test);
        free(names[i]);
    }
    printf("%zu of %zu templates understood; %zu failed\n", understood, n, failed);
    return n == 0 || failed > 0 || (n >= 70 && understood < LEAST);
}
