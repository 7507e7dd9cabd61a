/* SPDX-License-Identifier: MIT */
/* Any bytes as a grammar: the first says of which kind, the text follows, and behind a zero byte an answer.
 * It is a grammar, or there is a reason on one line; an answer goes on byte by byte, and what a mask allows
 * is taken. */

#include "tests/fuzz/driver.h"

#include <stdlib.h>
#include <string.h>

#include "text/grammar/grammar.h"

/* A vocabulary of all bytes and a few longer pieces, in the order that a trie has. */
static void make_trie(struct token_trie *trie)
{
    static uint8_t bytes[260], depths[260];
    static uint32_t skips[260], firsts[261];
    static int32_t ids[261];
    uint32_t n = 0;
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t at = n;
        bytes[n] = (uint8_t)byte;
        depths[n++] = 1;
        for (uint8_t more = 0; byte == '"' && more < 3; more++) { /* ", ", and "," */
            bytes[n] = (uint8_t) ",:}"[more];
            depths[n] = 2;
            skips[n] = n + 1;
            n++;
        }
        skips[at] = n;
    }
    for (uint32_t i = 0; i <= n; i++) {
        firsts[i] = i;
        ids[i] = (int32_t)i;
    }
    *trie = (struct token_trie){n, bytes, depths, skips, firsts, ids, n};
}

/* Whether the piece of a node can be taken, without taking it: 1, 0, or −1 where that is too much to say. */
static int takes(struct grammar *grammar, const uint8_t *before, size_t len, const struct token_trie *trie,
                 uint32_t node)
{
    struct grammar_answer *answer;
    struct error err = {0};
    uint8_t piece[2];
    size_t n = trie->depths[node];
    if (grammar_answer_new(grammar, &answer, &err) != 0)
        return -1;
    piece[n - 1] = trie->bytes[node];
    if (n == 2)
        piece[0] = '"';
    bool taken = grammar_answer_take(answer, (struct bytes){before, len}, &err) == 0 &&
                 grammar_answer_take(answer, (struct bytes){piece, n}, &err) == 0;
    grammar_answer_free(answer);
    return strstr(err.text, "too complex") ? -1 : taken;
}

static void follow(struct grammar *grammar, const uint8_t *text, size_t len)
{
    struct grammar_answer *answer;
    struct token_trie trie;
    struct error err = {0};
    uint32_t bits[9];
    size_t n = 0;
    make_trie(&trie);
    if (grammar_answer_new(grammar, &answer, &err) != 0)
        return;
    while (n < len && grammar_answer_take(answer, (struct bytes){text + n, 1}, &err) == 0)
        n++;
    if (grammar_answer_mask(answer, &trie, bits, &err) == 0) {
        bool any = false;
        for (uint32_t node = 0; node < trie.n_nodes; node++) {
            bool allowed = bits[node / 32] >> node % 32 & 1;
            any |= allowed;
            if (node % 7 != n % 7 && node != '"')
                continue;
            int taken = takes(grammar, text, n, &trie, node);
            if (taken >= 0 && taken != allowed)
                abort();
        }
        if (grammar_answer_must_end(answer) && any)
            abort();
    }
    grammar_answer_free(answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct grammar *grammar;
    struct error err = {0};
    if (len == 0)
        return 0;
    const uint8_t *text = data + 1, *zero = memchr(text, 0, len - 1);
    size_t text_len = zero ? (size_t)(zero - text) : len - 1;
    int r = grammar_make((enum grammar_kind)(data[0] % 4), (struct bytes){text, text_len}, &grammar, &err);
    if (r == 0) {
        follow(grammar, zero ? zero + 1 : text, zero ? len - 2 - text_len : 0);
        grammar_free(grammar);
    } else if (r != GRAMMAR_E_INVALID || !err.text[0] || strchr(err.text, '\n')) {
        abort();
    }
    return 0;
}
