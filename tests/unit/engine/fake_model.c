/* SPDX-License-Identifier: MIT */
/* The model of fake.h: byte tokens, and a next id that is a hash of all before it. */

#include "tests/unit/engine/fake.h"

#include "model/model.h"

struct tokenizer {
    int32_t end;
};

static const struct tokenizer fake_tokenizer = {FAKE_END};
static uint32_t fake_mask[(FAKE_VOCAB + 31) / 32] = {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 1};

const struct model fake_model = {.params = {.name = "fake", .n_vocab = FAKE_VOCAB, .n_context = 4096},
                                 .tokenizer = (struct tokenizer *)&fake_tokenizer,
                                 .sample_mask = fake_mask};

#define FOUR(n)       (n), (n) + 1, (n) + 2, (n) + 3
#define SIXTEEN(n)    FOUR(n), FOUR((n) + 4), FOUR((n) + 8), FOUR((n) + 12)
#define BYTES_FROM(n) SIXTEEN(n), SIXTEEN((n) + 16), SIXTEEN((n) + 32), SIXTEEN((n) + 48)

struct bytes tokenizer_piece(const struct tokenizer *tokenizer, int32_t id, bool first)
{
    static const uint8_t all[256] = {BYTES_FROM(0), BYTES_FROM(64), BYTES_FROM(128), BYTES_FROM(192)};
    if (id < 0 || id > 255)
        return (struct bytes){0};
    return (struct bytes){&all[id], 1};
}

struct bytes tokenizer_name(const struct tokenizer *tokenizer, int32_t id)
{
    return id == FAKE_END ? BYTES_LITERAL("<end>") : tokenizer_piece(tokenizer, id, false);
}

struct ids_view tokenizer_end_ids(const struct tokenizer *tokenizer)
{
    return (struct ids_view){&tokenizer->end, 1};
}

uint32_t tokenizer_size(const struct tokenizer *tokenizer)
{
    return FAKE_END + 1;
}

enum token_type tokenizer_type(const struct tokenizer *tokenizer, int32_t id)
{
    return id == FAKE_END ? TOKEN_CONTROL : TOKEN_NORMAL;
}

int32_t fake_next(uint64_t seed, const int32_t *ids, uint32_t n)
{
    uint64_t hash = seed * 0x9e3779b97f4a7c15ull + n;
    for (uint32_t i = 0; i < n; i++)
        hash = (hash ^ (uint64_t)ids[i]) * 0x100000001b3ull + (hash >> 29);
    hash ^= hash >> 32;
    return hash % 97 == 0 ? FAKE_END : (int32_t)('a' + hash / 97 % 6);
}

void fake_state(const int32_t *ids, uint32_t n, double ret_state[FAKE_EMBD])
{
    for (uint32_t i = 0; i < FAKE_EMBD; i++)
        ret_state[i] = fake_next(i, ids, n) - 'c';
}
