/* SPDX-License-Identifier: MIT */
/* A short list, the one used last in front. A grammar is read outside the lock: two threads may read the same
 * at once, and then the first to be done is kept. */

#include "worker/prepare/grammars.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

struct kept {
    struct grammar_text key; /* its text is ours */
    struct grammar *grammar;
    struct kept *next, *prev;
};

struct grammars {
    pthread_mutex_t lock;
    struct kept *list;
    uint32_t n;
};

_Static_assert((int)GRAMMAR_TEXT_GBNF == (int)GRAMMAR_GBNF && (int)GRAMMAR_TEXT_JSON == (int)GRAMMAR_JSON &&
                   (int)GRAMMAR_TEXT_SCHEMA == (int)GRAMMAR_SCHEMA &&
                   (int)GRAMMAR_TEXT_REGEX == (int)GRAMMAR_REGEX,
               "kinds are numbered alike");

int grammars_new(struct grammars **ret_grammars)
{
    struct grammars *grammars = calloc(1, sizeof *grammars);
    if (!grammars)
        return -ENOMEM;
    pthread_mutex_init(&grammars->lock, NULL);
    *ret_grammars = grammars;
    return 0;
}

static void drop(struct grammars *grammars, struct kept *kept)
{
    DL_DELETE(grammars->list, kept);
    grammars->n--;
    grammar_free(kept->grammar);
    free((void *)kept->key.text.data);
    free(kept);
}

struct grammars *grammars_free(struct grammars *grammars)
{
    if (!grammars)
        return NULL;
    while (grammars->list)
        drop(grammars, grammars->list);
    pthread_mutex_destroy(&grammars->lock);
    free(grammars);
    return NULL;
}

/* A reference to the grammar, which moves to the front; NULL: it is not there. Under the lock. */
static struct grammar *find(struct grammars *grammars, const struct grammar_text *text)
{
    struct kept *kept;
    DL_FOREACH(grammars->list, kept)
    {
        if (kept->key.kind != text->kind || !bytes_equal(kept->key.text, text->text))
            continue;
        DL_DELETE(grammars->list, kept);
        DL_PREPEND(grammars->list, kept);
        return grammar_ref(kept->grammar);
    }
    return NULL;
}

/* Keeps a grammar, if there is memory for its name. Under the lock. */
static void keep(struct grammars *grammars, const struct grammar_text *text, struct grammar *grammar)
{
    struct kept *kept = calloc(1, sizeof *kept);
    char *copy = malloc(text->text.len + 1);
    if (!kept || !copy) {
        free(kept);
        free(copy);
        return;
    }
    if (text->text.len > 0)
        memcpy(copy, text->text.data, text->text.len);
    kept->key = (struct grammar_text){.kind = text->kind, .text = {copy, text->text.len}};
    kept->grammar = grammar_ref(grammar);
    DL_PREPEND(grammars->list, kept);
    if (++grammars->n > GRAMMARS_KEPT)
        drop(grammars, grammars->list->prev);
}

int grammars_get(struct grammars *grammars, const struct grammar_text *text, struct grammar **ret_grammar,
                 struct error *err)
{
    pthread_mutex_lock(&grammars->lock);
    struct grammar *grammar = find(grammars, text), *other;
    pthread_mutex_unlock(&grammars->lock);
    if (!grammar) {
        int r = grammar_make((enum grammar_kind)text->kind, text->text, &grammar, err);
        if (r != 0)
            return r;
        pthread_mutex_lock(&grammars->lock);
        other = find(grammars, text);
        if (!other)
            keep(grammars, text, grammar);
        pthread_mutex_unlock(&grammars->lock);
        if (other) {
            grammar_free(grammar);
            grammar = other;
        }
    }
    *ret_grammar = grammar;
    return 0;
}
