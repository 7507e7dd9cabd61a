/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_MACHINE_PROGRAM_RECURSION_H
#define TEXT_GRAMMAR_MACHINE_PROGRAM_RECURSION_H

#include "text/grammar/machine/program.h"

/* Rejects rules that begin with themselves. `entries`: [rules->n] first nodes, PROGRAM_NONE for inlined
 * rules; each belongs to one rule. 0, GRAMMAR_E_INVALID, -ENOMEM. */
int program_check_recursion(const struct program *program, const struct rules *rules, const uint32_t *entries,
                            struct error *err);

#endif
