/* SPDX-License-Identifier: MIT */
/* Masks over a real vocabulary, held against the plain way: each token tried alone, along random answers. */

#include "tests/unit/run.h"
#include "tests/unit/text/grammar/accepts.h"

#include <stdlib.h>

#include "text/grammar/machine/machine.h"

static struct tokenizer *tokenizer;
static struct token_trie trie;

static void set_up(void)
{
    struct gguf *gguf;
    struct error err = {0};
    ck_assert_msg(gguf_open(DEMO_MODEL, &gguf, &err) == 0, "%s", err.text);
    ck_assert_msg(tokenizer_new(gguf, &tokenizer, &err) == 0, "%s", err.text);
    gguf_free(gguf);
    ck_assert_int_eq(token_trie_make(tokenizer, tokenizer_size(tokenizer), &trie), 0);
}

static void tear_down(void)
{
    token_trie_deinit(&trie);
    tokenizer_free(tokenizer);
}

START_TEST(every_token_stands_once_in_the_trie)
{
    uint32_t *seen = calloc(trie.n_vocab, sizeof *seen), n = 0;
    uint8_t path[TOKEN_TRIE_MOST_BYTES];
    for (uint32_t node = 0; node < trie.n_nodes; node++) {
        path[trie.depths[node] - 1] = trie.bytes[node];
        ck_assert(trie.skips[node] > node && trie.skips[node] <= trie.n_nodes);
        for (uint32_t i = trie.firsts[node]; i < trie.firsts[node + 1]; i++, n++) {
            struct bytes piece = tokenizer_piece(tokenizer, trie.ids[i], false);
            ck_assert(bytes_equal(piece, (struct bytes){path, trie.depths[node]}));
            ck_assert_uint_eq(seen[trie.ids[i]]++, 0);
        }
    }
    for (uint32_t id = 0; id < trie.n_vocab; id++)
        n -= tokenizer_piece(tokenizer, (int32_t)id, false).len > 0;
    ck_assert_uint_eq(n, 0);
    free(seen);
}
END_TEST

/* Whether the answer so far and then the token can be taken, by an answer of its own. */
static bool takes(struct grammar *grammar, const struct buffer *text, struct bytes piece)
{
    struct grammar_answer *answer;
    struct error err;
    ck_assert_int_eq(grammar_answer_new(grammar, &answer, &err), 0);
    ck_assert_int_eq(grammar_answer_take(answer, (struct bytes){text->data, text->len}, &err), 0);
    bool taken = grammar_answer_take(answer, piece, &err) == 0;
    grammar_answer_free(answer);
    return taken;
}

/* Makes the mask, compares it, and returns how many tokens it allows. */
static uint32_t check_mask(struct grammar *grammar, struct grammar_answer *answer, const struct buffer *text,
                           uint32_t *bits)
{
    struct error err = {0};
    uint32_t n = 0;
    ck_assert_int_eq(grammar_answer_mask(answer, &trie, bits, &err), 0);
    for (uint32_t id = 0; id < trie.n_vocab; id++) {
        struct bytes piece = tokenizer_piece(tokenizer, (int32_t)id, false);
        bool allowed = bits[id / 32] >> id % 32 & 1;
        n += allowed;
        ck_assert_msg(allowed == (piece.len > 0 && takes(grammar, text, piece)),
                      "behind \"%.*s\" \"%.*s\" is %d", (int)text->len, text->data, (int)piece.len,
                      (const char *)piece.data, allowed);
    }
    return n;
}

START_TEST(a_mask_is_what_each_token_alone_says)
{
    static const struct {
        enum grammar_kind kind;
        const char *text;
    } cases[] = {
        {GRAMMAR_JSON, ""},
        {GRAMMAR_SCHEMA, "{\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":12},\"tags\":{"
                         "\"items\":{\"enum\":[\"the\",\"this\",\"a\"]}}},"
                         "\"required\":[\"name\",\"tags\"]}"},
        {GRAMMAR_SCHEMA, "{\"items\":{\"type\":\"integer\",\"minimum\":10,\"maximum\":2500},\"minItems\":3}"},
        {GRAMMAR_GBNF,
         "root ::= (word blank)* word \".\"\nblank ::= \" \"*\nword ::= [a-zA-Z']+ | \"(\" word \")\""},
        {GRAMMAR_REGEX, "(the |of |[aeiou]{2,5} ){3,}end"},
    };
    const uint32_t words = trie.n_vocab / 32 + 1;
    uint32_t *bits = calloc(words, sizeof *bits);
    unsigned seed = 4;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct grammar *grammar = grammar_of(cases[c].kind, cases[c].text);
        struct grammar_answer *answer;
        struct buffer text = {0};
        struct error err = {0};
        ck_assert_int_eq(grammar_answer_new(grammar, &answer, &err), 0);
        for (int step = 0; step < 25; step++) {
            uint32_t n = check_mask(grammar, answer, &text, bits);
            if (n == 0)
                break;
            uint32_t nth = (uint32_t)rand_r(&seed) % n;
            for (uint32_t id = 0; id < trie.n_vocab; id++)
                if ((bits[id / 32] >> id % 32 & 1) && nth-- == 0) {
                    struct bytes piece = tokenizer_piece(tokenizer, (int32_t)id, false);
                    ck_assert_int_eq(grammar_answer_take(answer, piece, &err), 0);
                    buffer_append(&text, piece.data, piece.len);
                    break;
                }
        }
        grammar_answer_free(answer);
        grammar_free(grammar);
        buffer_deinit(&text);
    }
    free(bits);
}
END_TEST

/* Of tokens that would go deeper than a grammar may, a mask allows none that is refused when it comes. */
START_TEST(masks_know_how_deep_a_grammar_may_nest)
{
    struct grammar *grammar = grammar_of(GRAMMAR_GBNF, "root ::= [a-z ] root \".\" | \"!\"");
    uint32_t *bits = calloc(trie.n_vocab / 32 + 1, sizeof *bits), last = 0, fewer = 0;
    struct error err = {0};
    for (size_t depth = MACHINE_MOST_DEPTH - 7; depth <= MACHINE_MOST_DEPTH; depth++) {
        struct grammar_answer *answer;
        struct buffer text = {0};
        for (size_t i = 0; i < depth; i++)
            buffer_append(&text, "a", 1);
        ck_assert_int_eq(grammar_answer_new(grammar, &answer, &err), 0);
        ck_assert_int_eq(grammar_answer_take(answer, (struct bytes){text.data, text.len}, &err), 0);
        uint32_t n = check_mask(grammar, answer, &text, bits);
        fewer += last > n;
        last = n;
        grammar_answer_free(answer);
        buffer_deinit(&text);
    }
    ck_assert_uint_ge(fewer, 3); /* words of many letters went first */
    grammar_free(grammar);
    free(bits);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, every_token_stands_once_in_the_trie);
    tcase_add_test(tests, masks_know_how_deep_a_grammar_may_nest);
    tcase_add_test(tests, a_mask_is_what_each_token_alone_says);
}

int main(void)
{
    return run_tests("mask", add);
}
