/* SPDX-License-Identifier: MIT */
/* Words before byte-level BPE.
 *
 * A pre-tokenizer is a list of regular expressions. The first cuts the text into its matches and what lies
 * between them; each further one cuts every part again. A part is a subject of its own, so that a look-ahead
 * never sees beyond it. Expressions are compiled once (UTF, Unicode properties, JIT where the machine has
 * one) and shared by all threads; match data is per call.
 *
 * White space is written out as the Unicode property White_Space, because \s also takes U+180E in PCRE. The
 * expressions match without nested repeats, and none is tried again and again inside one run of blanks: so
 * splitting is linear in the text, whatever it is. (DeepSeek's "blanks at the end" looks back for that
 * reason: it begins where a run begins.) */

#define PCRE2_CODE_UNIT_WIDTH 8

#include "worker/model/pretokenizer.h"

#include <errno.h>
#include <pcre2.h>
#include <stdlib.h>

#define BLANK "\\t-\\r\\x{85}\\p{Z}" /* inside brackets: White_Space */

/* The expression of GPT-2; others build on it. */
#define GPT2_WORDS                                                                                           \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" BLANK "\\p{L}\\p{N}]+|[" BLANK "]+(?![^" BLANK        \
    "])|[" BLANK "]+"

/* Those of Llama 3 and Qwen 2 differ in how many digits make a word. */
#define LLAMA3_WORDS(digits)                                                                                 \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits "| ?[^" BLANK                       \
    "\\p{L}\\p{N}]+[\\r\\n]*|[" BLANK "]*[\\r\\n]+|[" BLANK "]+(?![^" BLANK "])|[" BLANK "]+"

/* Letters with an upper and a lower case, as DeepSeek lists them; by number, because several look alike. */
#define CASED_LETTERS                                                                                        \
    "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{293}"          \
    "\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}"                    \
    "\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}"          \
    "\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}"          \
    "\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}"        \
    "\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}"         \
    "\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}"         \
    "\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}"        \
    "\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}"          \
    "\\x{2126}\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}"                   \
    "\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}"                   \
    "\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}"         \
    "\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}"        \
    "\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}"                       \
    "\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}"                   \
    "\\x{1e900}-\\x{1e943}"

enum { MAX_EXPRESSIONS = 6 };

static const struct expressions {
    struct pretokenizer_traits traits;
    const char *names; /* separated by blanks, with one at either end */
    const char *patterns[MAX_EXPRESSIONS + 1];
} table[] = {
    {{0}, " default gpt-2 phi-2 mpt olmo ", {GPT2_WORDS}},
    {{.whole_words = true, .adds_bos = true}, " llama-bpe llama3 llama-v3 ", {LLAMA3_WORDS("\\p{N}{1,3}")}},
    {{0}, " qwen2 deepseek-r1-qwen ", {LLAMA3_WORDS("\\p{N}")}},
    {{0}, " starcoder ", {"\\p{N}", GPT2_WORDS}},
    {{0}, " falcon ", {"[\\p{P}$+<=>^~|`]+", GPT2_WORDS, "[0-9][0-9][0-9]"}},
    {{0},
     " deepseek-llm ",
     {"[\\r\\n]", "[" BLANK "]?[" CASED_LETTERS "]+",
      "[" BLANK "]?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]+",
      "(?<![" BLANK "])[" BLANK "]+$", "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+",
      "\\p{N}+"}},
};

struct pretokenizer {
    const struct pretokenizer_traits *traits;
    pcre2_code *codes[MAX_EXPRESSIONS];
    size_t n;
};

static const struct expressions *find_expressions(struct bytes name)
{
    if (name.len == 0)
        name = BYTES_LITERAL("default");
    if (memchr(name.data, ' ', name.len))
        return NULL;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const char *at = table[i].names;
        while (at[1] != '\0') {
            const char *end = strchr(at + 1, ' ');
            if (bytes_equal(name, (struct bytes){at + 1, (size_t)(end - at - 1)}))
                return &table[i];
            at = end;
        }
    }
    return NULL;
}

int pretokenizer_new(struct bytes name, struct pretokenizer **ret_pretokenizer, struct error *err)
{
    const struct expressions *expressions = find_expressions(name);
    if (!expressions)
        return error_set(err, -EINVAL, "tokenizer.ggml.pre: the pre-tokenizer \"%.*s\" is not known",
                         (int)(name.len < 64 ? name.len : 64), (const char *)name.data);
    struct pretokenizer *p = calloc(1, sizeof *p);
    if (!p)
        return error_set(err, -ENOMEM, "no memory for the pre-tokenizer");
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
