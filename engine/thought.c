/* SPDX-License-Identifier: MIT */
/* See thought.h. The text is read by the parser that separates answers for clients, without calls: what
 * counts here is what they see as a thought.
 *
 * The ids inside a thought count, among them those of a mark that the model writes to end it. A thought that
 * has used up the budget in the middle of a character goes on until that is whole, for three ids at most:
 * their text would be lost otherwise. After the first forced end, or where the budget is 0, another thought
 * may still be opened; it is closed at once, and then with `again`, so that a model which insists comes to
 * its answer.
 *
 * In the text of an answer a thought can begin only where its parts have marks. There the first id inside it
 * is never forced, so that one sampled beside the id which opened it was free to come. */

#include "engine/thought.h"

#include <errno.h>
#include <stdlib.h>

#include "text/dialect/answer_parser.h"

#define MOST_PARTS 3 /* of a character, after its first byte */

struct thought {
    struct engine_thinking thinking;
    struct answer_parser parser;
    struct ids end, again;
    uint32_t *mask;        /* [⌈n_vocab / 32⌉] */
    int32_t masked;        /* the id whose bit was set last, or TOKENIZER_NONE */
    bool excluded;         /* and it was not, for the grammar's sake */
    uint32_t used;         /* ids inside thoughts */
    const struct ids *way; /* the ids that end this one; NULL: it needs no end, or not yet */
    size_t at;             /* of them, those that came */
    bool ended;            /* one was forced to its end */
    bool late;             /* the thought began with the last id, in the text of the answer */
    bool lost;             /* the ids did not end it: it is left alone */
    uint32_t missing;      /* bytes of the character that the text ends with */
    uint32_t waited;       /* ids for them */
};

int thought_new(const struct engine_thinking *thinking, uint32_t n_vocab, struct thought **ret_thought)
{
    struct thought *thought = malloc(sizeof *thought);
    if (!thought)
        return -ENOMEM;
    *thought = (struct thought){.thinking = *thinking, .masked = TOKENIZER_NONE};
    int r = answer_parser_init(&thought->parser, thinking->dialect, NULL, 0, false, true,
                               thinking->inside ? DIALECT_START_THOUGHT : DIALECT_START_TEXT);
    thought->mask = calloc((n_vocab + (size_t)31) / 32, sizeof *thought->mask);
    if (r < 0 || !thought->mask || ids_append(&thought->end, thinking->end, thinking->n_end) < 0 ||
        ids_append(&thought->again, thinking->again, thinking->n_again) < 0) {
        thought_free(thought);
        return -ENOMEM;
    }
    if (thinking->inside && thinking->budget == 0)
        thought->way = &thought->end;
    *ret_thought = thought;
    return 0;
}

struct thought *thought_free(struct thought *thought)
{
    if (thought) {
        answer_parser_deinit(&thought->parser);
        ids_deinit(&thought->end);
        ids_deinit(&thought->again);
        free(thought->mask);
    }
    free(thought);
    return NULL;
}

/* ---- what came ---- */

static void on_text(void *arg, struct bytes text)
{
}

static void on_name(void *arg, const char *name)
{
}

static void on_end(void *arg)
{
}

/* The text that an id adds, with the marks that clients get. */
static struct bytes piece_of(const struct thought *thought, const struct tokenizer *tokenizer, int32_t id)
{
    struct bytes piece = tokenizer_piece(tokenizer, id, false);
    for (uint32_t i = 0; piece.len == 0 && i < thought->thinking.n_marks; i++)
        if (thought->thinking.marks[i] == id)
            return tokenizer_name(tokenizer, id);
    return piece;
}

/* Bytes of a character after its first. */
static uint32_t rest_of(uint8_t lead)
{
    return lead < 0xc2 || lead > 0xf4 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
}

static void follow_characters(struct thought *thought, struct bytes piece)
{
    const uint8_t *bytes = piece.data;
    for (size_t i = 0; i < piece.len; i++)
        if (bytes[i] < 0x80 || bytes[i] >= 0xc0)
            thought->missing = rest_of(bytes[i]);
        else if (thought->missing > 0)
            thought->missing--;
}

/* One more of the ids that end the thought came. False: it was another one. */
static bool take_forced(struct thought *thought, int32_t id)
{
    const bool right = id == thought->way->data[thought->at];
    thought->at++;
    if (right && thought->at < thought->way->len)
        return true;
    thought->way = NULL;
    thought->ended |= right;
    thought->lost = right && answer_parser_place(&thought->parser) == ANSWER_THINKS;
    return right;
}

int thought_take(struct thought *thought, const struct tokenizer *tokenizer, int32_t id)
{
    static const struct answer_sink nobody = {on_text, on_text, on_name, on_text, on_end, NULL};
    const struct bytes piece = piece_of(thought, tokenizer, id);
    const enum answer_place before = answer_parser_place(&thought->parser);
    if (!thought->way && (thought->lost || before == ANSWER_PAST))
        return 0;
    if (answer_parser_push(&thought->parser, piece, &nobody) < 0)
        return -ENOMEM;
    follow_characters(thought, piece);
    if (thought->way && take_forced(thought, id))
        return 0;
    thought->used += before == ANSWER_THINKS;
    const bool thinks = answer_parser_place(&thought->parser) == ANSWER_THINKS;
    thought->late = thinks && before == ANSWER_SPEAKS;
    if (!thinks || thought->late || thought->used < thought->thinking.budget)
        return 0;
    if (thought->missing > 0 && thought->waited < MOST_PARTS) {
        thought->waited++;
        return 0;
    }
    thought->way = thought->ended ? &thought->again : &thought->end;
    thought->at = thought->waited = 0;
    return 0;
}

/* ---- what has to come ---- */

uint32_t thought_free_ids(const struct thought *thought)
{
    const uint32_t left =
        thought->used < thought->thinking.budget ? thought->thinking.budget - thought->used : 0;
    if (thought->way)
        return 0;
    if (thought->lost)
        return UINT32_MAX;
    switch (answer_parser_place(&thought->parser)) {
    case ANSWER_THINKS:
        return left > 0 ? left : 1; /* the rest of a character */
    case ANSWER_MAY_THINK:
        return left + 1;
    case ANSWER_SPEAKS:
        return left > 0 ? left + 1 : 2;
    case ANSWER_PAST:
        break;
    }
    return UINT32_MAX;
}

int32_t thought_forced(const struct thought *thought)
{
    return thought->way ? thought->way->data[thought->at] : TOKENIZER_NONE;
}

const uint32_t *thought_mask(struct thought *thought, const uint32_t *allowed)
{
    const int32_t id = thought_forced(thought);
    if (thought->masked != TOKENIZER_NONE)
        thought->mask[thought->masked / 32] = 0;
    thought->masked = id;
    const uint32_t bit = 1u << id % 32;
    thought->excluded = allowed && !(allowed[id / 32] & bit);
    thought->mask[id / 32] = thought->excluded ? 0 : bit;
    return thought->mask;
}

bool thought_is_excluded(const struct thought *thought)
{
    return thought->excluded;
}
