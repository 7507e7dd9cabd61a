/* SPDX-License-Identifier: MIT */
/* A made-up vocabulary of the SentencePiece kind.
 *
 * In this order: <unk> <s> </s>, the 256 bytes, the space and every printable character, then pieces of
 * growing length, each bare and behind a space. Up to three letters it is every combination, common letters
 * first; from four on consonants and vowels take turns, so that the output of random weights can be read
 * aloud. Every piece's beginnings stand before it, so merging reaches it. Scores fall with the id, as they do
 * in real files. */

#include "model/convert/synth_vocabulary.h"

#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "text/tokenizer/tokenizer.h"
#include "gguf/gguf_writer.h"

#define SPACE      "\xe2\x96\x81" /* U+2581, the space of a vocabulary */
#define LETTERS    "etaoinshrdlcumwfgypbvkjxqz"
#define VOWELS     "eaoiu"
#define CONSONANTS "tnshrdlcmwfgypbvkjxqz"

#define ALL_LENGTHS 3 /* up to here every combination of letters is a piece */
#define PIECE_BYTES 16

struct list {
    struct buffer text;
    struct bytes *tokens; /* [size]; data is an offset into text until the end */
    float *scores;
    int32_t *types;
    uint32_t n, size;
};

/* A full list swallows what comes. */
static int add(struct list *list, enum token_type type, const char *token, size_t len)
{
    if (list->n == list->size)
        return 0;
    list->tokens[list->n].len = len;
    list->types[list->n] = type;
    list->scores[list->n] = 0 - (float)list->n;
    list->n++;
    return buffer_append(&list->text, token, len);
}

static int add_letters(struct list *list, const char *letters, size_t n)
{
    char piece[sizeof SPACE + PIECE_BYTES];
    memcpy(piece, SPACE, strlen(SPACE));
    memcpy(piece + strlen(SPACE), letters, n);
    int r = add(list, TOKEN_NORMAL, piece, strlen(SPACE) + n);
    /* A bare single letter is there already, as a character. */
    return r < 0 || n == 1 ? r : add(list, TOKEN_NORMAL, letters, n);
}

/* All pieces of n letters, position p taken from sets[p % 2], the last position turning fastest. */
static int add_length(struct list *list, size_t n, const char *const sets[2])
{
    size_t digits[PIECE_BYTES] = {0};
    char letters[PIECE_BYTES];
    while (list->n < list->size) {
        for (size_t p = 0; p < n; p++)
            letters[p] = sets[p % 2][digits[p]];
        int r = add_letters(list, letters, n);
        if (r < 0)
            return r;
        size_t p = n;
        while (p > 0 && !sets[(p - 1) % 2][++digits[p - 1]])
            digits[--p] = 0;
        if (p == 0)
            break;
    }
    return 0;
}

static int add_pieces(struct list *list)
{
    static const char *const any[2] = {LETTERS, LETTERS};
    static const char *const consonant_first[2] = {CONSONANTS, VOWELS};
    static const char *const vowel_first[2] = {VOWELS, CONSONANTS};
    int r = 0;
    for (size_t n = 1; n < PIECE_BYTES && list->n < list->size && r == 0; n++) {
        r = add_length(list, n, n <= ALL_LENGTHS ? any : consonant_first);
        if (r == 0 && n > ALL_LENGTHS)
            r = add_length(list, n, vowel_first);
    }
    return r;
}

static int add_all(struct list *list)
{
    char text[8];
    int r = add(list, TOKEN_UNKNOWN, "<unk>", 5);
    if (r == 0)
        r = add(list, TOKEN_CONTROL, "<s>", 3);
    if (r == 0)
        r = add(list, TOKEN_CONTROL, "</s>", 4);
    for (int b = 0; b < 256 && r == 0; b++) {
        snprintf(text, sizeof text, "<0x%02X>", b);
        r = add(list, TOKEN_BYTE, text, 6);
    }
    if (r == 0)
        r = add(list, TOKEN_NORMAL, SPACE, strlen(SPACE));
    for (char c = '!'; c <= '~' && r == 0; c++)
        r = add(list, TOKEN_NORMAL, &c, 1);
    return r < 0 ? r : add_pieces(list);
}

static int write_list(struct gguf_writer *writer, struct list *list)
{
    const uint8_t *text = list->text.data;
    for (uint32_t i = 0; i < list->n; text += list->tokens[i++].len)
        list->tokens[i].data = text;
    int r = gguf_writer_string(writer, "tokenizer.ggml.model", "llama");
    if (r == 0)
        r = gguf_writer_string(writer, "tokenizer.ggml.pre", "default");
    if (r == 0)
        r = gguf_writer_strings(writer, "tokenizer.ggml.tokens", list->tokens, list->n);
    if (r == 0)
        r = gguf_writer_f32s(writer, "tokenizer.ggml.scores", list->scores, list->n);
    if (r == 0)
        r = gguf_writer_i32s(writer, "tokenizer.ggml.token_type", list->types, list->n);
    static const char *const special[] = {"unknown", "bos", "eos"}; /* ids 0, 1, 2 */
    for (uint32_t id = 0; id < 3 && r == 0; id++) {
        char key[64];
        snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", special[id]);
        r = gguf_writer_u32(writer, key, id);
    }
    if (r == 0)
        r = gguf_writer_bool(writer, "tokenizer.ggml.add_bos_token", true);
    return r < 0 ? r : gguf_writer_bool(writer, "tokenizer.ggml.add_eos_token", false);
}

int synth_vocabulary(struct gguf_writer *writer, uint32_t size)
{
    struct list list = {.size = size};
    list.tokens = calloc(size, sizeof *list.tokens);
    list.scores = calloc(size, sizeof *list.scores);
    list.types = calloc(size, sizeof *list.types);
    int r = list.tokens && list.scores && list.types ? add_all(&list) : -ENOMEM;
    if (r == 0)
        r = write_list(writer, &list);
    free(list.tokens);
    free(list.scores);
    free(list.types);
    buffer_deinit(&list.text);
    return r;
}
