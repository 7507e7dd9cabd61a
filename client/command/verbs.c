/* SPDX-License-Identifier: MIT */
/* Tables of verbs: the list that --help prints, and the way from a word to its verb. */

#include "client/command/verbs.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/program/program.h"

#define MAX_WORD     32 /* of a name that may have been meant */
#define MAX_MISTYPED 2

int verb_fail(int code, const struct error *err)
{
    program_error("%s", err->text[0] ? err->text : strerror(-code));
    return EXIT_FAILURE;
}

static void print_list(const struct verb_table *table, FILE *out)
{
    fprintf(out, "Usage: %s %s [ARGUMENT...]\n\n", table->program, table->placeholder);
    for (const struct verb *verb = table->verbs; verb->name; verb++)
        fprintf(out, "  %-11s %s\n", verb->name, verb->summary);
    fprintf(out, "\nSee `%s %s --help' for more.\n", table->program, table->placeholder);
}

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    unsigned ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* How many letters must be typed, deleted, changed or swapped with their neighbour to make one word of the
 * other. */
static unsigned mistyped(const char *a, const char *b)
{
    size_t m = strlen(a), n = strlen(b);
    unsigned d[MAX_WORD + 1][MAX_WORD + 1];
    if (m > MAX_WORD || n > MAX_WORD)
        return MAX_WORD;
    for (unsigned i = 0; i <= m; i++)
        d[i][0] = i;
    for (unsigned j = 0; j <= n; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= m; i++)
        for (size_t j = 1; j <= n; j++) {
            d[i][j] = least(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && d[i - 2][j - 2] + 1 < d[i][j])
                d[i][j] = d[i - 2][j - 2] + 1;
        }
    return d[m][n];
}

/* The verb that was probably meant: one that begins so, or the one that is nearest; or NULL. */
static const struct verb *nearest(const struct verb_table *table, const char *word)
{
    const struct verb *best = NULL;
    unsigned fewest = MAX_MISTYPED + 1;
    for (const struct verb *verb = table->verbs; verb->name; verb++) {
        bool begins_so = word[0] && strncmp(verb->name, word, strlen(word)) == 0;
        unsigned n = begins_so ? 0 : mistyped(word, verb->name);
        if (n < fewest && 2 * n <= strlen(word)) {
            fewest = n;
            best = verb;
        }
    }
    return best;
}

static int refuse(const struct verb_table *table, const char *word)
{
    const struct verb *meant = nearest(table, word);
    if (word[0] == '-')
        fprintf(stderr, "%s: unrecognized option '%s'", table->program, word);
    else
        fprintf(stderr, "%s: unknown %s \"%s\"", table->program, table->noun, word);
    if (meant)
        fprintf(stderr, "; did you mean \"%s\"?", meant->name);
    fprintf(stderr, "\nTry `%s --help' for more information.\n", table->program);
    return PROGRAM_EXIT_USAGE;
}

int verb_dispatch(const struct verb_table *table, int argc, char **argv)
{
    if (argc < 2) {
        print_list(table, stderr);
        return PROGRAM_EXIT_USAGE;
    }
    bool help = strcmp(argv[1], "help") == 0;
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "-?") == 0 ||
        (help && (argc == 2 || strcmp(argv[2], "help") == 0))) {
        print_list(table, stdout);
        return EXIT_SUCCESS;
    }
    if (help) { /* help NAME …: NAME … --help */
        memmove(argv + 1, argv + 2, (size_t)(argc - 2) * sizeof *argv);
        argv[argc - 1] = (char *)"--help";
    }
    for (const struct verb *verb = table->verbs; verb->name; verb++) {
        if (strcmp(argv[1], verb->name) != 0)
            continue;
        char name[64];
        snprintf(name, sizeof name, "%s %s", table->program, verb->name);
        argv[1] = name;
        return verb->main(argc - 1, argv + 1);
    }
    return refuse(table, argv[1]);
}
