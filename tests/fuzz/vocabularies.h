/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_VOCABULARIES_H
#define TESTS_FUZZ_VOCABULARIES_H

/* Small tokenizers for fuzz entries. The program ends if one cannot be made. */

#include "text/tokenizer/tokenizer.h"

/* With a space added before texts, or else with user-defined tokens. With both, texts would not be restored
 * exactly, because the space is also added after every such token. */
struct tokenizer *fuzz_spm_tokenizer(bool space_prefix);
struct tokenizer *fuzz_bpe_tokenizer(const char *pre);

#endif
