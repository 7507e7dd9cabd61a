/* SPDX-License-Identifier: MIT */
/* Cutting a text at its special tokens.
 *
 * The longest tokens come first, over the whole text: what they cover is gone for the shorter ones. So a pass
 * per length is made, not per token: a vocabulary with 2,000 user-defined tokens of 20 lengths costs 20
 * passes. In a pass, a set of first bytes sorts out nearly every position before anything is hashed. */

#include "worker/model/special.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "worker/model/tokenizer.h"
#include "worker/model/utf8.h"

struct special_class {
    uint32_t len;
    uint64_t first_bytes[2][4]; /* [0] user-defined only, [1] control too: a bit for each first byte */
};

static bool is_special(uint8_t type)
{
    return type == TOKEN_USER_DEFINED || type == TOKEN_CONTROL || type == TOKEN_UNKNOWN;
}

static int longer_first(const void *a, const void *b)
{
    uint32_t x = ((const struct special_class *)a)->len, y = ((const struct special_class *)b)->len;
    return (x < y) - (x > y);
}

static void add_first_byte(uint64_t set[4], uint8_t byte)
{
    set[byte / 64] |= UINT64_C(1) << (byte % 64);
}

static bool has_byte(const uint64_t set[4], uint8_t byte)
{
    return set[byte / 64] >> (byte % 64) & 1;
}

int specials_init(struct specials *specials, const struct vocabulary *vocabulary)
{
    *specials = (struct specials){0};
    /* class_of[len] = 1 + index of the class. */
    uint32_t *class_of = calloc((size_t)vocabulary->longest + 1, sizeof *class_of);
    if (!class_of)
        return -ENOMEM;
    int r = 0;
    for (uint32_t id = 0; id < vocabulary->size; id++) {
        struct bytes text = vocabulary_text(vocabulary, id);
        if (!is_special(vocabulary->types[id]) || text.len == 0 || !utf8_is_valid(text))
            continue;
        if (class_of[text.len] == 0) {
            void *moved = realloc(specials->classes, (specials->n + 1) * sizeof *specials->classes);
            if (!moved) {
                r = -ENOMEM;
                goto out;
            }
            specials->classes = moved;
            specials->classes[specials->n++] = (struct special_class){.len = (uint32_t)text.len};
            class_of[text.len] = (uint32_t)specials->n;
        }
        struct special_class *class = &specials->classes[class_of[text.len] - 1];
        uint8_t first = *(const uint8_t *)text.data;
        if (vocabulary->types[id] == TOKEN_USER_DEFINED)
            add_first_byte(class->first_bytes[0], first);
        add_first_byte(class->first_bytes[1], first);
    }
    if (specials->n > 0)
        qsort(specials->classes, specials->n, sizeof *specials->classes, longer_first);
out:
    free(class_of);
    if (r < 0)
        specials_deinit(specials);
    return r;
}

void specials_deinit(struct specials *specials)
{
    free(specials->classes);
    *specials = (struct specials){0};
}

void fragments_deinit(struct fragments *fragments)
{
    free(fragments->items);
    *fragments = (struct fragments){0};
}

static int add_fragment(struct fragments *list, size_t start, size_t len, int32_t id)
{
    if (len == 0)
        return 0;
    if (list->n == list->cap) {
        size_t cap = list->cap + list->cap / 2 + 16;
        void *moved = realloc(list->items, cap * sizeof *list->items);
        if (!moved)
            return -ENOMEM;
        list->items = moved;
        list->cap = cap;
    }
    list->items[list->n++] = (struct fragment){.start = start, .len = len, .id = id};
    return 0;
}

/* Does white space that follows this token belong to it? In Phi-3's vocabulary it does, but for three. */
static bool strips_right(const struct specials *specials, struct bytes token)
{
    return specials->strip_right && !bytes_equal(token, BYTES_LITERAL("<unk>")) &&
           !bytes_equal(token, BYTES_LITERAL("<s>")) && !bytes_equal(token, BYTES_LITERAL("<|endoftext|>"));
}

static bool is_white(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

struct cut {
    const struct specials *specials;
    const struct vocabulary *vocabulary;
    const uint8_t *text, *from_user;
    bool control_too;
};

/* The token of this class that stands at `at`, or -1. */
static int32_t find_special(const struct cut *cut, const struct special_class *class, size_t at)
{
    if (!has_byte(class->first_bytes[cut->control_too], cut->text[at]))
        return -1;
    int32_t id = vocabulary_find(cut->vocabulary, cut->text + at, class->len);
    if (id < 0 || cut->vocabulary->types[id] == TOKEN_USER_DEFINED)
        return id;
    if (!is_special(cut->vocabulary->types[id]) || !cut->control_too)
        return -1;
    return cut->from_user && memchr(cut->from_user + at, 1, class->len) ? -1 : id;
}

/* Cuts one ordinary fragment at the tokens of one class and appends the parts to `out`. */
static int split_fragment(const struct cut *cut, const struct special_class *class, struct fragment whole,
                          struct fragments *out)
{
    size_t end = whole.start + whole.len, begin = whole.start, at = begin;
    int r = 0;
    while (r == 0 && at + class->len <= end) {
        int32_t id = find_special(cut, class, at);
        if (id < 0) {
            at++;
            continue;
        }
        r = add_fragment(out, begin, at - begin, -1);
        if (r == 0)
            r = add_fragment(out, at, class->len, id);
        at += class->len;
        if (strips_right(cut->specials, vocabulary_text(cut->vocabulary, (uint32_t)id)))
            while (at < end && is_white(cut->text[at]))
                at++;
        begin = at;
    }
    return r < 0 ? r : add_fragment(out, begin, end - begin, -1);
}

int specials_split(const struct specials *specials, const struct vocabulary *vocabulary, struct bytes text,
                   bool control_too, const uint8_t *from_user, struct fragments *ret_fragments)
{
    const struct cut cut = {specials, vocabulary, text.data, from_user, control_too};
    struct fragments now = {0}, then = {0};
    int r = add_fragment(&now, 0, text.len, -1);
    for (size_t c = 0; r == 0 && c < specials->n; c++) {
        const struct special_class *class = &specials->classes[c];
        then.n = 0;
        for (size_t i = 0; r == 0 && i < now.n; i++) {
            struct fragment f = now.items[i];
            r = f.id >= 0 || f.len < class->len ? add_fragment(&then, f.start, f.len, f.id)
                                                : split_fragment(&cut, class, f, &then);
        }
        struct fragments swap = now;
        now = then;
        then = swap;
    }
    fragments_deinit(&then);
    if (r < 0) {
        fragments_deinit(&now);
        return r;
    }
    *ret_fragments = now;
    return 0;
}
