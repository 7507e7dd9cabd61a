/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_MACHINE_PROGRAM_CHARS_H
#define TEXT_GRAMMAR_MACHINE_PROGRAM_CHARS_H

#include "text/grammar/machine/program_nodes.h"

/* Takes one code point of the ranges, and continues at `next`. */
uint32_t program_chars(struct program_maker *maker, const struct code_range *ranges, uint32_t n,
                       uint32_t next);

#endif
