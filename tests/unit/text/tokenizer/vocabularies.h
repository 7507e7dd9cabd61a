/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_TEXT_TOKENIZER_VOCABULARIES_H
#define TESTS_UNIT_TEXT_TOKENIZER_VOCABULARIES_H

/* Small vocabularies, written token by token, and tokenizers opened from them. */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/files/rundir.h"
#include "text/tokenizer/tokenizer.h"
#include "gguf/gguf_writer.h"

struct test_token {
    const char *text;
    enum token_type type;
    float score;
};

struct test_vocabulary {
    struct gguf_writer *writer; /* more keys may be added before it is opened */
    struct bytes *texts;
    int32_t *types;
    float *scores;
    size_t n;
};

static inline void vocabulary_begin(struct test_vocabulary *v, const char *kind)
{
    *v = (struct test_vocabulary){0};
    ck_assert_int_eq(gguf_writer_new(&v->writer), 0);
    ck_assert_int_eq(gguf_writer_string(v->writer, "general.architecture", "llama"), 0);
    if (kind)
        ck_assert_int_eq(gguf_writer_string(v->writer, "tokenizer.ggml.model", kind), 0);
}

/* Adds a token and returns its id; the text must outlive the vocabulary. */
static inline int32_t vocabulary_add(struct test_vocabulary *v, struct test_token token)
{
    v->texts = realloc(v->texts, (v->n + 1) * sizeof *v->texts);
    v->types = realloc(v->types, (v->n + 1) * sizeof *v->types);
    v->scores = realloc(v->scores, (v->n + 1) * sizeof *v->scores);
    v->texts[v->n] = bytes_of_string(token.text);
    v->types[v->n] = token.type;
    v->scores[v->n] = token.score;
    return (int32_t)v->n++;
}

static inline void vocabulary_add_all(struct test_vocabulary *v, const struct test_token *tokens, size_t n)
{
    for (size_t i = 0; i < n; i++)
        vocabulary_add(v, tokens[i]);
}

/* Adds the 256 byte tokens of a SentencePiece vocabulary, from the next id on. */
static inline int32_t vocabulary_add_bytes(struct test_vocabulary *v)
{
    static char names[256][8];
    int32_t first = (int32_t)v->n;
    for (int b = 0; b < 256; b++) {
        snprintf(names[b], sizeof names[b], "<0x%02X>", b);
        vocabulary_add(v, (struct test_token){names[b], TOKEN_BYTE, 0});
    }
    return first;
}

/* Writes the tokens, their types and scores. */
static inline void vocabulary_finish(struct test_vocabulary *v)
{
    ck_assert_int_eq(gguf_writer_strings(v->writer, "tokenizer.ggml.tokens", v->texts, v->n), 0);
    ck_assert_int_eq(gguf_writer_i32s(v->writer, "tokenizer.ggml.token_type", v->types, v->n), 0);
    ck_assert_int_eq(gguf_writer_f32s(v->writer, "tokenizer.ggml.scores", v->scores, v->n), 0);
}

/* Writes the file, opens it and frees the vocabulary. */
static inline struct gguf *vocabulary_to_gguf(struct test_vocabulary *v, struct error *err)
{
    char dir[RUNDIR_PATH_MAX + 1], path[RUNDIR_PATH_MAX + 32];
    struct gguf *gguf = NULL;
    ck_assert_int_eq(rundir_temporary(dir, NULL), 0);
    snprintf(path, sizeof path, "%s/vocabulary.gguf", dir);
    ck_assert_msg(gguf_writer_write(v->writer, path, err) == 0, "%s", err->text);
    ck_assert_msg(gguf_open(path, &gguf, err) == 0, "%s", err->text);
    rundir_remove(dir);
    v->writer = gguf_writer_free(v->writer);
    free(v->texts);
    free(v->types);
    free(v->scores);
    return gguf;
}

/* Opens a tokenizer from the vocabulary, which is freed. Returns tokenizer_new's code. */
static inline int vocabulary_open(struct test_vocabulary *v, struct tokenizer **ret_tokenizer,
                                  struct error *err)
{
    struct gguf *gguf = vocabulary_to_gguf(v, err);
    int r = tokenizer_new(gguf, ret_tokenizer, err);
    gguf_free(gguf); /* the tokenizer must not need it any more */
    return r;
}

static inline struct tokenizer *vocabulary_must_open(struct test_vocabulary *v)
{
    struct tokenizer *tokenizer = NULL;
    struct error err = {0};
    int r = vocabulary_open(v, &tokenizer, &err);
    ck_assert_msg(r == 0, "%s", err.text);
    return tokenizer;
}

/* The names of the ids of a text, separated by bars: "▁a|b|<0x0A>". In a static buffer. */
static inline const char *tokens_of(const struct tokenizer *tokenizer, const char *text, unsigned flags)
{
    static char names[4096];
    struct ids ids = {0};
    size_t n = 0;
    ck_assert_int_eq(tokenizer_encode(tokenizer, bytes_of_string(text), flags, &ids), 0);
    names[0] = '\0';
    for (size_t i = 0; i < ids.len; i++) {
        struct bytes name = tokenizer_name(tokenizer, ids.data[i]);
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%.*s", i > 0 ? "|" : "", (int)name.len,
                              (const char *)name.data);
    }
    ids_deinit(&ids);
    return names;
}

/* The tokenizer_piece of every id, concatenated. */
static inline void text_of_ids(const struct tokenizer *tokenizer, const struct ids *ids,
                               struct buffer *ret_text)
{
    for (size_t i = 0; i < ids->len; i++) {
        struct bytes piece = tokenizer_piece(tokenizer, ids->data[i], i == 0);
        ck_assert_int_eq(buffer_append(ret_text, piece.data, piece.len), 0);
    }
}

/* A random text of `n` characters: ASCII, blanks, accents, CJK, emoji, controls; never U+2581. */
static inline void random_text(unsigned *seed, size_t n, struct buffer *ret_text)
{
    static const char *const some[] = {"a",  "b",   "ab",   " ",  "  ", "\n",     "\t", "é",    "ß",
                                       "中", "文",  "🦙", "\r", "0",  "42",     "'s", "'",    "!",
                                       "<",  ">",   "<s>",  "|",  "Ж",  "ﬁ",      "\v", "\f",   "~",
                                       "x",  "the", "X",    "٣",  "ก",  "\u00a0", "�",  "e‍", "\x01"};
    ret_text->len = 0;
    for (size_t i = 0; i < n; i++) {
        const char *piece = some[(size_t)rand_r(seed) % (sizeof some / sizeof some[0])];
        ck_assert_int_eq(buffer_append(ret_text, piece, strlen(piece)), 0);
    }
}

static inline void expect_round_trips(const struct tokenizer *tokenizer, unsigned seed)
{
    struct buffer text = {0}, again = {0};
    struct ids ids = {0};
    for (int round = 0; round < 500; round++) {
        random_text(&seed, (size_t)rand_r(&seed) % 60, &text);
        ids.len = again.len = 0;
        ck_assert_int_eq(tokenizer_encode(tokenizer, (struct bytes){text.data, text.len}, 0, &ids), 0);
        text_of_ids(tokenizer, &ids, &again);
        ck_assert_msg(bytes_equal((struct bytes){text.data, text.len}, (struct bytes){again.data, again.len}),
                      "\"%.*s\" came back as \"%.*s\"", (int)text.len, (const char *)text.data,
                      (int)again.len, (const char *)again.data);
    }
    ids_deinit(&ids);
    buffer_deinit(&text);
    buffer_deinit(&again);
}

/* Checks that a long text of one repeated piece, followed by `end`, is tokenized faster than any quadratic
 * method could: 300 KB in under ten seconds even on a slow machine and under a sanitizer. */
static inline void expect_linear(const struct tokenizer *tokenizer, const char *piece, const char *end)
{
    struct buffer text = {0};
    struct ids ids = {0};
    while (text.len < 300000)
        ck_assert_int_eq(buffer_append(&text, piece, strlen(piece)), 0);
    ck_assert_int_eq(buffer_append(&text, end, strlen(end)), 0);
    struct timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    ck_assert_int_eq(
        tokenizer_encode(tokenizer, (struct bytes){text.data, text.len}, TOKENIZER_PARSE_SPECIAL, &ids), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    ck_assert_msg(after.tv_sec - before.tv_sec < 10, "300 KB of \"%s\" took %ld s", piece,
                  (long)(after.tv_sec - before.tv_sec));
    ck_assert_uint_gt(ids.len, 0);
    ids_deinit(&ids);
    buffer_deinit(&text);
}

#endif
