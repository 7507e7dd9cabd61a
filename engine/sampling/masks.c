/* SPDX-License-Identifier: MIT */
/* One thread makes all masks, so what answers of a grammar share (grammar.h) needs no lock. Those that were
 * quick so far go first: a grammar that takes long keeps nobody waiting but while its own mask is made.
 * Whoever frees a mask leaves it to the thread too, for the same reason.
 *
 * The lock is of the list and of each mask's state. What a mask holds is the thread's from ON_ITS_WAY on and
 * the readers' from THERE on. The trie of the vocabulary is made with the first mask: a tenth of a second for
 * 128,000 tokens, while the prompt is being read. */

#include "engine/sampling/masks.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "text/grammar/token_trie.h"

#include <utlist.h>

#define QUICK_NS (1 * CLOCK_NS_PER_MS) /* what a step may wait for */
#define SLICE_NS (5 * CLOCK_NS_PER_MS) /* of the ids of a resumed answer, before others have their turn */

enum mask_state { ON_ITS_WAY, THERE };

struct mask {
    struct masks *owner;
    struct grammar *grammar;
    struct grammar_answer *answer; /* NULL: not begun */
    struct ids end_ids, spelled;
    struct ids taken; /* ids that the answer has not been told */
    uint32_t *bits;
    enum mask_state state;
    bool unwanted; /* to be freed by the thread */
    bool complete; /* the grammar may end here */
    int failed;    /* 0, or a code with the reason */
    struct error failure;
    uint64_t made_ns;         /* how long the last one took; UINT64_MAX: there was none */
    struct mask *next, *prev; /* in the thread's list */
};

struct masks {
    const struct tokenizer *tokenizer;
    uint32_t n_vocab;
    struct token_trie trie;
    bool trie_made;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below, and of the state of masks */
    pthread_cond_t asked, made;
    struct mask *list;
    uint32_t n_on_their_way;
    bool ending;
};

/* ---- the thread ---- */

static int make_trie(struct masks *masks)
{
    int r = masks->trie_made ? 0 : token_trie_make(masks->tokenizer, masks->n_vocab, &masks->trie);
    masks->trie_made = r == 0;
    return r;
}

/* The text that an id adds. */
static struct bytes piece_of(const struct mask *mask, int32_t id)
{
    struct bytes piece = tokenizer_piece(mask->owner->tokenizer, id, false);
    for (size_t i = 0; piece.len == 0 && i < mask->spelled.len; i++)
        if (mask->spelled.data[i] == id)
            return tokenizer_name(mask->owner->tokenizer, id);
    return piece;
}

/* Control tokens are in no place of the trie: each of those that are text is tried by itself. */
static int allow_spelled(struct mask *mask, struct error *err)
{
    int r = 0;
    for (size_t i = 0; i < mask->spelled.len && (r == 0 || r == GRAMMAR_E_INVALID); i++) {
        uint32_t id = (uint32_t)mask->spelled.data[i];
        struct bytes text = piece_of(mask, mask->spelled.data[i]);
        r = id < mask->owner->n_vocab && text.len > 0 ? grammar_answer_try(mask->answer, text, err)
                                                      : GRAMMAR_E_INVALID;
        if (r == 0)
            mask->bits[id / 32] |= 1u << id % 32;
    }
    return r == GRAMMAR_E_INVALID ? 0 : r;
}

/* As far as a slice of time goes: ids are left in `taken` then. */
static int follow(struct mask *mask, uint64_t begun, struct error *err)
{
    int r = make_trie(mask->owner);
    if (r == 0 && !mask->answer)
        r = grammar_answer_new(mask->grammar, &mask->answer, err);
    size_t i = 0;
    for (; i < mask->taken.len && r == 0 && clock_ns() - begun < SLICE_NS; i++)
        r = grammar_answer_take(mask->answer, piece_of(mask, mask->taken.data[i]), err);
    if (r == GRAMMAR_E_INVALID && i > 0) /* what is sampled here is allowed: it was made elsewhere */
        error_prefix(err, r, "output");
    mask->taken.len -= i;
    memmove(mask->taken.data, mask->taken.data + i, mask->taken.len * sizeof *mask->taken.data);
    if (r != 0 || mask->taken.len > 0)
        return r;
    r = grammar_answer_mask(mask->answer, &mask->owner->trie, mask->bits, err);
    return r == 0 ? allow_spelled(mask, err) : r;
}

static void make(struct mask *mask)
{
    uint64_t begun = clock_ns();
    struct error err = {0};
    const size_t words = (mask->owner->n_vocab + 31) / 32;
    if (mask->failed == 0)
        mask->failed = follow(mask, begun, &err);
    if (mask->taken.len > 0 && mask->failed == 0)
        return;
    if (mask->failed != 0 && mask->failure.text[0] == 0)
        error_set(&mask->failure, mask->failed, "%s", err.text[0] ? err.text : "grammar: out of memory");
    if (mask->failed != 0)
        memset(mask->bits, 0, words * sizeof *mask->bits);
    mask->complete = mask->failed == 0 && grammar_answer_may_end(mask->answer);
    for (size_t i = 0; i < mask->end_ids.len; i++) {
        uint32_t id = (uint32_t)mask->end_ids.data[i], bit = 1u << id % 32;
        if (id < mask->owner->n_vocab)
            mask->bits[id / 32] = mask->complete ? mask->bits[id / 32] | bit : mask->bits[id / 32] & ~bit;
    }
    __atomic_store_n(&mask->made_ns, clock_ns() - begun, __ATOMIC_RELAXED);
}

static void destroy(struct mask *mask)
{
    grammar_answer_free(mask->answer);
    grammar_free(mask->grammar);
    ids_deinit(&mask->end_ids);
    ids_deinit(&mask->spelled);
    ids_deinit(&mask->taken);
    free(mask->bits);
    free(mask);
}

static void *thread_main(void *arg)
{
    struct masks *masks = arg;
    pthread_mutex_lock(&masks->lock);
    while (!masks->ending || masks->list) {
        struct mask *mask = masks->list;
        if (!mask) {
            pthread_cond_wait(&masks->asked, &masks->lock);
            continue;
        }
        bool unwanted = mask->unwanted;
        DL_DELETE(masks->list, mask);
        pthread_mutex_unlock(&masks->lock);
        if (!unwanted)
            make(mask);
        pthread_mutex_lock(&masks->lock);
        if (!mask->unwanted && mask->failed == 0 && mask->taken.len > 0) {
            DL_APPEND(masks->list, mask); /* it goes on later */
            continue;
        }
        if (mask->state == ON_ITS_WAY)
            masks->n_on_their_way--;
        mask->state = THERE;
        if (mask->unwanted)
            destroy(mask);
        pthread_cond_broadcast(&masks->made);
    }
    pthread_mutex_unlock(&masks->lock);
    return NULL;
}

int masks_new(const struct tokenizer *tokenizer, uint32_t n_vocab, struct masks **ret_masks)
{
    struct masks *masks = calloc(1, sizeof *masks);
    pthread_condattr_t monotonic;
    sigset_t all, before;
    if (!masks)
        return -ENOMEM;
    masks->tokenizer = tokenizer;
    masks->n_vocab = n_vocab;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&masks->lock, NULL);
    pthread_cond_init(&masks->asked, NULL);
    pthread_cond_init(&masks->made, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(&masks->thread, NULL, thread_main, masks);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r != 0) {
        free(masks);
        return -r;
    }
    *ret_masks = masks;
    return 0;
}

struct masks *masks_free(struct masks *masks)
{
    if (!masks)
        return NULL;
    pthread_mutex_lock(&masks->lock);
    masks->ending = true;
    pthread_cond_signal(&masks->asked);
    pthread_mutex_unlock(&masks->lock);
    pthread_join(masks->thread, NULL);
    pthread_mutex_destroy(&masks->lock);
    pthread_cond_destroy(&masks->asked);
    pthread_cond_destroy(&masks->made);
    token_trie_deinit(&masks->trie);
    free(masks);
    return NULL;
}

void masks_wait(struct masks *masks, uint32_t ms)
{
    uint64_t until_ns = clock_ns() + ms * CLOCK_NS_PER_MS;
    const struct timespec until = {(time_t)(until_ns / CLOCK_NS_PER_S), (long)(until_ns % CLOCK_NS_PER_S)};
    pthread_mutex_lock(&masks->lock);
    if (masks->n_on_their_way > 0)
        pthread_cond_timedwait(&masks->made, &masks->lock, &until);
    pthread_mutex_unlock(&masks->lock);
}

/* ---- masks ---- */

/* Hands the mask to the thread. Under the lock. */
static void ask(struct mask *mask)
{
    struct masks *masks = mask->owner;
    masks->n_on_their_way += mask->state == THERE;
    mask->state = ON_ITS_WAY;
    if (mask->made_ns < QUICK_NS)
        DL_PREPEND(masks->list, mask);
    else
        DL_APPEND(masks->list, mask);
    pthread_cond_signal(&masks->asked);
}

int mask_new(struct masks *masks, struct grammar *grammar, struct ids_view end_ids, struct ids_view spelled,
             struct ids_view output, struct mask **ret_mask)
{
    struct mask *mask = calloc(1, sizeof *mask);
    if (!mask)
        return -ENOMEM;
    mask->owner = masks;
    mask->grammar = grammar_ref(grammar);
    mask->made_ns = UINT64_MAX;
    mask->state = THERE;
    mask->bits = calloc((masks->n_vocab + (size_t)31) / 32, sizeof *mask->bits);
    /* With room for one more, so that mask_take cannot fail. */
    if (!mask->bits || ids_append(&mask->end_ids, end_ids.items, end_ids.n) < 0 ||
        ids_append(&mask->spelled, spelled.items, spelled.n) < 0 ||
        ids_grow(&mask->taken, output.n + 1) < 0 || ids_append(&mask->taken, output.items, output.n) < 0) {
        destroy(mask);
        return -ENOMEM;
    }
    pthread_mutex_lock(&masks->lock);
    ask(mask);
    pthread_mutex_unlock(&masks->lock);
    *ret_mask = mask;
    return 0;
}

struct mask *mask_free(struct mask *mask)
{
    if (!mask)
        return NULL;
    struct masks *masks = mask->owner;
    pthread_mutex_lock(&masks->lock);
    mask->unwanted = true;
    if (mask->state == THERE)
        ask(mask);
    pthread_mutex_unlock(&masks->lock);
    return NULL;
}

void mask_take(struct mask *mask, int32_t id)
{
    struct masks *masks = mask->owner;
    pthread_mutex_lock(&masks->lock);
    assert(mask->state == THERE && mask->taken.len == 0);
    mask->taken.data[mask->taken.len++] = id;
    ask(mask);
    pthread_mutex_unlock(&masks->lock);
}

bool mask_is_near(const struct mask *mask)
{
    struct masks *masks = mask->owner;
    pthread_mutex_lock(&masks->lock);
    bool near = mask->state == THERE || __atomic_load_n(&mask->made_ns, __ATOMIC_RELAXED) < QUICK_NS;
    pthread_mutex_unlock(&masks->lock);
    return near;
}

bool mask_is_ready(const struct mask *mask)
{
    struct masks *masks = mask->owner;
    pthread_mutex_lock(&masks->lock);
    bool ready = mask->state == THERE;
    pthread_mutex_unlock(&masks->lock);
    return ready;
}

const uint32_t *mask_bits(const struct mask *mask)
{
    return mask->bits;
}

void mask_await(void *arg)
{
    struct mask *mask = arg;
    struct masks *masks = mask->owner;
    pthread_mutex_lock(&masks->lock);
    while (mask->state != THERE)
        pthread_cond_wait(&masks->made, &masks->lock);
    pthread_mutex_unlock(&masks->lock);
}

bool mask_has_ended(const struct mask *mask, struct error *ret_reason)
{
    if (mask->failed != 0)
        error_set(ret_reason, 0, "%s", mask->failure.text);
    else
        error_set(ret_reason, 0, "no token of the model continues the grammar");
    return mask->failed == 0 && mask->complete;
}

bool mask_was_too_much(const struct mask *mask)
{
    return mask->failed == GRAMMAR_E_INVALID;
}
