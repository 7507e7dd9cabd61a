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

/* ---- how SentencePiece's vocabularies spell text: spaces as U+2581, and bytes that nothing else spells by
 * tokens <0x00> … <0xFF> ---- */

#define SPELLING_SPACE "\xe2\x96\x81" /* U+2581 */

struct byte_tokens {
    int32_t ids[256]; /* -1: the vocabulary has no token for that byte */
    int32_t unknown;  /* or -1 */
};

/* Finds them. -EINVAL if a token of type byte is spelled otherwise, or if a byte has no token and there is
 * no unknown token (`unknown`; -1: none) either. */
int byte_tokens_init(struct byte_tokens *tokens, const struct vocabulary *vocabulary, int32_t unknown,
                     struct error *err);

/* Appends the tokens of `len` bytes, or the unknown token once if one of them has no token. 0 or -ENOMEM. */
int byte_tokens_push(const struct byte_tokens *tokens, const uint8_t *data, size_t len, struct ids *ret_ids);

/* Overwrites `out` with the text, spaces as U+2581, and one before it with `prefix`. 0 or -ENOMEM. */
int spelling_escape(struct buffer *out, struct bytes text, bool prefix);

/* Appends a spelling with U+2581 turned back into spaces. 0 or -ENOMEM. */
int spelling_unescape(struct buffer *out, struct bytes spelling);

/* Returns the byte that a token spelled <0x00> … <0xFF> encodes, or -1. */
int spelling_byte_of(struct bytes text);

#endif
