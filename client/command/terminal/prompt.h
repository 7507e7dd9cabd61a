/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TERMINAL_PROMPT_H
#define CLIENT_COMMAND_TERMINAL_PROMPT_H

/* The prompt of `quern run`: its arguments, with the text on stdin added if stdin belongs to the command. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"

#define PROMPT_MAX_BYTES (32u << 20) /* the pool reports its limit; no pool accepts more */

/* How long stdin may stay silent, without a byte or its end, if the command line does not name it. */
struct prompt_patience {
    uint32_t notice_ms; /* then a line on stderr says what the command waits for */
    uint32_t error_ms;  /* then it is an error */
};
#define PROMPT_PATIENCE ((struct prompt_patience){2000, 60000})

/* Makes the zero-terminated prompt from up to two words; "-" stands for stdin up to its end, however long
 * that takes. The parts are separated by a newline.
 *
 * No word: stdin, unless it is a terminal. One word that is not "-": that, and the text on stdin if stdin
 * was given to this command alone. A terminal, a closed stdin, a partly read file, and a pipe or socket that
 * is also the parent's stdin are ignored: the text may be for another process (`while read line; do quern
 * run "$line"; done <list`). If ignored input is not at its end, a line on stderr says so.
 *
 * -errno with a reason; -EINVAL for a prompt that is empty or not text. */
int prompt_read(const char *const *words, size_t n_words, struct prompt_patience patience,
                struct buffer *ret_prompt, struct error *err);

/* Whether a word names a model file, and so is probably not meant as a prompt: it ends in .gguf, or it is the
 * path of a file that begins like a GGUF file. */
bool prompt_names_model(const char *word);

#endif
