/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_VOCABULARY_H
#define TEXT_TOKENIZER_VOCABULARY_H

/* The tokens of a GGUF file: spellings, types and scores, copied and checked, and the id of a spelling.
 *
 * Private to the tokenizer's sources. Immutable after vocabulary_init. */

#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"
#include "gguf/gguf.h"

struct vocabulary {
    uint32_t size;
    char *text;       /* all spellings, concatenated */
    uint32_t *start;  /* [size + 1] offset of each in `text` */
    uint8_t *types;   /* [size] enum token_type */
    float *scores;    /* [size]; NULL if the file has none */
    uint32_t longest; /* bytes of the longest spelling */
    uint32_t *slots;  /* hash table, open addressing: id + 1, 0 = free */
    uint32_t slot_mask;
};

/* Copies and checks the vocabulary. -EINVAL with the key that is missing or wrong; -ENOMEM. Zeroed on
 * failure. */
int vocabulary_init(struct vocabulary *vocabulary, const struct gguf *gguf, struct error *err);
void vocabulary_deinit(struct vocabulary *vocabulary);

static inline struct bytes vocabulary_text(const struct vocabulary *vocabulary, uint32_t id)
{
    uint32_t start = vocabulary->start[id];
    return (struct bytes){vocabulary->text + start, vocabulary->start[id + 1] - start};
}

/* Returns the id with this spelling, the last one if there are several, or -1. */
int32_t vocabulary_find(const struct vocabulary *vocabulary, const void *text, size_t len);

#endif
