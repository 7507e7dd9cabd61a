/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_TOKENIZER_H
#define TEXT_TOKENIZER_TOKENIZER_H

/* Text ↔ token ids, from the vocabulary that a GGUF file carries (tokenizer.ggml.*).
 *
 * There are three kinds: "llama" (SentencePiece: merges by score, byte fallback, spaces written as U+2581),
 * "gpt2" (byte-level BPE; tokenizer.ggml.pre names the pre-tokenizer, GPT-2's if it is missing or "default")
 * and "gemma4" (BPE over characters, with the spaces and bytes of "llama"; BOS is always added). Unknown
 * kinds and pre-tokenizers are rejected when the file is opened, because almost correct tokens are worse than
 * none. If tokenizer.normalizer is "NFC", text between special tokens is normalized to that form. Only Quern
 * reads and writes that key. Immutable after creation, so threads may share it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"
#include "gguf/gguf.h"

/* As numbered in GGUF files. */
enum token_type {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_USER_DEFINED = 4,
    TOKEN_UNUSED = 5,
    TOKEN_BYTE = 6
};

enum tokenizer_flags {
    /* Add BOS and EOS if the file asks for them. */
    TOKENIZER_ADD_SPECIAL = 1,
    /* Parse control tokens in the text. */
    TOKENIZER_PARSE_SPECIAL = 2,
    /* With both: add no BOS or EOS where the text already has one. */
    TOKENIZER_ADD_ONCE = 4
};

#define TOKENIZER_NONE (-1) /* no such id */

struct tokenizer;

/* Copies what it needs; the gguf may be freed afterwards. -EINVAL with the missing key or the unknown kind.
 */
int tokenizer_new(const struct gguf *gguf, struct tokenizer **ret_tokenizer, struct error *err);
struct tokenizer *tokenizer_free(struct tokenizer *tokenizer);

/* Appends the ids of `text` to `ret_ids`. `flags` are enum tokenizer_flags. User-defined tokens are always
 * matched as a whole; control tokens are produced only with TOKENIZER_PARSE_SPECIAL, whatever the text
 * contains. O(n log n) time and O(n) memory for any text. 0; -EILSEQ: the text is not valid UTF-8; -EMSGSIZE:
 * it is longer than TOKENIZER_MAX_TEXT bytes; -ENOMEM. On failure the list keeps its length. */
#define TOKENIZER_MAX_TEXT ((size_t)1 << 28)
int tokenizer_encode(const struct tokenizer *tokenizer, struct bytes text, unsigned flags,
                     struct ids *ret_ids);

/* The same for a text that users wrote in part. `from_user` has one byte per byte of the text; a control
 * token that overlaps a 1 is not parsed. All other tokens may cross such borders. */
int tokenizer_encode_mixed(const struct tokenizer *tokenizer, struct bytes text, const uint8_t *from_user,
                           unsigned flags, struct ids *ret_ids);

/* Returns the bytes that an id adds to a text. They may be part of a UTF-8 sequence; they are empty for
 * control, unknown and unused tokens and for ids outside the vocabulary. `first` strips the leading space of
 * a SentencePiece text. Valid as long as the tokenizer. */
struct bytes tokenizer_piece(const struct tokenizer *tokenizer, int32_t id, bool first);

/* Appends the text of ids, without the leading space of a SentencePiece text. `names` writes control tokens
 * by their names. Stops after the piece that exceeds `most` bytes. 0 or -ENOMEM. */
int tokenizer_decode(const struct tokenizer *tokenizer, const int32_t *ids, size_t n, bool names, size_t most,
                     struct buffer *ret_text);

/* Returns the vocabulary's spelling of an id, control tokens included, for display. */
struct bytes tokenizer_name(const struct tokenizer *tokenizer, int32_t id);

/* Tokens for filling in the middle: around the parts of a file, and between files. */
enum fim_token { FIM_PREFIX, FIM_SUFFIX, FIM_MIDDLE, FIM_PAD, FIM_REPOSITORY, FIM_FILE, FIM_TOKENS };

/* Returns such a token, from the file's keys (tokenizer.ggml.fim_pre_token_id …) or else by the names that
 * known models use; TOKENIZER_NONE if there is none. A model can fill in if it has the first three. */
int32_t tokenizer_fim(const struct tokenizer *tokenizer, enum fim_token token);

uint32_t tokenizer_size(const struct tokenizer *tokenizer); /* ids are 0 … size − 1 */
enum token_type tokenizer_type(const struct tokenizer *tokenizer, int32_t id);
int32_t tokenizer_bos(const struct tokenizer *tokenizer); /* or TOKENIZER_NONE */
int32_t tokenizer_eos(const struct tokenizer *tokenizer); /* or TOKENIZER_NONE */
bool tokenizer_adds_bos(const struct tokenizer *tokenizer);

/* The ids that end an answer: eos, eot, eom, and control tokens such as <|eot_id|>, <|im_end|>, <end_of_turn>
 * and <|end|>; the last not where <|return|> and <|call|> end an answer. */
struct ids_view {
    const int32_t *items;
    size_t n;
};
struct ids_view tokenizer_end_ids(const struct tokenizer *tokenizer);

#endif
