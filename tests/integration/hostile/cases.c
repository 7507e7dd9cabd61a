/* SPDX-License-Identifier: MIT */
/* See cases.h. */

#include "tests/integration/hostile/cases.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void cases_choose(struct chosen_cases *chosen, const char *name, bool known, struct argp_state *state)
{
    if (!known)
        argp_error(state, "unknown case \"%s\"", name);
    if (chosen->n == sizeof chosen->names / sizeof *chosen->names)
        argp_error(state, "too many cases");
    chosen->names[chosen->n++] = name;
}

bool cases_are_chosen(const struct chosen_cases *chosen, const char *name)
{
    for (size_t i = 0; i < chosen->n; i++)
        if (strcmp(chosen->names[i], name) == 0)
            return true;
    return false;
}

bool case_expect(const char *name, bool holds, const char *format, ...)
{
    va_list args;
    if (holds)
        return true;
    fprintf(stderr, "%s: ", name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return false;
}
