/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PREPARE_THINKING_H
#define WORKER_PREPARE_THINKING_H

/* What a budget for thoughts needs to know about the model: the ids with which its chat template ends a
 * thought, whether a prompt ends inside a thought, and the template's variables for thinking. */

#include <stdbool.h>

#include "common/bytes.h"
#include "proto/message.h"
#include "text/dialect/dialect.h"
#include "text/tokenizer/tokenizer.h"
#include "worker/prepare/refusal.h"

struct thought_ends { /* both empty if the model's thoughts are unknown, or its tokenizer cannot write them */
    struct ids close; /* up to and including the mark that closes a thought */
    struct ids whole; /* up to the first word of the answer */
};

/* 0 or -ENOMEM; call deinit in either case. */
int thought_ends_init(struct thought_ends *ends, const struct tokenizer *tokenizer,
                      const struct dialect_thoughts *thoughts);
void thought_ends_deinit(struct thought_ends *ends);

/* Whether a budget can be enforced: if the model has no thoughts to end, only a budget of 0 can. False with
 * the reason. */
bool thinking_check(const struct thought_ends *ends, const struct dialect_thoughts *thoughts, uint32_t budget,
                    struct refusal *ret_refusal);

/* Whether a prompt of these ids ends inside a thought. A conversation does if it ends with the mark that
 * opens one; a text, ids, or a continued turn do if the last thought that they open is not closed. 0 or
 * -ENOMEM. */
int thinking_is_inside(const struct tokenizer *tokenizer, const struct dialect_thoughts *thoughts,
                       const struct prompt *prompt, struct ids_view ids, bool *ret_inside);

/* The prompt's template variables, with those that follow from its budget: the number, if the template takes
 * one, and for 0 the variable that switches thinking off; variables of the prompt take precedence. Either the
 * prompt's own text, or a new one in *ret_made, which the caller frees. False: no memory. */
bool thinking_variables(const struct dialect_thoughts *thoughts, const struct prompt *prompt,
                        struct bytes *ret_variables, char **ret_made);

#endif
