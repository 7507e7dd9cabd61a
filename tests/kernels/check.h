/* SPDX-License-Identifier: MIT */
#ifndef TESTS_KERNELS_CHECK_H
#define TESTS_KERNELS_CHECK_H

/* The part of Check that the kernel tests use, for processors for which Check is not available. Tests have
 * neither a separate process nor a time limit: the first failure prints its location and ends the program
 * with status 1. */

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void TFun(int i);
typedef void SFun(void);

typedef struct TCase {
    const char *name;
    struct {
        const char *name;
        TFun *run;
        int first, end;
    } tests[32];
    int n;
    SFun *before, *after; /* run around each test; or NULL */
} TCase;

typedef TCase Suite; /* with a single case */

typedef struct SRunner {
    Suite *suite;
    int n_run;
} SRunner;

enum print_output { CK_NORMAL };

static const char *check_test = "";

#define START_TEST(name) static void name(int _i)
#define END_TEST

#define tcase_add_test(tcase, test)                  check_add(tcase, #test, test, 0, 1)
#define tcase_add_loop_test(tcase, test, first, end) check_add(tcase, #test, test, first, end)

static inline void check_add(TCase *tcase, const char *name, TFun *run, int first, int end)
{
    if (tcase->n == sizeof tcase->tests / sizeof *tcase->tests) {
        fprintf(stderr, "more tests than tests/kernels/check.h has room for\n");
        exit(1);
    }
    tcase->tests[tcase->n].name = name;
    tcase->tests[tcase->n].run = run;
    tcase->tests[tcase->n].first = first;
    tcase->tests[tcase->n++].end = end;
}

static inline TCase *tcase_create(const char *name)
{
    TCase *tcase = calloc(1, sizeof *tcase);
    if (!tcase)
        abort();
    tcase->name = name;
    return tcase;
}

static inline Suite *suite_create(const char *name)
{
    return tcase_create(name);
}

static inline void tcase_set_timeout(TCase *tcase, double seconds)
{
    (void)tcase, (void)seconds;
}

static inline void tcase_add_checked_fixture(TCase *tcase, SFun *before, SFun *after)
{
    tcase->before = before;
    tcase->after = after;
}

static inline void suite_add_tcase(Suite *suite, TCase *tcase)
{
    *suite = *tcase;
    free(tcase);
}

static inline SRunner *srunner_create(Suite *suite)
{
    SRunner *runner = calloc(1, sizeof *runner);
    if (!runner)
        abort();
    runner->suite = suite;
    return runner;
}

static inline void srunner_run_all(SRunner *runner, enum print_output output)
{
    const Suite *suite = runner->suite;
    (void)output;
    for (int t = 0; t < suite->n; t++)
        for (int i = suite->tests[t].first; i < suite->tests[t].end; i++, runner->n_run++) {
            check_test = suite->tests[t].name;
            if (suite->before)
                suite->before();
            suite->tests[t].run(i);
            if (suite->after)
                suite->after();
        }
    printf("%s: %d checks, none failed\n", suite->name, runner->n_run);
}

static inline int srunner_ntests_run(const SRunner *runner)
{
    return runner->n_run;
}

static inline int srunner_ntests_failed(const SRunner *runner)
{
    (void)runner;
    return 0; /* not reached on failure */
}

static inline void srunner_free(SRunner *runner)
{
    free(runner->suite);
    free(runner);
}

static inline void mark_point(void)
{
}

#define ck_abort_msg(...)                                                                                    \
    do {                                                                                                     \
        fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, check_test);                                      \
        fprintf(stderr, __VA_ARGS__);                                                                        \
        fprintf(stderr, "\n");                                                                               \
        exit(1);                                                                                             \
    } while (0)

#define ck_assert_msg(condition, ...)                                                                        \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            ck_abort_msg(__VA_ARGS__);                                                                       \
    } while (0)
#define ck_assert(condition) ck_assert_msg(condition, "%s does not hold", #condition)

#define CHECK_COMPARED(type, format, a, operator, b)                                                         \
    do {                                                                                                     \
        const type check_a = (a), check_b = (b);                                                             \
        ck_assert_msg(check_a operator check_b, "%s %s %s does not hold: %" format " and %" format, #a,      \
                      #operator, #b, check_a, check_b);                                                      \
    } while (0)

#define ck_assert_int_eq(a, b)    CHECK_COMPARED(intmax_t, PRIdMAX, a, ==, b)
#define ck_assert_int_ge(a, b)    CHECK_COMPARED(intmax_t, PRIdMAX, a, >=, b)
#define ck_assert_int_lt(a, b)    CHECK_COMPARED(intmax_t, PRIdMAX, a, <, b)
#define ck_assert_uint_eq(a, b)   CHECK_COMPARED(uintmax_t, PRIuMAX, a, ==, b)
#define ck_assert_uint_ge(a, b)   CHECK_COMPARED(uintmax_t, PRIuMAX, a, >=, b)
#define ck_assert_uint_gt(a, b)   CHECK_COMPARED(uintmax_t, PRIuMAX, a, >, b)
#define ck_assert_uint_le(a, b)   CHECK_COMPARED(uintmax_t, PRIuMAX, a, <=, b)
#define ck_assert_uint_lt(a, b)   CHECK_COMPARED(uintmax_t, PRIuMAX, a, <, b)
#define ck_assert_float_eq(a, b)  CHECK_COMPARED(float, ".9g", a, ==, b)
#define ck_assert_float_le(a, b)  CHECK_COMPARED(float, ".9g", a, <=, b)
#define ck_assert_ptr_null(a)     ck_assert_msg((a) == NULL, "%s is not NULL", #a)
#define ck_assert_ptr_nonnull(a)  ck_assert_msg((a) != NULL, "%s is NULL", #a)
#define ck_assert_str_eq(a, b)    ck_assert_msg(strcmp(a, b) == 0, "%s is \"%s\", not \"%s\"", #a, a, b)
#define ck_assert_mem_eq(a, b, n) ck_assert_msg(memcmp(a, b, n) == 0, "%s and %s differ", #a, #b)

#define ck_assert_double_eq_tol(a, b, tolerance)                                                             \
    do {                                                                                                     \
        const double check_a = (a), check_b = (b), check_tolerance = (tolerance);                            \
        ck_assert_msg(fabs(check_a - check_b) <= check_tolerance, "%s is %.17g, %s %.17g: further than %g",  \
                      #a, check_a, #b, check_b, check_tolerance);                                            \
    } while (0)
#define ck_assert_float_eq_tol(a, b, tolerance)                                                              \
    ck_assert_double_eq_tol((double)(a), (double)(b), (double)(tolerance))

#endif
