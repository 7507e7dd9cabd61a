/* SPDX-License-Identifier: MIT */
/* See words.h. Breakers of one byte, which all are by default, are looked for in one pass over the
 * vocabulary: 1 ms for 150,000 tokens. */

#include "worker/prepare/words.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TEXT (PROTO_MAX_WORD_BYTES + 1)

bool words_with_dry(const struct generation *generation, double usual)
{
    const double multiplier = generation->sampling.dry_multiplier;
    return !generation->embed && (sampling_real_is_left(multiplier) ? usual : multiplier) > 0;
}

bool words_are_wanted(const struct generation *generation, bool dry)
{
    return !generation->embed && (generation->bad_words.n > 0 || generation->logit_bias_text.n > 0 ||
                                  generation->ignore_eos || dry);
}

/* Where a text stands: at the beginning, behind a space, or behind a newline, where a SentencePiece
 * vocabulary puts no space before it. */
enum place { PLACE_ALONE, PLACE_SPACED, PLACE_INSIDE, PLACES };

/* The ids of a text in its place; none where its first id cannot be told from what stands before. */
static int encode(const struct tokenizer *tokenizer, struct bytes text, enum place place, struct ids *ret_ids)
{
    char padded[MOST_TEXT];
    if (place == PLACE_ALONE)
        return tokenizer_encode(tokenizer, text, 0, ret_ids);
    padded[0] = place == PLACE_SPACED ? ' ' : '\n';
    memcpy(padded + 1, text.data, text.len);
    int r = tokenizer_encode(tokenizer, (struct bytes){padded, text.len + 1}, 0, ret_ids);
    if (r < 0 || place == PLACE_SPACED)
        return r;
    struct ids before = {0};
    r = tokenizer_encode(tokenizer, BYTES_LITERAL("\n"), 0, &before);
    const bool apart = r == 0 && ret_ids->len > before.len &&
                       memcmp(ret_ids->data, before.data, before.len * sizeof *before.data) == 0;
    ret_ids->len = apart ? ret_ids->len - before.len : 0;
    if (apart)
        memmove(ret_ids->data, ret_ids->data + before.len, ret_ids->len * sizeof *ret_ids->data);
    ids_deinit(&before);
    return r;
}

/* Appends the ids as one list, unless it is there already, or has fewer than `least` ids. */
static int append(struct ids *lists, size_t *n, const struct ids *ids, size_t least)
{
    if (ids->len < least || ids->len == 0)
        return 0;
    for (size_t at = 0; at < lists->len; at += 1 + (size_t)lists->data[at])
        if ((size_t)lists->data[at] == ids->len &&
            memcmp(lists->data + at + 1, ids->data, ids->len * sizeof *ids->data) == 0)
            return 0;
    int r = ids_push(lists, (int32_t)ids->len);
    if (r == 0)
        r = ids_append(lists, ids->data, ids->len);
    *n += r == 0;
    return r;
}

static int append_everywhere(const struct tokenizer *tokenizer, struct bytes text, size_t least,
                             struct ids *lists, size_t *n)
{
    int r = 0;
    for (enum place place = PLACE_ALONE; place < PLACES && r == 0; place++) {
        struct ids ids = {0};
        if (place == PLACE_SPACED && ((const char *)text.data)[0] == ' ')
            continue;
        r = encode(tokenizer, text, place, &ids);
        if (r == 0)
            r = append(lists, n, &ids, least);
        ids_deinit(&ids);
    }
    return r;
}

/* Room for so many more biases. */
static int grow_biases(struct words *words, size_t more)
{
    struct logit_bias *grown = realloc(words->biases, (words->n_biases + more + 1) * sizeof *grown);
    words->biases = grown ? grown : words->biases;
    return grown ? 0 : -ENOMEM;
}

static int find_biases(const struct tokenizer *tokenizer, const struct generation *generation,
                       struct words *words)
{
    const struct logit_bias_list *own = &generation->sampling.logit_bias;
    const struct text_bias_list *texts = &generation->logit_bias_text;
    const struct ids_view ends = tokenizer_end_ids(tokenizer);
    const size_t n_ends = generation->ignore_eos ? ends.n : 0;
    const bool more = texts->n > 0 || n_ends > 0;
    struct ids ids = {0};
    int r = more ? grow_biases(words, own->n + n_ends) : 0;
    for (size_t i = 0; more && i < own->n && r == 0; i++)
        words->biases[words->n_biases++] = own->items[i];
    for (size_t i = 0; i < n_ends && r == 0; i++)
        words->biases[words->n_biases++] = (struct logit_bias){ends.items[i], -INFINITY};
    for (size_t i = 0; i < texts->n && r == 0; i++) {
        ids.len = 0;
        r = encode(tokenizer, texts->items[i].text, PLACE_ALONE, &ids);
        if (r == 0)
            r = grow_biases(words, ids.len);
        for (size_t j = 0; j < ids.len && r == 0; j++)
            words->biases[words->n_biases++] = (struct logit_bias){ids.data[j], (float)texts->items[i].bias};
    }
    ids_deinit(&ids);
    return r;
}

/* Sets the bit of every id whose text contains one of them. */
static void find_pieces(const struct tokenizer *tokenizer, const struct text_list *breakers,
                        struct words *words)
{
    bool single[256] = {false};
    for (size_t i = 0; i < breakers->n; i++)
        if (breakers->items[i].len == 1)
            single[*(const uint8_t *)breakers->items[i].data] = true;
    for (uint32_t id = 0; id < tokenizer_size(tokenizer); id++) {
        const struct bytes piece = prompt_piece(tokenizer, (int32_t)id);
        bool breaks = false;
        for (size_t i = 0; i < piece.len && !breaks; i++)
            breaks = single[((const uint8_t *)piece.data)[i]];
        for (size_t i = 0; i < breakers->n && !breaks; i++)
            breaks = breakers->items[i].len > 1 && piece.len >= breakers->items[i].len &&
                     memmem(piece.data, piece.len, breakers->items[i].data, breakers->items[i].len);
        if (breaks)
            words->mask[id / 32] |= 1u << id % 32;
    }
}

/* Of a request that names none, as in llama.cpp. */
static const char *const usual[] = {"\n", ":", "\"", "*"};

static int find_breakers(const struct tokenizer *tokenizer, const struct generation *generation,
                         struct words *words)
{
    struct bytes items[sizeof usual / sizeof *usual];
    struct text_list breakers = {items, sizeof usual / sizeof *usual};
    for (size_t i = 0; i < breakers.n; i++)
        items[i] = bytes_of_string(usual[i]);
    if (generation->has_dry_breakers)
        breakers = generation->dry_breakers;
    words->n_words = (tokenizer_size(tokenizer) + 31) / 32;
    words->mask = calloc(words->n_words + 1, sizeof *words->mask);
    if (!words->mask)
        return -ENOMEM;
    find_pieces(tokenizer, &breakers, words);
    int r = 0;
    for (size_t i = 0; i < breakers.n && r == 0; i++)
        if (breakers.items[i].len > 1)
            r = append_everywhere(tokenizer, breakers.items[i], 2, &words->sequences, &words->n_sequences);
    return r;
}

bool words_find(const struct tokenizer *tokenizer, const struct generation *generation, bool dry,
                struct words *ret_words, struct refusal *ret_refusal)
{
    int r = find_biases(tokenizer, generation, ret_words);
    for (size_t i = 0; i < generation->bad_words.n && r == 0; i++)
        r = append_everywhere(tokenizer, generation->bad_words.items[i], 1, &ret_words->bad,
                              &ret_words->n_bad);
    if (r == 0 && dry)
        r = find_breakers(tokenizer, generation, ret_words);
    if (r < 0)
        return refuse(ret_refusal, PROTO_INTERNAL, "the worker is out of memory");
    if (ret_words->n_biases > SAMPLING_MAX_BIASES)
        return refuse(ret_refusal, PROTO_BAD_REQUEST,
                      "logit_bias: %zu token ids, those of its texts included; at most %d are allowed",
                      ret_words->n_biases, SAMPLING_MAX_BIASES);
    if (ret_words->n_bad + ret_words->n_sequences > SAMPLING_MOST_SEQUENCES ||
        ret_words->bad.len + ret_words->sequences.len > SAMPLING_MOST_SEQUENCE_LEN)
        return refuse(
            ret_refusal, PROTO_BAD_REQUEST,
            "bad_words and dry_sequence_breakers: too many token ids; at most %d are allowed, and each "
            "text counts once for each of up to three tokenizations",
            SAMPLING_MOST_SEQUENCE_LEN);
    return true;
}

void words_deinit(struct words *words)
{
    free(words->biases);
    free(words->mask);
    ids_deinit(&words->bad);
    ids_deinit(&words->sequences);
    *words = (struct words){0};
}

void words_lend(const struct words *words, struct sampling *sampling)
{
    if (words->n_biases > 0)
        sampling->logit_bias = (struct logit_bias_list){words->biases, words->n_biases};
    sampling->bad_words = (struct id_sequences){words->bad.data, words->bad.len, words->n_bad};
    sampling->dry_breakers = (struct dry_breakers){
        words->mask, words->n_words, {words->sequences.data, words->sequences.len, words->n_sequences}};
}
