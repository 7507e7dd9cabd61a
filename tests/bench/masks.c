/* SPDX-License-Identifier: MIT */
/* What the masks of a grammar cost: `masks MODEL [KIND FILE]`, with the vocabulary of a model file.
 *
 * Makes answers of ids that are drawn from the masks, a hundred of at most 400 ids, and prints how long it
 * took to read the grammar, and then for the first answer and all others the median, the 99th percentile and
 * the longest time of a step: taking the id's bytes and making the next mask. KIND is gbnf, json, schema or
 * regex; without it a schema of a person with a list of addresses is used, and any JSON. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "gguf/gguf.h"
#include "text/grammar/grammar.h"

#define ANSWERS 100
#define MOST    400

static const char person[] =
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"born\":{\"type\":\"string\","
    "\"format\":"
    "\"date\"},\"height\":{\"type\":\"number\",\"minimum\":0},\"married\":{\"type\":\"boolean\"},\"nick\":{"
    "\"type\":["
    "\"string\",\"null\"],\"maxLength\":40},\"addresses\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/"
    "address\"},\"minItems\":1}},\"required\":[\"name\",\"born\",\"height\",\"married\",\"nick\","
    "\"addresses\"],\"$defs\":{"
    "\"address\":{\"type\":\"object\",\"properties\":{\"street\":{\"type\":\"string\"},\"number\":{\"type\":"
    "\"integer\","
    "\"minimum\":1,\"maximum\":9999},\"kind\":{\"enum\":[\"home\",\"work\",\"other\"]}},\"required\":["
    "\"street\",\"number\","
    "\"kind\"]}}}";

static uint64_t times[2][ANSWERS * MOST];
static uint32_t n_times[2];
static uint64_t random_state = 1;

static _Noreturn void die(const char *why)
{
    fprintf(stderr, "masks: %s\n", why);
    exit(EXIT_FAILURE);
}

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((random_state >> 33) % below);
}

/* An id that the mask allows, with short ones likelier, as they are in texts; −1: none. */
static int32_t draw_id(const struct tokenizer *tokenizer, const uint32_t *bits, uint32_t n_vocab)
{
    int32_t chosen = -1;
    uint32_t n = 0;
    for (uint32_t id = 0; id < n_vocab; id++)
        if (bits[id / 32] >> id % 32 & 1)
            n++;
    if (n == 0)
        return -1;
    for (int tries = 0; tries < 4; tries++) {
        uint32_t nth = draw(n), id = 0;
        for (;; id++)
            if ((bits[id / 32] >> id % 32 & 1) && nth-- == 0)
                break;
        if (chosen < 0 || tokenizer_piece(tokenizer, (int32_t)id, false).len <
                              tokenizer_piece(tokenizer, chosen, false).len)
            chosen = (int32_t)id;
    }
    return chosen;
}

static void answer(struct grammar *grammar, const struct tokenizer *tokenizer, const struct token_trie *trie,
                   uint32_t *bits, bool first)
{
    struct grammar_answer *answer;
    struct error err = {0};
    uint32_t n = 0;
    if (grammar_answer_new(grammar, &answer, &err) != 0)
        die(err.text);
    for (int32_t id = -1; n < MOST; n++) {
        struct bytes text = id < 0 ? BYTES_LITERAL("") : tokenizer_piece(tokenizer, id, false);
        uint64_t begun = clock_ns();
        if (grammar_answer_take(answer, text, &err) != 0 ||
            grammar_answer_mask(answer, trie, bits, &err) != 0)
            die(err.text);
        times[!first][n_times[!first]++] = clock_ns() - begun;
        if (grammar_answer_must_end(answer) || (id = draw_id(tokenizer, bits, trie->n_vocab)) < 0)
            break;
    }
    grammar_answer_free(answer);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void print_times(const char *what, uint64_t *list, uint32_t n)
{
    qsort(list, n, sizeof *list, compare);
    printf("  %s: %u masks, p50 %.1f µs, p99 %.1f µs, longest %.1f µs\n", what, n, (double)list[n / 2] / 1e3,
           (double)list[(size_t)n * 99 / 100] / 1e3, (double)list[n - 1] / 1e3);
}

static void measure(const char *name, enum grammar_kind kind, struct bytes text,
                    const struct tokenizer *tokenizer, const struct token_trie *trie)
{
    struct grammar *grammar;
    struct error err = {0};
    uint64_t begun = clock_ns();
    if (grammar_make(kind, text, &grammar, &err) != 0)
        die(err.text);
    printf("%s: read in %.2f ms\n", name, (double)(clock_ns() - begun) / 1e6);
    uint32_t *bits = calloc((size_t)trie->n_vocab / 32 + 1, sizeof *bits);
    n_times[0] = n_times[1] = 0;
    for (int i = 0; i < ANSWERS; i++)
        answer(grammar, tokenizer, trie, bits, i == 0);
    print_times("first answer", times[0], n_times[0]);
    print_times("others      ", times[1], n_times[1]);
    free(bits);
    grammar_free(grammar);
}

static struct bytes read_file(const char *path)
{
    static char text[GRAMMAR_MOST_BYTES];
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(text, 1, sizeof text, file) : 0;
    if (!file)
        die("the grammar's file cannot be read");
    fclose(file);
    return (struct bytes){text, n};
}

int main(int argc, char **argv)
{
    static const char *const kinds[] = {"gbnf", "json", "schema", "regex"};
    struct gguf *gguf;
    struct tokenizer *tokenizer;
    struct token_trie trie;
    struct error err = {0};
    if (argc != 2 && argc != 4)
        die("usage: masks MODEL [KIND FILE]");
    if (gguf_open(argv[1], &gguf, &err) < 0 || tokenizer_new(gguf, &tokenizer, &err) < 0)
        die(err.text);
    uint64_t begun = clock_ns();
    if (token_trie_make(tokenizer, tokenizer_size(tokenizer), &trie) < 0)
        die("out of memory");
    printf("%u tokens, %u nodes, in %.1f ms\n", trie.n_vocab, trie.n_nodes,
           (double)(clock_ns() - begun) / 1e6);
    if (argc == 2) {
        measure("a schema", GRAMMAR_SCHEMA, bytes_of_string(person), tokenizer, &trie);
        measure("any JSON", GRAMMAR_JSON, BYTES_LITERAL(""), tokenizer, &trie);
    }
    for (int kind = 0; argc == 4 && kind < 4; kind++)
        if (strcmp(argv[2], kinds[kind]) == 0)
            measure(argv[3], (enum grammar_kind)kind, read_file(argv[3]), tokenizer, &trie);
    token_trie_deinit(&trie);
    tokenizer_free(tokenizer);
    gguf_free(gguf);
    return EXIT_SUCCESS;
}
