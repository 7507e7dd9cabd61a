/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_VERBS_TOKENIZER_VERB_H
#define CLIENT_COMMAND_VERBS_TOKENIZER_VERB_H

/* The part that `quern tokenize` and `quern detokenize` share: loads a file's tokenizer and reads stdin. */

#include "common/bytes.h"
#include "common/error.h"
#include "text/tokenizer/tokenizer.h"

/* `ids` is empty; `input` is all of stdin and may be modified. 0, or a negative code with a reason. */
typedef int tokenizer_work(const struct tokenizer *tokenizer, struct buffer *input, struct ids *ids,
                           const void *arg, struct error *err);

/* Opens the metadata of the model at `path`, not its weights, reads stdin, which errors call `input`, and
 * calls `work`. Returns the result of `work`, or a negative code with a reason. */
int tokenizer_verb(const char *path, const char *input, tokenizer_work *work, const void *arg,
                   struct error *err);

#endif
