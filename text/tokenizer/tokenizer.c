/* SPDX-License-Identifier: MIT */
/* The tokenizer: one face for all kinds.
 *
 * A tokenizer is a vocabulary, the special tokens cut out of a text before anything else, one of the three
 * kinds that tokenize what lies between, and the bytes that each id adds to an output. All of it is computed
 * from the file once and never changes, so that threads share it; what an encoding needs besides lives in a
 * scratch structure for the length of the call.
 *
 * Ids that the file does not name: a "llama" vocabulary has <unk> <s> </s> at 0 1 2, a "gemma4" one <eos>
 * <bos> <unk> at 1 2 3, if these are control or unknown tokens there; a "gpt2" one has none. */

#include "text/tokenizer/tokenizer.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "common/utf8.h"
#include "text/tokenizer/normalize.h"
#include "text/tokenizer/special.h"
#include "text/tokenizer/tokenizer_bpe.h"
#include "text/tokenizer/tokenizer_characters.h"
#include "text/tokenizer/tokenizer_spm.h"
#include "text/tokenizer/vocabulary.h"
#include "gguf/gguf_values.h"

/* Spellings of control tokens that end an answer. Some files give them another type by mistake. */
static const char *const end_names[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<end_of_turn>",
    "<|end|>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
};

/* Where an answer is several messages: what ends the last of them, and what ends each. */
static const char *const last_names[] = {"<|return|>", "<|call|>"};
static const char message_name[] = "<|end|>";

/* Of tokens that end an answer and are user-defined: others write them too. */
static const char *const turn_names[] = {"<turn|>", "<|tool_response>"};

/* Those, and what the file itself names: eos, eot and eom. */
enum { MAX_END_IDS = 3 + (sizeof end_names + sizeof turn_names + sizeof last_names) / sizeof end_names[0] };

/* As files name them. */
#define KINDS(ROW)    ROW(LLAMA, "llama") ROW(GPT2, "gpt2") ROW(GEMMA4, "gemma4")
#define ROW(id, name) KIND_##id,
enum kind { KINDS(ROW) N_KINDS };
#undef ROW

struct tokenizer {
    struct vocabulary vocabulary;
    struct specials specials;
    enum kind kind;
    /* That of the kind. */
    struct spm spm;
    struct bpe *bpe;
    struct characters characters;
    int32_t bos, eos, unknown, fim[FIM_TOKENS];
    bool adds_bos, adds_eos, space_prefix, normalizes;
    struct buffer pieces;  /* what ids add to the output, one after the other */
    uint32_t *piece_start; /* [size + 1] */
    int32_t end_ids[MAX_END_IDS];
    size_t n_end_ids;
};

static int read_id(const struct tokenizer *t, const struct gguf *gguf, const char *key, int32_t *ret_id,
                   struct error *err)
{
    uint32_t id;
    int r = gguf_u32(gguf, key, &id, err);
    if (r == GGUF_E_MISSING)
        return 0;
    if (r < 0)
        return r;
    if (id >= t->vocabulary.size)
        return error_set(err, -EINVAL, "%s is %u, but the vocabulary has %u tokens", key, id,
                         t->vocabulary.size);
    *ret_id = (int32_t)id;
    return 0;
}

static int read_flag(const struct gguf *gguf, const char *key, bool otherwise, bool *ret_flag,
                     struct error *err)
{
    int r = gguf_bool(gguf, key, ret_flag, err);
    if (r == GGUF_E_MISSING) {
        *ret_flag = otherwise;
        r = 0;
    }
    return r;
}

static int read_normalizer(struct tokenizer *t, const struct gguf *gguf, struct error *err)
{
    struct bytes form;
    int r = gguf_string(gguf, "tokenizer.normalizer", &form, err);
    if (r != 0)
        return r == GGUF_E_MISSING ? 0 : r;
    if (!bytes_equal(form, BYTES_LITERAL("NFC")))
        return error_set(err, -EINVAL, "tokenizer.normalizer: \"%.*s\" is not supported (\"NFC\" is)",
                         (int)(form.len < 64 ? form.len : 64), (const char *)form.data);
    t->normalizes = true;
    return 0;
}

/* Where a file does not name a special id, it is the kind's usual one if such a token stands there. */
static int32_t usual_id(const struct tokenizer *t, int32_t id)
{
    bool there = id >= 0 && (uint32_t)id < t->vocabulary.size &&
                 (t->vocabulary.types[id] == TOKEN_CONTROL || t->vocabulary.types[id] == TOKEN_UNKNOWN);
    return there ? id : TOKENIZER_NONE;
}

static int read_special_ids(struct tokenizer *t, const struct gguf *gguf, struct error *err)
{
    static const struct {
        int32_t unknown, bos, eos;
    } usual[N_KINDS] = {[KIND_LLAMA] = {0, 1, 2}, [KIND_GPT2] = {-1, -1, -1}, [KIND_GEMMA4] = {3, 2, 1}};
    t->unknown = usual_id(t, usual[t->kind].unknown);
    t->bos = usual_id(t, usual[t->kind].bos);
    t->eos = usual_id(t, usual[t->kind].eos);
    int r = read_id(t, gguf, "tokenizer.ggml.unknown_token_id", &t->unknown, err);
    if (r == 0)
        r = read_id(t, gguf, "tokenizer.ggml.bos_token_id", &t->bos, err);
    if (r == 0)
        r = read_id(t, gguf, "tokenizer.ggml.eos_token_id", &t->eos, err);
    if (r == 0)
        r = read_flag(gguf, "tokenizer.ggml.add_bos_token", t->bpe ? bpe_traits(t->bpe)->adds_bos : true,
                      &t->adds_bos, err);
    if (r == 0)
        r = read_flag(gguf, "tokenizer.ggml.add_eos_token", false, &t->adds_eos, err);
    if (r == 0)
        r = read_flag(gguf, "tokenizer.ggml.add_space_prefix", true, &t->space_prefix, err);
    if (r < 0)
        return r;
    t->space_prefix = t->space_prefix && t->kind == KIND_LLAMA; /* the others spell every space */
    t->adds_bos = (t->adds_bos || t->kind == KIND_GEMMA4) && t->bos != TOKENIZER_NONE; /* files err */
    t->adds_eos = t->adds_eos && t->eos != TOKENIZER_NONE;
    return 0;
}

static void add_end_id(struct tokenizer *t, int32_t id)
{
    if (id == TOKENIZER_NONE)
        return;
    for (size_t i = 0; i < t->n_end_ids; i++)
        if (t->end_ids[i] == id)
            return;
    t->end_ids[t->n_end_ids++] = id;
}

/* "</s>" is a control token of a BPE vocabulary, too, if the file calls it an ordinary one: no text is cut so
 * that it would come out of one, and llama.cpp reads it like that. In SentencePiece vocabularies it may be
 * HTML. */
static void mark_sentence_end(struct tokenizer *t)
{
    const int32_t id = t->kind == KIND_GPT2 ? vocabulary_find(&t->vocabulary, "</s>", 4) : TOKENIZER_NONE;
    if (id >= 0 && t->vocabulary.types[id] == TOKEN_NORMAL)
        t->vocabulary.types[id] = TOKEN_CONTROL;
}

/* In gpt-oss's form <|end|> ends a message, such as a thought, and another follows. */
static void end_with_last_message(struct tokenizer *t)
{
    int32_t ids[sizeof last_names / sizeof last_names[0]];
    const int32_t message = vocabulary_find(&t->vocabulary, message_name, sizeof message_name - 1);
    size_t n = 0;
    for (; n < sizeof ids / sizeof ids[0]; n++) {
        ids[n] = vocabulary_find(&t->vocabulary, last_names[n], strlen(last_names[n]));
        if (ids[n] < 0 || message < 0)
            return;
    }
    for (size_t i = 0; i < t->n_end_ids; i++)
        if (t->end_ids[i] == message)
            t->end_ids[i--] = t->end_ids[--t->n_end_ids];
    for (size_t i = 0; i < n; i++) {
        t->vocabulary.types[ids[i]] = TOKEN_CONTROL;
        add_end_id(t, ids[i]);
    }
}

static int find_end_ids(struct tokenizer *t, const struct gguf *gguf, struct error *err)
{
    int32_t eot = TOKENIZER_NONE, eom = TOKENIZER_NONE;
    int r = read_id(t, gguf, "tokenizer.ggml.eot_token_id", &eot, err);
    if (r == 0)
        r = read_id(t, gguf, "tokenizer.ggml.eom_token_id", &eom, err);
    if (r < 0)
        return r;
    add_end_id(t, t->eos);
    add_end_id(t, eot);
    add_end_id(t, eom);
    for (size_t i = 0; i < sizeof end_names / sizeof end_names[0]; i++) {
        int32_t id = vocabulary_find(&t->vocabulary, end_names[i], strlen(end_names[i]));
        if (id < 0)
            continue;
        t->vocabulary.types[id] = TOKEN_CONTROL;
        add_end_id(t, id);
    }
    for (size_t i = 0; i < sizeof turn_names / sizeof turn_names[0]; i++) {
        int32_t id = vocabulary_find(&t->vocabulary, turn_names[i], strlen(turn_names[i]));
        add_end_id(t, id < 0 ? TOKENIZER_NONE : id);
    }
    end_with_last_message(t);
    mark_sentence_end(t);
    return 0;
}

/* Keys and names of each, in the order of enum fim_token. */
static const struct {
    const char *keys[2], *names[8];
} fim_tokens[FIM_TOKENS] = {
    {{"tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"},
     {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<PRE>", "▁<PRE>", "<｜fim▁begin｜>",
      "<|code_prefix|>"}},
    {{"tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"},
     {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<SUF>", "▁<SUF>", "<｜fim▁hole｜>",
      "<|code_suffix|>"}},
    {{"tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"},
     {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<MID>", "▁<MID>", "<｜fim▁end｜>",
      "<|code_middle|>"}},
    {{"tokenizer.ggml.fim_pad_token_id"}, {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>"}},
    {{"tokenizer.ggml.fim_rep_token_id"},
     {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}},
    {{"tokenizer.ggml.fim_sep_token_id"}, {"<|file_sep|>", "<file_sep>"}},
};

static int find_fim_ids(struct tokenizer *t, const struct gguf *gguf, struct error *err)
{
    int r = 0;
    for (int i = 0; i < FIM_TOKENS; i++) {
        t->fim[i] = TOKENIZER_NONE;
        for (int k = 0; k < 2 && fim_tokens[i].keys[k] && r == 0 && t->fim[i] == TOKENIZER_NONE; k++)
            r = read_id(t, gguf, fim_tokens[i].keys[k], &t->fim[i], err);
        for (int k = 0; k < 8 && fim_tokens[i].names[k] && t->fim[i] == TOKENIZER_NONE; k++)
            t->fim[i] =
                vocabulary_find(&t->vocabulary, fim_tokens[i].names[k], strlen(fim_tokens[i].names[k]));
    }
    return r;
}

int32_t tokenizer_fim(const struct tokenizer *tokenizer, enum fim_token token)
{
    return tokenizer->fim[token];
}

static bool contains_ignoring_case(struct bytes text, const char *word)
{
    size_t len = strlen(word);
    for (size_t i = 0; i + len <= text.len; i++)
        if (strncasecmp((const char *)text.data + i, word, len) == 0)
            return true;
    return false;
}

/* The vocabularies of Phi-3 let most special tokens swallow the white space after them. No key says so; they
 * are known by their name. */
static int find_quirks(struct tokenizer *t, const struct gguf *gguf, struct error *err)
{
    struct bytes name = {0};
    int r = gguf_string(gguf, "general.name", &name, err);
    if (r < 0)
        return r;
    t->specials.strip_right = contains_ignoring_case(name, "phi-3") || contains_ignoring_case(name, "phi3");
    return 0;
}

static int append_piece(struct tokenizer *t, uint32_t id)
{
    struct bytes text = vocabulary_text(&t->vocabulary, id);
    switch ((enum token_type)t->vocabulary.types[id]) {
    case TOKEN_BYTE:
        if (spelling_byte_of(text) >= 0) {
            uint8_t byte = (uint8_t)spelling_byte_of(text);
            return buffer_append(&t->pieces, &byte, 1);
        }
        return buffer_append(&t->pieces, text.data, text.len);
    case TOKEN_USER_DEFINED:
        return buffer_append(&t->pieces, text.data, text.len);
    case TOKEN_NORMAL:
        break;
    case TOKEN_UNKNOWN:
    case TOKEN_CONTROL:
    case TOKEN_UNUSED:
        return 0;
    }
    return t->bpe ? bpe_unspell(text, &t->pieces) : spelling_unescape(&t->pieces, text);
}

static int spell_pieces(struct tokenizer *t)
{
    t->piece_start = calloc((size_t)t->vocabulary.size + 1, sizeof *t->piece_start);
    if (!t->piece_start)
        return -ENOMEM;
    for (uint32_t id = 0; id < t->vocabulary.size; id++) {
        int r = append_piece(t, id);
        if (r < 0)
            return r;
        t->piece_start[id + 1] = (uint32_t)t->pieces.len;
    }
    return 0;
}

#define ROW(id, name) name,
static const char *const kinds[] = {KINDS(ROW)};
#undef ROW

static int init_kind(struct tokenizer *t, const struct gguf *gguf, struct error *err)
{
    struct bytes kind;
    int r = gguf_string(gguf, "tokenizer.ggml.model", &kind, err);
    if (r == GGUF_E_MISSING)
        return error_set(err, -EINVAL, "tokenizer.ggml.model is missing");
    if (r < 0)
        return r;
    while (t->kind < N_KINDS && !bytes_equal(kind, bytes_of_string(kinds[t->kind])))
        t->kind++;
    if (t->kind == N_KINDS)
        return error_set(
            err, -EINVAL,
            "tokenizer.ggml.model: unknown kind \"%.*s\" (\"llama\", \"gpt2\" and \"gemma4\" are "
            "supported)",
            (int)(kind.len < 64 ? kind.len : 64), (const char *)kind.data);
    r = vocabulary_init(&t->vocabulary, gguf, err);
    if (r == 0 && t->kind == KIND_GPT2)
        r = bpe_new(&t->vocabulary, gguf, &t->bpe, err);
    if (r == 0)
        r = read_special_ids(t, gguf, err);
    if (r == 0)
        r = read_normalizer(t, gguf, err);
    if (r == 0 && t->kind == KIND_LLAMA)
        r = spm_init(&t->spm, &t->vocabulary, t->unknown, err);
    if (r == 0 && t->kind == KIND_GEMMA4)
        r = characters_init(&t->characters, &t->vocabulary, gguf, t->unknown, err);
    return r;
}

int tokenizer_new(const struct gguf *gguf, struct tokenizer **ret_tokenizer, struct error *err)
{
    struct tokenizer *t = calloc(1, sizeof *t);
    if (!t)
        return error_set(err, -ENOMEM, "not enough memory for the tokenizer");
    int r = init_kind(t, gguf, err);
    if (r == 0)
        r = find_end_ids(t, gguf, err);
    if (r == 0)
        r = find_fim_ids(t, gguf, err);
    if (r == 0)
        r = specials_init(&t->specials, &t->vocabulary);
    if (r == -E2BIG)
        error_set(err, r, "the special tokens' names take too much memory");
    if (r == 0)
        r = find_quirks(t, gguf, err);
    if (r == 0)
        r = spell_pieces(t);
    if (r < 0) {
        tokenizer_free(t);
        return r == -ENOMEM ? error_set(err, r, "not enough memory for the tokenizer") : r;
    }
    *ret_tokenizer = t;
    return 0;
}

struct tokenizer *tokenizer_free(struct tokenizer *tokenizer)
{
    if (!tokenizer)
        return NULL;
    bpe_free(tokenizer->bpe);
    characters_deinit(&tokenizer->characters);
    specials_deinit(&tokenizer->specials);
    vocabulary_deinit(&tokenizer->vocabulary);
    buffer_deinit(&tokenizer->pieces);
    free(tokenizer->piece_start);
    free(tokenizer);
    return NULL;
}

/* Whether BOS, or EOS, that stands at this place of the text already is the one that would be added. */
static bool stands_there(const struct fragments *fragments, bool at_end, int32_t id)
{
    return fragments->n > 0 && fragments->items[at_end ? fragments->n - 1 : 0].id == id;
}

int tokenizer_encode(const struct tokenizer *tokenizer, struct bytes text, unsigned flags,
                     struct ids *ret_ids)
{
    return tokenizer_encode_mixed(tokenizer, text, NULL, flags, ret_ids);
}

/* Of one encoding. */
struct scratch {
    struct spm_scratch spm;
    struct bpe_scratch bpe;
    struct characters_scratch characters;
};

/* Text between special tokens; `spaced`: a space goes before it, where the vocabulary wants one. */
static int encode_part(const struct tokenizer *t, struct scratch *scratch, struct bytes part, bool spaced,
                       struct ids *ret_ids)
{
    switch (t->kind) {
    case KIND_GPT2:
        return bpe_encode(t->bpe, &t->vocabulary, &scratch->bpe, part, ret_ids);
    case KIND_GEMMA4:
        return characters_encode(&t->characters, &t->vocabulary, &scratch->characters, part, ret_ids);
    default:
        return spm_encode(&t->spm, &t->vocabulary, &scratch->spm, part, t->space_prefix && spaced, ret_ids);
    }
}

int tokenizer_encode_mixed(const struct tokenizer *tokenizer, struct bytes text, const uint8_t *from_user,
                           unsigned flags, struct ids *ret_ids)
{
    if (text.len > TOKENIZER_MAX_TEXT)
        return -EMSGSIZE;
    if (utf8_valid(text) < text.len)
        return -EILSEQ;
    size_t n_before = ret_ids->len;
    struct fragments fragments = {0};
    struct scratch scratch = {0};
    struct normalizer normalizer = {0};
    int r = specials_split(&tokenizer->specials, &tokenizer->vocabulary, text,
                           flags & TOKENIZER_PARSE_SPECIAL, from_user, &fragments);
    if (r == 0 && flags & TOKENIZER_ADD_SPECIAL && tokenizer->adds_bos &&
        !(flags & TOKENIZER_ADD_ONCE && stands_there(&fragments, false, tokenizer->bos)))
        r = ids_push(ret_ids, tokenizer->bos);
    bool after_special = true; /* the start of the text counts as one: a space goes before what follows */
    for (size_t i = 0; r == 0 && i < fragments.n; i++) {
        struct fragment f = fragments.items[i];
        struct bytes part = {(const char *)text.data + f.start, f.len};
        if (f.id < 0 && tokenizer->normalizes)
            r = normalize_nfc(&normalizer, part, &part);
        if (r < 0)
            break;
        r = f.id >= 0 ? ids_push(ret_ids, f.id)
                      : encode_part(tokenizer, &scratch, part, after_special, ret_ids);
        after_special = f.id >= 0;
    }
    if (r == 0 && flags & TOKENIZER_ADD_SPECIAL && tokenizer->adds_eos &&
        !(flags & TOKENIZER_ADD_ONCE && stands_there(&fragments, true, tokenizer->eos)))
        r = ids_push(ret_ids, tokenizer->eos);
    if (r < 0)
        ret_ids->len = n_before;
    fragments_deinit(&fragments);
    spm_scratch_deinit(&scratch.spm);
    bpe_scratch_deinit(&scratch.bpe);
    characters_scratch_deinit(&scratch.characters);
    normalizer_deinit(&normalizer);
    return r;
}

struct bytes tokenizer_piece(const struct tokenizer *tokenizer, int32_t id, bool first)
{
    if (id < 0 || (uint32_t)id >= tokenizer->vocabulary.size)
        return (struct bytes){"", 0};
    uint32_t start = tokenizer->piece_start[id], end = tokenizer->piece_start[id + 1];
    if (start == end)
        return (struct bytes){"", 0};
    if (first && tokenizer->space_prefix && tokenizer->vocabulary.types[id] == TOKEN_NORMAL &&
        tokenizer->pieces.data[start] == ' ')
        start++;
    return (struct bytes){tokenizer->pieces.data + start, end - start};
}

struct bytes tokenizer_name(const struct tokenizer *tokenizer, int32_t id)
{
    if (id < 0 || (uint32_t)id >= tokenizer->vocabulary.size)
        return (struct bytes){"", 0};
    return vocabulary_text(&tokenizer->vocabulary, (uint32_t)id);
}

uint32_t tokenizer_size(const struct tokenizer *tokenizer)
{
    return tokenizer->vocabulary.size;
}

enum token_type tokenizer_type(const struct tokenizer *tokenizer, int32_t id)
{
    if (id < 0 || (uint32_t)id >= tokenizer->vocabulary.size)
        return TOKEN_UNUSED;
    return tokenizer->vocabulary.types[id];
}

int32_t tokenizer_bos(const struct tokenizer *tokenizer)
{
    return tokenizer->bos;
}

int32_t tokenizer_eos(const struct tokenizer *tokenizer)
{
    return tokenizer->eos;
}

bool tokenizer_adds_bos(const struct tokenizer *tokenizer)
{
    return tokenizer->adds_bos;
}

struct ids_view tokenizer_end_ids(const struct tokenizer *tokenizer)
{
    return (struct ids_view){tokenizer->end_ids, tokenizer->n_end_ids};
}

int tokenizer_decode(const struct tokenizer *tokenizer, const int32_t *ids, size_t n, bool names, size_t most,
                     struct buffer *ret_text)
{
    size_t before = ret_text->len;
    bool first = true;
    int r = 0;
    for (size_t i = 0; i < n && r == 0 && ret_text->len - before <= most; i++) {
        bool control = tokenizer_type(tokenizer, ids[i]) == TOKEN_CONTROL;
        struct bytes piece =
            control && names ? tokenizer_name(tokenizer, ids[i]) : tokenizer_piece(tokenizer, ids[i], first);
        first = first && control && !names;
        r = buffer_append(ret_text, piece.data, piece.len);
    }
    return r;
}
