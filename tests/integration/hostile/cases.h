/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_HOSTILE_CASES_H
#define TESTS_INTEGRATION_HOSTILE_CASES_H

/* Shared by the two hostile programs: the chosen cases, and checks of their results. */

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

/* Sanitizers use terabytes of address space, and keep freed memory on purpose. */
#ifdef __SANITIZE_ADDRESS__
enum { JUDGES_MEMORY = 0 };
#else
enum { JUDGES_MEMORY = 1 };
#endif

/* Names of cases from the command line. */
struct chosen_cases {
    const char *names[64];
    size_t n; /* 0: the program's default */
};

/* Adds a name; ends the program if it is not `known`. */
void cases_choose(struct chosen_cases *chosen, const char *name, bool known, struct argp_state *state);
bool cases_are_chosen(const struct chosen_cases *chosen, const char *name);

/* Returns `holds`; if false, prints what went wrong in the case. */
__attribute__((format(printf, 3, 4))) bool case_expect(const char *name, bool holds, const char *format, ...);

#endif
