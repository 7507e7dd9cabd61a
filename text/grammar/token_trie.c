/* SPDX-License-Identifier: MIT */
/* Made of the pieces in the order of their bytes: each adds the nodes that the one before it does not have.
 */

#include "text/grammar/token_trie.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct piece {
    struct bytes text;
    int32_t id;
};

static int compare_pieces(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    size_t n = x->text.len < y->text.len ? x->text.len : y->text.len;
    int order = memcmp(x->text.data, y->text.data, n);
    if (order != 0)
        return order;
    if (x->text.len != y->text.len)
        return x->text.len < y->text.len ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static uint32_t common_prefix(struct bytes a, struct bytes b)
{
    const uint8_t *x = a.data, *y = b.data;
    uint32_t n = 0;
    while (n < a.len && n < b.len && x[n] == y[n])
        n++;
    return n;
}

static int allocate(struct token_trie *trie, uint32_t n_nodes, uint32_t n_ids)
{
    trie->bytes = malloc(n_nodes + 1);
    trie->depths = malloc(n_nodes + 1);
    trie->skips = malloc((n_nodes + (size_t)1) * sizeof *trie->skips);
    trie->firsts = malloc((n_nodes + (size_t)1) * sizeof *trie->firsts);
    trie->ids = malloc((n_ids + (size_t)1) * sizeof *trie->ids);
    return trie->bytes && trie->depths && trie->skips && trie->firsts && trie->ids ? 0 : -ENOMEM;
}

static void fill(struct token_trie *trie, const struct piece *pieces, uint32_t n)
{
    uint32_t open[TOKEN_TRIE_MOST_BYTES + 1]; /* the nodes from the root to where the last piece ended */
    struct bytes last = {"", 0};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t shared = common_prefix(last, pieces[i].text);
        for (uint32_t d = shared; d < last.len; d++)
            trie->skips[open[d]] = trie->n_nodes;
        for (uint32_t d = shared; d < pieces[i].text.len; d++) {
            open[d] = trie->n_nodes;
            trie->bytes[trie->n_nodes] = ((const uint8_t *)pieces[i].text.data)[d];
            trie->depths[trie->n_nodes] = (uint8_t)(d + 1);
            trie->firsts[trie->n_nodes++] = i;
        }
        trie->ids[i] = pieces[i].id;
        last = pieces[i].text;
    }
    for (uint32_t d = 0; d < last.len; d++)
        trie->skips[open[d]] = trie->n_nodes;
    trie->firsts[trie->n_nodes] = n;
}

int token_trie_make(const struct tokenizer *tokenizer, uint32_t n_vocab, struct token_trie *ret_trie)
{
    uint32_t size = tokenizer_size(tokenizer), n = 0, n_nodes = 0;
    struct token_trie trie = {.n_vocab = n_vocab};
    struct piece *pieces = malloc((size + (size_t)1) * sizeof *pieces);
    if (!pieces)
        return -ENOMEM;
    for (uint32_t id = 0; id < size && id < n_vocab; id++) {
        struct bytes text = tokenizer_piece(tokenizer, (int32_t)id, false);
        if (text.len > 0 && text.len <= TOKEN_TRIE_MOST_BYTES)
            pieces[n++] = (struct piece){text, (int32_t)id};
    }
    qsort(pieces, n, sizeof *pieces, compare_pieces);
    for (uint32_t i = 0; i < n; i++)
        n_nodes += (uint32_t)pieces[i].text.len - (i ? common_prefix(pieces[i - 1].text, pieces[i].text) : 0);
    int r = allocate(&trie, n_nodes, n);
    if (r == 0) {
        fill(&trie, pieces, n);
        *ret_trie = trie;
    } else {
        token_trie_deinit(&trie);
    }
    free(pieces);
    return r;
}

void token_trie_deinit(struct token_trie *trie)
{
    free(trie->bytes);
    free(trie->depths);
    free(trie->skips);
    free(trie->firsts);
    free(trie->ids);
    *trie = (struct token_trie){0};
}
