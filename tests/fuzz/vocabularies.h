/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_VOCABULARIES_H
#define TESTS_FUZZ_VOCABULARIES_H

/* Small tokenizers for fuzz entries; they end the program when they cannot be made. */

#include "text/tokenizer/tokenizer.h"

/* With a space put before texts, or with user-defined tokens: with both, texts do not come back as they were,
 * because the space also goes behind every such token. */
struct tokenizer *fuzz_spm_tokenizer(bool space_prefix);
struct tokenizer *fuzz_bpe_tokenizer(const char *pre);

#endif
