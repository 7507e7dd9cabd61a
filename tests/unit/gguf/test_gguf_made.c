/* SPDX-License-Identifier: MIT */
/* Tensors that are made when they are needed: by whom, when, and how often. */

#include "gguf/gguf_assemble.h"
#include "tests/unit/child.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 256, ROWS = 1000, BYTES = ROWS * COLUMNS * 4 };

struct made {
    atomic_uint rows; /* so far */
    atomic_uint freed;
    uint64_t broken; /* a row that cannot be made */
};

static struct made made;
static struct gguf *gguf;
static float plain[COLUMNS];

/* Number c of row r is 1000 · r + c. */
static int make(void *arg, size_t number, uint64_t first, uint64_t n, void *out, struct error *err)
{
    struct made *counts = arg;
    ck_assert_uint_eq(number, 1);
    for (uint64_t r = 0; r < n; r++) {
        if (first + r == counts->broken)
            return error_set(err, -EINVAL, "row %u is broken", (unsigned)counts->broken);
        for (uint64_t c = 0; c < COLUMNS; c++)
            ((float *)out)[r * COLUMNS + c] = (float)(1000 * (first + r) + c);
        atomic_fetch_add(&counts->rows, 1);
    }
    return 0;
}

static void free_made(void *arg)
{
    atomic_fetch_add(&((struct made *)arg)->freed, 1);
}

static const struct gguf_maker maker = {.make = make, .free = free_made, .arg = &made};

/* Two tensors: one that is there, one that is made. */
static void set_up(void)
{
    struct gguf_writer *writer;
    struct error err = {0};
    void *memory;
    made = (struct made){.broken = UINT64_MAX};
    plain[7] = 7;
    ck_assert_int_eq(gguf_new(&gguf), 0);
    ck_assert_int_eq(gguf_writer_new(&writer), 0);
    ck_assert_int_eq(gguf_writer_tensor(writer, "a", 1, (uint64_t[]){COLUMNS}, FORMAT_F32, NULL, NULL), 0);
    ck_assert_int_eq(gguf_writer_tensor(writer, "b", 2, (uint64_t[]){COLUMNS, ROWS}, FORMAT_F32, NULL, NULL),
                     0);
    ck_assert_int_eq(gguf_add_maker(gguf, &maker, BYTES, &memory), 0);
    ck_assert_msg(gguf_assemble(gguf, writer, (const void *[]){plain, memory}, &err) == 0, "%s", err.text);
    gguf_writer_free(writer);
}

static void tear_down(void)
{
    gguf_free(gguf);
}

static float number(uint64_t row, uint64_t column)
{
    return ((const float *)gguf_find_tensor(gguf, "b")->data)[row * COLUMNS + column];
}

START_TEST(nothing_is_made_before_somebody_asks)
{
    const struct gguf_tensor *a = gguf_find_tensor(gguf, "a"), *b = gguf_find_tensor(gguf, "b");
    ck_assert(!a->maker && b->maker && b->data);
    ck_assert_int_eq(gguf_make_tensor(a, 4, NULL), 0); /* it is there */
    ck_assert_float_eq(((const float *)a->data)[7], 7);
    ck_assert_uint_eq(made.rows, 0);
    ck_assert_int_eq(gguf_make_rows(b, 998, 2, 4, NULL), 0);
    ck_assert_uint_eq(made.rows, 2);
    ck_assert_float_eq(number(999, 255), 999255);
    ck_assert_int_eq(gguf_make_rows(b, 5, 0, 1, NULL), 0);
    ck_assert_uint_eq(made.rows, 2);
}
END_TEST

START_TEST(threads_make_every_row_once)
{
    for (unsigned n_threads = 0; n_threads <= 100; n_threads += 20) {
        made.rows = 0;
        ck_assert_int_eq(gguf_make_tensor(gguf_find_tensor(gguf, "b"), n_threads, NULL), 0);
        ck_assert_uint_eq(made.rows, ROWS);
        for (uint64_t r = 0; r < ROWS; r++)
            ck_assert_float_eq(number(r, r % COLUMNS), (float)(1000 * r + r % COLUMNS));
    }
}
END_TEST

/* Whether a process that reads row r crashes. */
static bool is_out_of_reach(uint64_t row)
{
    int status;
    pid_t child = fork_child();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        _exit(number(row, 0) == (float)(1000 * row) ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) || WIFEXITED(status));
    return WIFSIGNALED(status) || WEXITSTATUS(status) > 1; /* a sanitizer ends the process itself */
}

START_TEST(rows_that_were_given_back_are_made_again)
{
    const struct gguf_tensor *b = gguf_find_tensor(gguf, "b");
    ck_assert(is_out_of_reach(500));
    ck_assert_int_eq(gguf_make_tensor(b, 1, NULL), 0);
    ck_assert(!is_out_of_reach(500));
    gguf_give_back_tensor(gguf, b);
    ck_assert(is_out_of_reach(500) && is_out_of_reach(0) && is_out_of_reach(ROWS - 1));
    ck_assert_int_eq(gguf_make_tensor(b, 1, NULL), 0);
    gguf_give_back(gguf, (const uint8_t *)b->data + 100 * COLUMNS * 4, 800 * COLUMNS * 4);
    ck_assert_float_eq(number(500, 3), 0); /* its memory is the system's again */
    ck_assert_int_eq(gguf_make_rows(b, 500, 1, 1, NULL), 0);
    ck_assert_float_eq(number(500, 3), 500003);
    ck_assert_float_eq(number(99, 3), 99003); /* beside them nothing changed */
    ck_assert_float_eq(number(900, 3), 900003);
}
END_TEST

static unsigned n_mappings(void)
{
    unsigned n = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    ck_assert_ptr_nonnull(maps);
    for (int c; (c = fgetc(maps)) != EOF;)
        n += c == '\n';
    fclose(maps);
    return n;
}

/* Of which a process may have 65,530; rows seldom end where pages do. */
START_TEST(rows_given_back_one_by_one_take_no_mappings)
{
    const struct gguf_tensor *b = gguf_find_tensor(gguf, "b");
    const unsigned before = n_mappings();
    for (uint64_t r = 0; r < ROWS; r += 10) {
        ck_assert_int_eq(gguf_make_rows(b, r, 9, 1, NULL), 0);
        gguf_give_back(gguf, (const uint8_t *)b->data + r * COLUMNS * 4, 9 * COLUMNS * 4);
    }
    ck_assert_uint_le(n_mappings(), before + 3);
}
END_TEST

START_TEST(a_row_that_cannot_be_made_is_a_reason)
{
    struct error err = {0};
    made.broken = 700;
    for (unsigned n_threads = 1; n_threads < 4; n_threads++) {
        ck_assert_int_eq(gguf_make_tensor(gguf_find_tensor(gguf, "b"), n_threads, &err), -EINVAL);
        ck_assert_str_eq(err.text, "row 700 is broken");
    }
    ck_assert_int_eq(gguf_make_rows(gguf_find_tensor(gguf, "b"), 0, 700, 2, &err), 0);
}
END_TEST

START_TEST(the_maker_is_freed_once_whoever_lets_go)
{
    struct gguf *other;
    void *memory;
    gguf_let_go(gguf);
    ck_assert_uint_eq(made.freed, 1);
    gguf_free(gguf);
    ck_assert_uint_eq(made.freed, 1);
    ck_assert_int_eq(gguf_new(&other), 0);
    ck_assert_int_eq(gguf_add_maker(other, &maker, SIZE_MAX / 2, &memory), -ENOMEM); /* taken all the same */
    gguf_free(other);
    ck_assert_uint_eq(made.freed, 2);
    ck_assert_int_eq(gguf_new(&gguf), 0);
}
END_TEST

START_TEST(a_tensor_that_was_replaced_is_not_made)
{
    static const float numbers[ROWS * COLUMNS] = {3};
    gguf_replace_tensor(gguf, 1, FORMAT_F32, numbers);
    ck_assert_int_eq(gguf_make_tensor(gguf_find_tensor(gguf, "b"), 1, NULL), 0);
    ck_assert_uint_eq(made.rows, 0);
    ck_assert_float_eq(number(0, 0), 3);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, nothing_is_made_before_somebody_asks);
    tcase_add_test(tests, threads_make_every_row_once);
    tcase_add_test(tests, rows_that_were_given_back_are_made_again);
    tcase_add_test(tests, rows_given_back_one_by_one_take_no_mappings);
    tcase_add_test(tests, a_row_that_cannot_be_made_is_a_reason);
    tcase_add_test(tests, the_maker_is_freed_once_whoever_lets_go);
    tcase_add_test(tests, a_tensor_that_was_replaced_is_not_made);
}

int main(void)
{
    return run_tests("tensors that are made", add);
}
