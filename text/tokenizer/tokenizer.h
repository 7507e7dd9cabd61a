/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_TOKENIZER_H
#define TEXT_TOKENIZER_TOKENIZER_H

/* Text ↔ token ids, from the vocabulary that a GGUF file carries (tokenizer.ggml.*).
 *
 * Two kinds: "llama" (SentencePiece-style: merges by score, byte fall-back, a space written as U+2581) and
 * "gpt2" (byte-level BPE behind a pre-tokenizer that tokenizer.ggml.pre names; without that key, or with
 * "default" there, it is GPT-2's). A kind or pre-tokenizer that is not known is refused at the start: tokens
 * that are almost right are worse than none. Where tokenizer.normalizer is "NFC" texts are brought into that
 * form between the special tokens; Quern's own key, for other writers of GGUF files leave it out and so do
 * their readers. Immutable after creation; threads share. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"
#include "gguf/gguf.h"

/* The file's own numbers. */
enum token_type {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_USER_DEFINED = 4,
    TOKEN_UNUSED = 5,
    TOKEN_BYTE = 6
};

enum tokenizer_flags {
    /* Add BOS and EOS, as the file says. */
    TOKENIZER_ADD_SPECIAL = 1,
    /* Parse control tokens in the text. */
    TOKENIZER_PARSE_SPECIAL = 2,
    /* With both: do not add a BOS or EOS that the text has in that place already. */
    TOKENIZER_ADD_ONCE = 4
};

#define TOKENIZER_NONE (-1) /* an id that the vocabulary does not have */

struct tokenizer;

/* Copies what it needs: the gguf may be freed afterwards. -EINVAL names the missing key or the unknown kind.
 */
int tokenizer_new(const struct gguf *gguf, struct tokenizer **ret_tokenizer, struct error *err);
struct tokenizer *tokenizer_free(struct tokenizer *tokenizer);

/* Appends the ids of `text` to `ret_ids`. The text is UTF-8: bytes that are not are -EILSEQ. `flags` of
 * tokenizer_flags. User-defined tokens are always matched whole; control tokens come about only by
 * TOKENIZER_PARSE_SPECIAL, whatever the text spells. Time is O(n log n) and memory O(n) for any text. 0,
 * -EILSEQ, -ENOMEM, -EMSGSIZE beyond TOKENIZER_MAX_TEXT bytes; on failure the list keeps its old length. */
#define TOKENIZER_MAX_TEXT ((size_t)1 << 28)
int tokenizer_encode(const struct tokenizer *tokenizer, struct bytes text, unsigned flags,
                     struct ids *ret_ids);

/* The same for a text of mixed origin: `from_user` has a byte for each byte of the text, and a control token
 * that touches a 1 there is not parsed. The rest is as if there were one origin: tokens may span it. */
int tokenizer_encode_mixed(const struct tokenizer *tokenizer, struct bytes text, const uint8_t *from_user,
                           unsigned flags, struct ids *ret_ids);

/* The bytes that an id adds to the output text: perhaps part of a UTF-8 sequence, nothing for control,
 * unknown and unused tokens, nor for ids outside the vocabulary. `first` strips the space that a
 * SentencePiece text begins with. The bytes live as long as the tokenizer. */
struct bytes tokenizer_piece(const struct tokenizer *tokenizer, int32_t id, bool first);

/* Appends the text of ids: tokenizer_piece of each, without the space that a SentencePiece text begins with;
 * with `names` control tokens are written out by theirs. Not more than `most` bytes are begun beyond. 0 or
 * -ENOMEM. */
int tokenizer_decode(const struct tokenizer *tokenizer, const int32_t *ids, size_t n, bool names, size_t most,
                     struct buffer *ret_text);

/* The vocabulary's own spelling of an id (control tokens included), for people. */
struct bytes tokenizer_name(const struct tokenizer *tokenizer, int32_t id);

/* Tokens that stand around the parts of a file whose middle is to be filled in, and between files. */
enum fim_token { FIM_PREFIX, FIM_SUFFIX, FIM_MIDDLE, FIM_PAD, FIM_REPOSITORY, FIM_FILE, FIM_TOKENS };

/* By the file's keys (tokenizer.ggml.fim_pre_token_id …), else by the names that known models have; or
 * TOKENIZER_NONE. A model fills in if it has the first three. */
int32_t tokenizer_fim(const struct tokenizer *tokenizer, enum fim_token token);

uint32_t tokenizer_size(const struct tokenizer *tokenizer); /* ids are 0 … size − 1 */
enum token_type tokenizer_type(const struct tokenizer *tokenizer, int32_t id);
int32_t tokenizer_bos(const struct tokenizer *tokenizer); /* or TOKENIZER_NONE */
int32_t tokenizer_eos(const struct tokenizer *tokenizer); /* or TOKENIZER_NONE */
bool tokenizer_adds_bos(const struct tokenizer *tokenizer);

/* Ids that end an answer: eos, eot, eom, and control tokens such as <|eot_id|> <|im_end|> <end_of_turn>
 * <|end|>. */
struct ids_view {
    const int32_t *items;
    size_t n;
};
struct ids_view tokenizer_end_ids(const struct tokenizer *tokenizer);

#endif
