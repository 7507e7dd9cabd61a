/* SPDX-License-Identifier: MIT */
/* Words before byte-level BPE.
 *
 * A pre-tokenizer is a list of regular expressions (pretokenizer_table.c has them all). The first cuts the
 * text into its matches and what lies between them; each further one cuts every part again. A part is a
 * subject of its own, so that a look-ahead never sees beyond it. Expressions are compiled once (UTF, Unicode
 * properties, JIT where the machine has one) and shared by all threads; match data is per call. */

#define PCRE2_CODE_UNIT_WIDTH 8

#include "text/tokenizer/pretokenizer.h"

#include <errno.h>
#include <pcre2.h>
#include <stdlib.h>

#include "text/tokenizer/pretokenizer_table.h"

struct pretokenizer {
    const struct pretokenizer_traits *traits;
    pcre2_code *codes[PRETOKENIZER_MAX_EXPRESSIONS];
    size_t n;
};

int pretokenizer_new(struct bytes name, struct pretokenizer **ret_pretokenizer, struct error *err)
{
    const struct pretokenizer_expressions *expressions = pretokenizer_find(name);
    if (!expressions)
        return error_set(err, -EINVAL, "tokenizer.ggml.pre: unknown pre-tokenizer \"%.*s\"",
                         (int)(name.len < 64 ? name.len : 64), (const char *)name.data);
    struct pretokenizer *p = calloc(1, sizeof *p);
    if (!p)
        return error_set(err, -ENOMEM, "not enough memory for the pre-tokenizer");
    p->traits = &expressions->traits;
    for (; expressions->patterns[p->n]; p->n++) {
        int code;
        PCRE2_SIZE offset;
        p->codes[p->n] = pcre2_compile((PCRE2_SPTR)expressions->patterns[p->n], PCRE2_ZERO_TERMINATED,
                                       PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &code, &offset, NULL);
        if (!p->codes[p->n]) {
            pretokenizer_free(p);
            return error_set(err, -EINVAL, "pre-tokenizer \"%.*s\": PCRE2 error %d at offset %zu",
                             (int)name.len, (const char *)name.data, code, (size_t)offset);
        }
        pcre2_jit_compile(p->codes[p->n], PCRE2_JIT_COMPLETE); /* without it, matching is slower, not wrong */
    }
    *ret_pretokenizer = p;
    return 0;
}

struct pretokenizer *pretokenizer_free(struct pretokenizer *pretokenizer)
{
    if (!pretokenizer)
        return NULL;
    for (size_t i = 0; i < pretokenizer->n; i++)
        pcre2_code_free(pretokenizer->codes[i]);
    free(pretokenizer);
    return NULL;
}

const struct pretokenizer_traits *pretokenizer_traits(const struct pretokenizer *pretokenizer)
{
    return pretokenizer->traits;
}

static int prepare(struct pretokenizer_scratch *scratch)
{
    if (scratch->match_data)
        return 0;
    if (!scratch->match_context)
        scratch->match_context = pcre2_match_context_create(NULL);
    if (!scratch->jit_stack)
        scratch->jit_stack = pcre2_jit_stack_create(32 * 1024, 1024 * 1024, NULL);
    if (scratch->match_context && scratch->jit_stack)
        pcre2_jit_stack_assign(scratch->match_context, NULL, scratch->jit_stack);
    scratch->match_data = pcre2_match_data_create(1, NULL);
    return scratch->match_context && scratch->match_data ? 0 : -ENOMEM;
}

static int add_word(struct pretokenizer_scratch *scratch, size_t start, size_t len)
{
    if (len == 0)
        return 0;
    if (scratch->n == scratch->cap) {
        size_t cap = scratch->cap + scratch->cap / 2 + 64;
        void *moved = realloc(scratch->words, cap * sizeof *scratch->words);
        if (!moved)
            return -ENOMEM;
        scratch->words = moved;
        scratch->cap = cap;
    }
    scratch->words[scratch->n++] = (struct word){start, len};
    return 0;
}

/* Cuts one part with one expression: matches and gaps are appended in order. */
static int split_part(const pcre2_code *code, const char *text, struct word part,
                      struct pretokenizer_scratch *scratch)
{
    size_t at = 0;
    int r = 0;
    while (r == 0 && at < part.len) {
        int found =
            pcre2_match(code, (PCRE2_SPTR)text + part.start, part.len, at,
                        PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, scratch->match_data, scratch->match_context);
        if (found == PCRE2_ERROR_NOMATCH)
            return add_word(scratch, part.start + at, part.len - at);
        if (found < 0)
            return -ENOMEM; /* a limit of stack or steps: the same to the caller */
        const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(scratch->match_data);
        r = add_word(scratch, part.start + at, bounds[0] - at);
        if (r == 0)
            r = add_word(scratch, part.start + bounds[0], bounds[1] - bounds[0]);
        at = bounds[1];
    }
    return r;
}

int pretokenizer_split(const struct pretokenizer *pretokenizer, struct bytes text,
                       struct pretokenizer_scratch *scratch)
{
    int r = prepare(scratch);
    if (r < 0)
        return r;
    scratch->n = 0;
    r = add_word(scratch, 0, text.len);
    for (size_t e = 0; r == 0 && e < pretokenizer->n; e++) {
        struct word *parts = scratch->words;
        size_t n = scratch->n, cap = scratch->cap;
        scratch->words = scratch->spare;
        scratch->cap = scratch->spare_cap;
        scratch->n = 0;
        scratch->spare = parts;
        scratch->spare_cap = cap;
        for (size_t i = 0; r == 0 && i < n; i++)
            r = split_part(pretokenizer->codes[e], text.data, parts[i], scratch);
    }
    return r;
}

void pretokenizer_scratch_deinit(struct pretokenizer_scratch *scratch)
{
    free(scratch->words);
    free(scratch->spare);
    pcre2_match_data_free(scratch->match_data);
    pcre2_match_context_free(scratch->match_context);
    pcre2_jit_stack_free(scratch->jit_stack);
    *scratch = (struct pretokenizer_scratch){0};
}
