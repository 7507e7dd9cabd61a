/* SPDX-License-Identifier: MIT */
#include "tests/unit/run.h"
#include "tests/unit/text/tokenizer/vocabularies.h"
#include "text/tokenizer/special.h"

#include <errno.h>
#include <stdlib.h>

enum { MAX_TOKENS = 3000 };

/* A vocabulary that is written token by token, and the special tokens in it. */
struct spellings {
    struct test_vocabulary written;
    char *texts[MAX_TOKENS];
    struct vocabulary vocabulary;
    struct specials specials;
};

static void spellings_add(struct spellings *s, const char *text, size_t len, enum token_type type)
{
    char *copy = s->texts[s->written.n] = strndup(text, len);
    vocabulary_add(&s->written, (struct test_token){copy, type, 0});
}

/* What specials_init says of them. */
static int spellings_finish(struct spellings *s)
{
    struct error err = {0};
    const size_t n = s->written.n;
    vocabulary_finish(&s->written);
    struct gguf *gguf = vocabulary_to_gguf(&s->written, &err);
    ck_assert_msg(vocabulary_init(&s->vocabulary, gguf, &err) == 0, "%s", err.text);
    gguf_free(gguf);
    for (size_t i = 0; i < n; i++)
        free(s->texts[i]);
    return specials_init(&s->specials, &s->vocabulary);
}

static void spellings_deinit(struct spellings *s)
{
    specials_deinit(&s->specials);
    vocabulary_deinit(&s->vocabulary);
}

/* The rule itself, at whatever cost: each length over the whole text, the longest first, from the left. */
static void split_slowly(const struct vocabulary *v, struct bytes text, bool control_too,
                         const uint8_t *from_user, int32_t *ids)
{
    const char *data = text.data;
    uint8_t *taken = calloc(text.len + 1, 1);
    for (size_t i = 0; i < text.len; i++)
        ids[i] = -1;
    for (size_t len = v->longest; len > 0; len--)
        for (size_t at = 0; at + len <= text.len; at++) {
            int32_t id = vocabulary_find(v, data + at, len);
            bool control = id >= 0 && v->types[id] == TOKEN_CONTROL;
            bool user_defined = id >= 0 && v->types[id] == TOKEN_USER_DEFINED;
            if (memchr(taken + at, 1, len) || (!user_defined && !(control && control_too)) ||
                (control && from_user && memchr(from_user + at, 1, len)))
                continue;
            memset(taken + at, 1, len);
            ids[at] = id;
        }
    free(taken);
}

START_TEST(the_longest_token_wins_then_the_leftmost)
{
    static const enum token_type types[] = {TOKEN_USER_DEFINED, TOKEN_CONTROL, TOKEN_NORMAL};
    unsigned seed = 5;
    for (int round = 0; round < 300; round++) {
        static struct spellings s;
        vocabulary_begin(&s.written, "gpt2");
        for (int i = 0; i < 1 + round % 40; i++) {
            char token[12];
            size_t len = 1 + (size_t)rand_r(&seed) % 8;
            for (size_t k = 0; k < len; k++)
                token[k] = "ab<"[rand_r(&seed) % 3];
            spellings_add(&s, token, len, types[rand_r(&seed) % 3]);
        }
        ck_assert_int_eq(spellings_finish(&s), 0);
        char text[200];
        uint8_t from_user[200];
        int32_t expected[200];
        size_t len = (size_t)rand_r(&seed) % sizeof text;
        for (size_t k = 0; k < len; k++) {
            text[k] = "ab<"[rand_r(&seed) % 3];
            from_user[k] = rand_r(&seed) % 12 == 0;
        }
        for (int mode = 0; mode < 3; mode++) {
            struct fragments fragments = {0};
            const uint8_t *users = mode == 2 ? from_user : NULL;
            size_t at = 0;
            split_slowly(&s.vocabulary, (struct bytes){text, len}, mode > 0, users, expected);
            ck_assert_int_eq(specials_split(&s.specials, &s.vocabulary, (struct bytes){text, len}, mode > 0,
                                            users, &fragments),
                             0);
            for (size_t i = 0; i < fragments.n; i++) {
                struct fragment f = fragments.items[i];
                ck_assert_uint_eq(f.start, at);
                for (size_t k = 0; k < f.len; k++)
                    ck_assert_msg(expected[at + k] == (k == 0 ? f.id : -1), "round %d, mode %d: \"%.*s\"",
                                  round, mode, (int)len, text);
                at += f.len;
            }
            ck_assert_uint_eq(at, len);
            fragments_deinit(&fragments);
        }
        spellings_deinit(&s);
    }
}
END_TEST

/* Steps for each byte of a text of `n` bytes. */
static double steps_per_byte(const struct spellings *s, const char *text, size_t n)
{
    struct fragments fragments = {0};
    ck_assert_int_eq(
        specials_split(&s->specials, &s->vocabulary, (struct bytes){text, n}, true, NULL, &fragments), 0);
    double steps = (double)fragments.steps / (double)n;
    fragments_deinit(&fragments);
    return steps;
}

/* A pass for each length took 9 s for 100 KB. */
START_TEST(thousands_of_tokens_cost_no_more_than_a_few)
{
    enum { TOKENS = 2999, BYTES = 100000 };
    static struct spellings s;
    char *token = malloc(TOKENS + 1), *text = malloc(BYTES);
    ck_assert(token && text);
    vocabulary_begin(&s.written, "gpt2");
    for (size_t len = 1; len <= TOKENS; len++) { /* each the beginning and the end of the next */
        memset(token, 'a', len);
        spellings_add(&s, token, len, TOKEN_USER_DEFINED);
    }
    ck_assert_int_eq(spellings_finish(&s), 0);
    memset(text, 'a', BYTES);
    ck_assert_double_lt(steps_per_byte(&s, text, BYTES), 10);
    ck_assert_double_ge(steps_per_byte(&s, text, BYTES), 4); /* read, made a candidate, taken, covered */
    memset(text, 'b', BYTES);
    ck_assert_double_lt(steps_per_byte(&s, text, BYTES), 3);
    ck_assert_double_ge(steps_per_byte(&s, text, BYTES), 1);
    unsigned seed = 1;
    for (size_t i = 0; i < BYTES; i++)
        text[i] = rand_r(&seed) % 100 == 0 ? 'b' : 'a';
    ck_assert_double_lt(steps_per_byte(&s, text, BYTES), 10);
    spellings_deinit(&s);

    vocabulary_begin(&s.written, "gpt2");
    for (size_t i = 0; i < TOKENS; i++) { /* as vocabularies reserve them, all of another length */
        int len = snprintf(token, TOKENS, "<|reserved_%0*zu|>", (int)(1 + i / 2), i);
        spellings_add(&s, token, (size_t)len, TOKEN_CONTROL);
    }
    ck_assert_int_eq(spellings_finish(&s), 0);
    for (size_t i = 0; i < BYTES; i++)
        text[i] = "<|reserved_000000000000000001|>"[i % 31];
    ck_assert_double_lt(steps_per_byte(&s, text, BYTES), 10);
    spellings_deinit(&s);
    free(token);
    free(text);
}
END_TEST

START_TEST(names_beyond_any_vocabulary_are_refused)
{
    enum { BYTES = 1 << 22 };
    static struct spellings s;
    char *token = malloc(BYTES);
    ck_assert_ptr_nonnull(token);
    memset(token, 'a', BYTES);
    vocabulary_begin(&s.written, "gpt2");
    spellings_add(&s, token, BYTES, TOKEN_CONTROL);
    ck_assert_int_eq(spellings_finish(&s), -E2BIG);
    ck_assert_ptr_null(s.specials.index.nodes);
    spellings_deinit(&s);
    free(token);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_longest_token_wins_then_the_leftmost);
    tcase_add_test(tests, thousands_of_tokens_cost_no_more_than_a_few);
    tcase_add_test(tests, names_beyond_any_vocabulary_are_refused);
}

int main(void)
{
    return run_tests("special", add);
}
