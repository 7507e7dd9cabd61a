/* SPDX-License-Identifier: MIT */
/* Blocks that outlive their process: what the next one finds. */

#include "broker/books/vault.h"
#include "tests/unit/child.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES (4 * VAULT_STEP_BYTES)

/* Where the marks of blocks are in the segment, and how many. */
enum { MARKS = 4096, UNITS = BYTES / VAULT_LEAST_BYTES };

static int fd;
static struct vault *vault;

static void open_again(void)
{
    struct error err = {{0}};
    vault = vault_close(vault);
    ck_assert_msg(vault_open(fd, &vault, &err) == 0, "%s", err.text);
}

static void open_empty(void)
{
    ck_assert_int_eq(vault_create(BYTES, &fd), 0);
    open_again();
}

static void end(void)
{
    vault = vault_close(vault);
    close(fd);
}

static void *take(size_t size)
{
    size_t got = 0;
    void *block = vault_take(vault, size, &got);
    ck_assert_ptr_nonnull(block);
    ck_assert_uint_ge(got, size);
    return block;
}

START_TEST(what_was_kept_is_found_and_nothing_else)
{
    size_t size;
    char *kept = take(100), *given = take(100);
    take(100); /* never kept */
    strcpy(kept, "here");
    vault_keep(vault, kept);
    vault_keep(vault, given);
    vault_give(vault, given);
    open_again();
    char *found = vault_next(vault, NULL, &size);
    ck_assert_ptr_nonnull(found);
    ck_assert_str_eq(found, "here");
    ck_assert_uint_eq(size, VAULT_LEAST_BYTES);
    ck_assert_uint_eq(vault_used(vault), VAULT_LEAST_BYTES);
    ck_assert_ptr_null(vault_next(vault, found, &size));
}
END_TEST

START_TEST(what_is_kept_is_not_handed_out_again)
{
    static void *blocks[BYTES / VAULT_STEP_BYTES];
    char *kept = take(3000);
    memset(kept, 7, 3000);
    vault_keep(vault, kept);
    open_again();
    /* The largest block that holds it is gone, the others are whole. */
    for (size_t i = 1; i < BYTES / VAULT_STEP_BYTES; i++)
        blocks[i] = take(VAULT_STEP_BYTES);
    size_t size;
    ck_assert_ptr_null(vault_take(vault, VAULT_STEP_BYTES, &size));
    for (void *block; (block = vault_take(vault, 1, &size));)
        memset(block, 1, size);
    char *found = vault_next(vault, NULL, &size);
    for (int i = 0; i < 3000; i++)
        ck_assert_int_eq(found[i], 7);
    for (size_t i = 1; i < BYTES / VAULT_STEP_BYTES; i++)
        vault_give(vault, blocks[i]);
    ck_assert_ptr_nonnull(vault_take(vault, VAULT_STEP_BYTES, &size));
}
END_TEST

START_TEST(a_block_that_shrinks_keeps_its_beginning_and_frees_its_end)
{
    char *block = take(1 << 20);
    strcpy(block, "front");
    vault_keep(vault, block);
    ck_assert_uint_eq(vault_shrink(vault, block, 600), 1024);
    ck_assert_uint_eq(vault_used(vault), 1024);
    open_again();
    size_t size;
    char *found = vault_next(vault, NULL, &size);
    ck_assert_str_eq(found, "front");
    ck_assert_uint_eq(size, 1024);
    vault_give(vault, found);
    ck_assert_uint_eq(vault_used(vault), 0);
    for (size_t i = 0; i < BYTES / VAULT_STEP_BYTES; i++)
        take(VAULT_STEP_BYTES); /* all of it is one piece again */
}
END_TEST

/* A request of 4 MiB and what is written down of it took 8. */
START_TEST(a_block_takes_a_quarter_more_than_it_holds_at_most)
{
    const size_t large = ((size_t)4 << 20) + 300;
    void *block = take(large);
    ck_assert_uint_eq(vault_used(vault), (size_t)5 << 20);
    vault_keep(vault, block);
    open_again();
    size_t size, used = vault_used(vault);
    ck_assert_uint_eq(used, (size_t)5 << 20);
    ck_assert_ptr_nonnull(block = vault_next(vault, NULL, &size));
    ck_assert_uint_eq(size, used);
    /* What is behind it is for others. */
    for (size_t i = 1; i < BYTES / VAULT_STEP_BYTES; i++)
        take(VAULT_STEP_BYTES);
    take((size_t)8 << 20);
    take((size_t)2 << 20);
    take((size_t)1 << 20);
    ck_assert_ptr_null(vault_take(vault, 1, &size));
    vault_give(vault, block);
    ck_assert_ptr_eq(take(large), block); /* whom its neighbours do not keep out */
    for (size = 4097; size <= VAULT_STEP_BYTES; size += size / 3 + 1) {
        open_again(); /* nothing was kept */
        take(size);
        ck_assert_uint_le(vault_used(vault), size / 4 * 5 + 1024);
    }
}
END_TEST

/* Blocks of all sizes, in any order: none lies in another, and in the end all is one piece again. */
START_TEST(blocks_of_any_size_come_and_go)
{
    struct {
        uint8_t *at;
        size_t size;
        uint8_t filled;
    } blocks[100] = {{0}};
    srand(1);
    for (int step = 0; step < 20000; step++) {
        int i = rand() % 100;
        if (blocks[i].at) {
            for (size_t j = 0; j < blocks[i].size; j += 64)
                ck_assert_uint_eq(blocks[i].at[j], blocks[i].filled);
            if (step % 3 == 0)
                blocks[i].size = vault_shrink(vault, blocks[i].at, blocks[i].size / 2);
            if (step % 3 != 0) {
                vault_give(vault, blocks[i].at);
                blocks[i].at = NULL;
            }
        } else if ((blocks[i].at = vault_take(vault, (size_t)1 << rand() % 19, &blocks[i].size))) {
            blocks[i].filled = (uint8_t)step;
            vault_keep(vault, blocks[i].at);
            blocks[i].size = vault_shrink(vault, blocks[i].at, (size_t)rand() % blocks[i].size + 1);
            for (size_t j = 0; j < blocks[i].size; j += 64)
                blocks[i].at[j] = blocks[i].filled;
        }
    }
    size_t used = vault_used(vault), n = 0, size;
    open_again(); /* as another process finds it, at another address */
    ck_assert_uint_eq(vault_used(vault), used);
    for (int i = 0; i < 100; i++)
        n += blocks[i].at != NULL;
    for (void *block = vault_next(vault, NULL, &size), *next; block; block = next, n--) {
        next = vault_next(vault, block, &size);
        vault_give(vault, block);
    }
    ck_assert_uint_eq(n, 0);
    for (size_t i = 0; i < BYTES / VAULT_STEP_BYTES; i++)
        take(VAULT_STEP_BYTES);
}
END_TEST

START_TEST(more_than_there_is_is_refused)
{
    size_t size;
    ck_assert_ptr_null(vault_take(vault, VAULT_MOST_BYTES + 1, &size));
    for (size_t i = 0; i < BYTES / VAULT_STEP_BYTES; i++)
        take(VAULT_STEP_BYTES);
    ck_assert_ptr_null(vault_take(vault, 1, &size));
}
END_TEST

/* A vault need not be a multiple of the largest block, and blocks of its end are put together up to there. */
START_TEST(a_block_may_be_larger_than_a_step)
{
    _Static_assert(VAULT_MOST_BYTES == 4 * VAULT_STEP_BYTES, "one of them fits, and three steps are left");
    end();
    ck_assert_int_eq(vault_create(7 * VAULT_STEP_BYTES, &fd), 0);
    open_again();
    size_t size;
    char *large = take(33u << 20);
    strcpy(large, "large");
    vault_keep(vault, large);
    open_again();
    ck_assert_str_eq(vault_next(vault, NULL, &size), "large");
    ck_assert_uint_eq(size, (size_t)40 << 20);
    large = vault_next(vault, NULL, &size);
    ck_assert_ptr_null(vault_take(vault, VAULT_MOST_BYTES, &size));
    void *blocks[] = {take(32u << 20), take(VAULT_STEP_BYTES), take(VAULT_STEP_BYTES), take(8u << 20)};
    ck_assert_ptr_null(vault_take(vault, 1, &size));
    vault_give(vault, large);
    for (int i = 0; i < 4; i++)
        vault_give(vault, blocks[i]);
    take(VAULT_MOST_BYTES);
    take(32u << 20);
    take(VAULT_STEP_BYTES);
    ck_assert_ptr_null(vault_take(vault, 1, &size));
}
END_TEST

/* At the end of such a vault a mark may be that of a block which is not all there. */
START_TEST(a_block_beyond_the_end_is_damage)
{
    end();
    ck_assert_int_eq(vault_create(7 * VAULT_STEP_BYTES, &fd), 0);
    open_again();
    void *block = take(VAULT_MOST_BYTES);
    vault_keep(vault, block);
    const off_t units = VAULT_MOST_BYTES / VAULT_LEAST_BYTES;
    uint8_t mark;
    ck_assert_int_eq(pread(fd, &mark, 1, MARKS), 1);
    ck_assert_int_eq(pwrite(fd, &mark, 1, MARKS + units), 1);
    open_again();
    ck_assert(vault_was_damaged(vault));
    take(VAULT_MOST_BYTES);
    take(32u << 20);
}
END_TEST

START_TEST(a_process_that_is_killed_at_any_moment_leaves_whole_blocks)
{
    for (int round = 0; round < 20; round++) {
        pid_t pid = fork_child();
        if (pid == 0) {
            struct vault *mine;
            if (vault_open(fd, &mine, NULL) < 0)
                _exit(1);
            srand((unsigned)round);
            void *blocks[64] = {0};
            for (;;) {
                int i = rand() % 64;
                size_t size;
                if (blocks[i]) {
                    vault_give(mine, blocks[i]);
                    blocks[i] = NULL;
                } else if ((blocks[i] = vault_take(mine, (size_t)rand() % 20000, &size))) {
                    memset(blocks[i], (int)(size % 251), size);
                    vault_keep(mine, blocks[i]);
                }
            }
        }
        usleep(3000 + 500 * round);
        int status;
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        open_again();
        size_t size;
        uint8_t *block = vault_next(vault, NULL, &size);
        while (block) {
            for (size_t i = 0; i < size; i++)
                ck_assert_uint_eq(block[i], size % 251);
            uint8_t *next = vault_next(vault, block, &size);
            vault_give(vault, block);
            block = next;
        }
        ck_assert_uint_eq(vault_used(vault), 0);
    }
}
END_TEST

/* A large vault costs what is in it. */
START_TEST(a_vault_that_is_opened_takes_no_memory_for_what_is_empty)
{
    const size_t large = (size_t)4 << 30;
    struct stat st;
    size_t size;
    close(fd);
    ck_assert_int_eq(vault_create(large, &fd), 0);
    open_again();
    ck_assert_uint_eq(vault_bytes(vault), large);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_le(st.st_blocks * 512, 16 << 10);
    char *blocks[20]; /* beyond the first pages of marks */
    for (size_t i = 0; i < 20; i++) {
        blocks[i] = take(VAULT_MOST_BYTES);
        vault_keep(vault, blocks[i]);
    }
    strcpy(blocks[19], "last");
    for (size_t i = 1; i < 19; i++)
        vault_give(vault, blocks[i]);
    open_again();
    char *one = vault_next(vault, NULL, &size), *other = vault_next(vault, one, &size);
    ck_assert(strcmp(one, "last") == 0 || strcmp(other, "last") == 0);
    ck_assert_ptr_null(vault_next(vault, other, &size));
    ck_assert_uint_eq(vault_used(vault), 2 * VAULT_MOST_BYTES);
}
END_TEST

START_TEST(memory_that_no_block_uses_goes_back_to_the_machine)
{
    char *kept = take(1000), *large = take(8 << 20);
    memset(large, 1, 8 << 20);
    strcpy(kept, "stays");
    vault_keep(vault, kept);
    vault_give(vault, large);
    vault_trim(vault);
    char *again = take(8 << 20);
    ck_assert_str_eq(kept, "stays");
    ck_assert_int_eq(again[4 << 20], 0); /* a hole reads as zeros */
}
END_TEST

/* Bytes of blocks that the segment has pages for: header and marks take less than a mebibyte. */
static size_t pages(void)
{
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    return (size_t)st.st_blocks * 512 >> 20 << 20;
}

/* Asked for before a block is handed out, a mebibyte at a time; given back so, where all of it is free. */
START_TEST(memory_is_asked_for_and_given_back_in_mebibytes)
{
    const size_t mib = (size_t)1 << 20;
    char *first = take(1), *three = take(3 * mib), *one = take(mib), *half = take(mib / 2);
    ck_assert_uint_eq(pages(), 5 * mib); /* half a one lies beside the first */
    memset(three, 3, 3 * mib);
    memset(one, 1, mib);
    memset(half, 2, mib / 2);
    vault_give(vault, three);
    vault_give(vault, half);
    ck_assert_uint_eq(pages(), 5 * mib);
    vault_trim(vault);
    ck_assert_uint_eq(pages(), 2 * mib);
    ck_assert(one[0] == 1 && memcmp(one, one + 1, mib - 1) == 0);
    vault_trim(vault); /* there is nothing left to give */
    vault_give(vault, one);
    vault_trim(vault);
    ck_assert_uint_eq(pages(), mib);
    take(3 * mib);
    ck_assert_uint_eq(pages(), 4 * mib);
    vault_give(vault, first);
}
END_TEST

/* A process that is killed has given nothing back; the next one does it. */
START_TEST(what_an_earlier_process_did_not_give_back_the_next_one_does)
{
    const size_t mib = (size_t)1 << 20;
    char *kept = take(mib), *given = take(12 * mib), *lost = take(5 * mib);
    memset(kept, 1, mib);
    memset(given, 2, 12 * mib);
    memset(lost, 3, 5 * mib);
    vault_keep(vault, kept);
    vault_keep(vault, given);
    vault_give(vault, given);
    ck_assert_uint_eq(pages(), 18 * mib);
    open_again();
    ck_assert_uint_eq(pages(), mib);
    size_t size;
    kept = vault_next(vault, NULL, &size);
    ck_assert(size == mib && kept[0] == 1 && memcmp(kept, kept + 1, mib - 1) == 0);
    ck_assert(!vault_was_damaged(vault));
    vault_give(vault, kept); /* of the process before, and not asked for by this one */
    vault_trim(vault);
    ck_assert_uint_eq(pages(), 0);
}
END_TEST

/* The segment begins with its header, of a page; behind that, what stands at each 512 bytes. */
static void expect_damage(size_t at, const void *bytes, size_t len)
{
    struct error err = {{0}};
    struct vault *other = NULL;
    uint8_t before[8];
    ck_assert_int_eq(pread(fd, before, len, (off_t)at), (ssize_t)len);
    ck_assert_int_eq(pwrite(fd, bytes, len, (off_t)at), (ssize_t)len);
    ck_assert_msg(vault_open(fd, &other, &err) == -EINVAL, "byte %zu", at);
    ck_assert_str_eq(err.text, "the shared memory of requests: Invalid argument");
    ck_assert_ptr_null(other);
    ck_assert_int_eq(pwrite(fd, before, len, (off_t)at), (ssize_t)len);
}

START_TEST(a_vault_whose_header_was_damaged_is_refused)
{
    const uint64_t units[] = {0, 1, UNITS - 1, UNITS + 1, UINT32_MAX, UINT64_MAX};
    expect_damage(0, "Q", 1);
    expect_damage(4, "\0", 1);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        expect_damage(8, &units[i], sizeof units[i]);
}
END_TEST

static void expect_emptied(size_t unit, const void *marks, size_t len)
{
    static const char whole[] = "\x0d\0\0\0\0\x04\x08";
    size_t size;
    ck_assert_int_eq(pwrite(fd, whole, sizeof whole - 1, MARKS + 64), sizeof whole - 1);
    ck_assert_int_eq(pwrite(fd, marks, len, (off_t)(MARKS + unit)), (ssize_t)len);
    open_again();
    ck_assert_msg(vault_was_damaged(vault), "unit %zu", unit);
    ck_assert_uint_eq(vault_used(vault), 0);
    ck_assert_ptr_null(vault_next(vault, NULL, &size));
    char *all[BYTES / VAULT_STEP_BYTES]; /* all of it can be used */
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        vault_keep(vault, all[i] = take(VAULT_STEP_BYTES));
    open_again();
    ck_assert(!vault_was_damaged(vault));
    ck_assert_uint_eq(vault_used(vault), BYTES);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        vault_give(vault, vault_next(vault, NULL, &size));
}

START_TEST(a_vault_whose_marks_were_damaged_is_emptied)
{
    /* 4: 512 bytes; 8: 1,024; 16: 4,096 bytes; 13: five eighths of that; 64: 16 MiB; others are no size. */
    static const uint8_t sizes[] = {1, 2, 3, 5, 6, 7, 9, 10, 11, 65, 255};
    for (size_t i = 0; i < sizeof sizes; i++)
        expect_emptied(0, &sizes[i], 1);
    expect_emptied(UNITS - 1, "\xff", 1);
    expect_emptied(1, "\x08", 1);           /* where none of its size begins */
    expect_emptied(4, "\x0d", 1);           /* the same */
    expect_emptied(0, "\x08\x04", 2);       /* one in another */
    expect_emptied(0, "\x0d\0\0\0\x04", 5); /* in its last unit */
    expect_emptied(UNITS - 1, "\x08", 1);   /* beyond the end */
    ck_assert_int_eq(pwrite(fd, "\x0d\0\0\0\0\x04\x08", 7, MARKS), 7);
    open_again();
    ck_assert_uint_eq(vault_used(vault), 5 * 512 + 512 + 1024);
}
END_TEST

START_TEST(what_is_no_vault_is_refused)
{
    struct error err = {{0}};
    struct vault *other = NULL;
    int empty = memfd_create("empty", MFD_CLOEXEC);
    ck_assert_int_eq(vault_open(empty, &other, &err), -EINVAL);
    ck_assert_int_eq(ftruncate(empty, 1 << 20), 0);
    ck_assert_int_eq(vault_open(empty, &other, &err), -EINVAL);
    ck_assert_ptr_null(other);
    close(empty);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, open_empty, end);
    tcase_add_test(tests, what_was_kept_is_found_and_nothing_else);
    tcase_add_test(tests, what_is_kept_is_not_handed_out_again);
    tcase_add_test(tests, a_block_that_shrinks_keeps_its_beginning_and_frees_its_end);
    tcase_add_test(tests, a_block_takes_a_quarter_more_than_it_holds_at_most);
    tcase_add_test(tests, blocks_of_any_size_come_and_go);
    tcase_add_test(tests, more_than_there_is_is_refused);
    tcase_add_test(tests, a_block_may_be_larger_than_a_step);
    tcase_add_test(tests, a_block_beyond_the_end_is_damage);
    tcase_add_test(tests, a_process_that_is_killed_at_any_moment_leaves_whole_blocks);
    tcase_add_test(tests, a_vault_that_is_opened_takes_no_memory_for_what_is_empty);
    tcase_add_test(tests, memory_that_no_block_uses_goes_back_to_the_machine);
    tcase_add_test(tests, memory_is_asked_for_and_given_back_in_mebibytes);
    tcase_add_test(tests, what_an_earlier_process_did_not_give_back_the_next_one_does);
    tcase_add_test(tests, a_vault_whose_header_was_damaged_is_refused);
    tcase_add_test(tests, a_vault_whose_marks_were_damaged_is_emptied);
    tcase_add_test(tests, what_is_no_vault_is_refused);
}

int main(void)
{
    return run_tests("broker/vault", add);
}
