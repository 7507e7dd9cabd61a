/* SPDX-License-Identifier: MIT */
/* What quern bench prefix prints: a line for a person, or an object of JSON. */

#include "client/command/bench/prefix.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

void prefix_print(const struct prefix_options *options, const char *name, const char *what, double value,
                  double goal, bool at_least)
{
    bool reached = at_least ? value >= goal : value <= goal;
    if (!options->json) {
        printf("%-8s  %-58s  %s %.2f  %8.3f%s\n", name, what, at_least ? ">=" : "<=", goal, value,
               reached ? "" : "  missed");
        fflush(stdout);
        return;
    }
    json_t *json = json_pack("{s:s, s:s, s:s, s:f, s:s, s:f, s:b}", "bench", "prefix", "situation", name,
                             "value_of", what, "value", value, "bound", at_least ? "least" : "most", "goal",
                             goal, "reached", reached);
    json_dumpf(json, stdout, JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(json);
}

void prefix_print_beside(const struct prefix_options *options, const char *name, const char *what,
                         double value)
{
    if (options->json) {
        json_t *json = json_pack("{s:s, s:s, s:s, s:o}", "bench", "prefix", "situation", name, "value_of",
                                 what, "value", isnan(value) ? json_null() : json_real(value));
        json_dumpf(json, stdout, JSON_REAL_PRECISION(6));
        putchar('\n');
        json_decref(json);
    } else if (isnan(value)) {
        printf("%-8s  %-58s            not run\n", name, what);
    } else {
        printf("%-8s  %-58s           %8.3f\n", name, what, value);
    }
    fflush(stdout);
}
