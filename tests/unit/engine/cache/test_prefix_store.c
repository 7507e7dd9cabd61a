/* SPDX-License-Identifier: MIT */
/* The prefix store: what is found and what is not, what is replaced, and that no death of a process makes it
 * give a wrong byte or stand still. */

#include "tests/unit/child.h"
#include "tests/unit/run.h"
#include "engine/cache/prefix_store.h"

#include "common/clock.h"
#include "common/system/shm.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK 65536 /* bytes */

static int fd;
static size_t size;
static struct prefix_store *store;
static uint8_t bytes[BLOCK], got[BLOCK];

static struct prefix_store_kind kind_of(uint64_t layout)
{
    return (struct prefix_store_kind){.model = "the model", .layout = layout, .block_bytes = BLOCK};
}

static struct prefix_store *open_it(uint64_t layout)
{
    struct prefix_store *opened = NULL;
    struct error err;
    const struct prefix_store_kind kind = kind_of(layout);
    int r = prefix_store_open(fd, &kind, &opened, &err);
    ck_assert_msg(r == 0, "%s", err.text);
    return opened;
}

static void make(uint32_t n_sets)
{
    size = 4096 + (size_t)n_sets * 8 * (BLOCK + 512);
    ck_assert_int_eq(shm_create("test", size, &fd), 0);
    store = open_it(7);
}

static void set_up(void)
{
    make(16);
}

static void tear_down(void)
{
    store = prefix_store_close(store);
    close(fd);
}

static int32_t ids[32];

/* The block `depth` of a prompt, and its bytes. */
static struct prefix_place place_of(int32_t prompt, uint32_t depth, uint64_t before, uint64_t use)
{
    for (int i = 0; i < 32; i++)
        ids[i] = prompt * 1000 + (int32_t)depth;
    return (struct prefix_place){.before = before, .ids = ids, .depth = depth, .use = use};
}

static void fill(int32_t prompt, uint32_t depth, uint8_t *to)
{
    uint64_t word = (uint64_t)prompt << 32 | depth;
    for (size_t i = 0; i < BLOCK; i += sizeof word, word = word * 6364136223846793005u + 1)
        memcpy(to + i, &word, sizeof word);
}

/* Puts the blocks of a prompt that are missing. Returns how many were there from the first on; the bytes of
 * each that was are checked. */
static uint32_t use_prompt(struct prefix_store *with, int32_t prompt, uint32_t n)
{
    uint64_t before = 0, use = prefix_store_use(with);
    uint32_t found = 0;
    for (uint32_t depth = 0; depth < n; depth++) {
        struct prefix_place place = place_of(prompt, depth, before, use);
        uint64_t number = prefix_store_get(with, &place, got);
        fill(prompt, depth, bytes);
        if (number != 0 && memcmp(got, bytes, BLOCK) != 0)
            _exit(99);
        found += number != 0 && found == depth;
        before = number != 0 ? number : prefix_store_put(with, &place, bytes);
        if (before == 0)
            break;
    }
    return found;
}

START_TEST(what_one_keeps_another_finds)
{
    struct prefix_store *other = open_it(7);
    ck_assert_uint_eq(prefix_store_room(store), 128);
    ck_assert_uint_eq(use_prompt(store, 1, 10), 0);
    ck_assert_uint_eq(use_prompt(other, 1, 10), 10);
    ck_assert_uint_eq(use_prompt(other, 1, 12), 10);
    ck_assert_uint_eq(use_prompt(store, 2, 3), 0);
    ck_assert_uint_eq(use_prompt(store, 1, 12), 12);
    prefix_store_close(other);
}
END_TEST

START_TEST(nothing_is_found_that_means_something_else)
{
    struct prefix_store *layout = open_it(8);
    struct prefix_place place = place_of(1, 0, 0, 1);
    uint64_t number = prefix_store_put(store, &place, bytes);
    ck_assert_uint_ne(number, 0);
    ck_assert_uint_eq(prefix_store_find(store, &place), number);
    ck_assert_uint_eq(prefix_store_put(store, &place, bytes), number);
    ck_assert_uint_eq(prefix_store_find(layout, &place), 0);
    place.salt = BYTES_LITERAL("tenant");
    ck_assert_uint_eq(prefix_store_find(store, &place), 0);
    uint64_t salted = prefix_store_put(store, &place, bytes);
    ck_assert_uint_ne(salted, number);
    place.salt = BYTES_LITERAL("tenan");
    ck_assert_uint_eq(prefix_store_find(store, &place), 0);
    place = place_of(1, 1, number, 1); /* behind another block */
    ck_assert_uint_ne(prefix_store_put(store, &place, bytes), 0);
    place.before = salted;
    ck_assert_uint_eq(prefix_store_find(store, &place), 0);
    ids[31]++;
    place.before = number;
    ck_assert_uint_eq(prefix_store_find(store, &place), 0);
    prefix_store_close(layout);
    /* Another model. */
    struct prefix_store_kind kind = kind_of(7);
    struct error err;
    kind.model[0]++;
    ck_assert_int_eq(prefix_store_open(fd, &kind, &layout, &err), 0);
    place = place_of(1, 0, 0, 1);
    ck_assert_uint_eq(prefix_store_find(layout, &place), 0);
    prefix_store_close(layout);
}
END_TEST

START_TEST(a_salt_that_is_too_long_is_not_kept)
{
    char salt[PREFIX_STORE_MAX_SALT + 1] = "";
    struct prefix_place place = place_of(1, 0, 0, 1);
    place.salt = (struct bytes){salt, sizeof salt};
    ck_assert_uint_eq(prefix_store_put(store, &place, bytes), 0);
    ck_assert_uint_eq(prefix_store_get(store, &place, got), 0);
    place.salt.len--;
    ck_assert_uint_ne(prefix_store_put(store, &place, bytes), 0);
    ck_assert_uint_ne(prefix_store_find(store, &place), 0);
}
END_TEST

START_TEST(what_cannot_be_shared_is_refused)
{
    struct prefix_store *other;
    struct error err;
    struct prefix_store_kind kind = kind_of(0);
    ck_assert_int_eq(prefix_store_open(fd, &kind, &other, &err), -ENOTSUP);
    ck_assert_str_eq(err.text, "prefix store: the device's KV blocks cannot be exchanged");
    kind = kind_of(7);
    kind.block_bytes = 0;
    ck_assert_int_eq(prefix_store_open(fd, &kind, &other, &err), -ENOTSUP);
    kind.block_bytes = (size_t)UINT32_MAX + 1;
    ck_assert_int_eq(prefix_store_open(fd, &kind, &other, &err), -ENOTSUP);
    ck_assert_str_eq(err.text, "prefix store: the device's KV blocks cannot be exchanged");
    kind.block_bytes = BLOCK / 2;
    ck_assert_int_eq(prefix_store_open(fd, &kind, &other, &err), -ENOTSUP);
    ck_assert_str_eq(err.text, "prefix store: it has blocks of 65536 bytes, not 32768");
    kind.block_bytes = size;
    ck_assert_int_eq(prefix_store_open(fd, &kind, &other, &err), -ENOTSUP);
    ck_assert_msg(strstr(err.text, " cannot hold 8 blocks of "), "%s", err.text);
    ck_assert_int_lt(prefix_store_open(-1, &kind, &other, &err), 0);
}
END_TEST

START_TEST(eight_blocks_are_the_least_room)
{
    struct prefix_store *other;
    struct error err;
    const struct prefix_store_kind kind = kind_of(7);
    const size_t least = 4096 + 8 * (BLOCK + 512);
    for (size_t lacks = 0; lacks < 2; lacks++) {
        int small;
        ck_assert_int_eq(shm_create("test", least - lacks, &small), 0);
        ck_assert_int_eq(prefix_store_open(small, &kind, &other, &err), lacks ? -ENOTSUP : 0);
        if (!lacks) {
            ck_assert_uint_eq(prefix_store_room(other), 8);
            prefix_store_close(other);
        }
        close(small);
    }
}
END_TEST

/* One set of eight: what was used longest ago goes, and of one prompt its end. */
START_TEST(what_was_used_longest_ago_is_replaced_and_of_a_prompt_its_end)
{
    tear_down();
    make(1);
    ck_assert_uint_eq(use_prompt(store, 1, 5), 0);
    ck_assert_uint_eq(use_prompt(store, 2, 3), 0);
    ck_assert_uint_eq(use_prompt(store, 1, 2), 2); /* two of the first are new again, three are old */
    ck_assert_uint_eq(use_prompt(store, 3, 3), 0);
    ck_assert_uint_eq(use_prompt(store, 2, 3), 3);
    ck_assert_uint_eq(use_prompt(store, 3, 3), 3);
    ck_assert_uint_eq(use_prompt(store, 1, 2), 2);
}
END_TEST

START_TEST(of_a_prompt_that_fills_a_set_the_deepest_block_goes)
{
    tear_down();
    make(1);
    ck_assert_uint_eq(use_prompt(store, 1, 8), 0);
    ck_assert_uint_eq(use_prompt(store, 2, 1), 0);
    ck_assert_uint_eq(use_prompt(store, 3, 1), 0);
    ck_assert_uint_eq(use_prompt(store, 2, 1), 1);
    ck_assert_uint_eq(use_prompt(store, 3, 1), 1);
    ck_assert_uint_eq(use_prompt(store, 1, 6), 6);
}
END_TEST

START_TEST(what_stood_behind_a_replaced_block_is_not_found)
{
    tear_down();
    make(1);
    struct prefix_place place = place_of(1, 0, 0, 1);
    uint64_t first = prefix_store_put(store, &place, bytes);
    place = place_of(1, 1, first, 100);
    ck_assert_uint_ne(prefix_store_put(store, &place, bytes), 0);
    for (int32_t i = 0; i < 7; i++) {
        place = place_of(10 + i, 0, 0, 50);
        ck_assert_uint_ne(prefix_store_put(store, &place, bytes), 0);
    }
    place = place_of(1, 0, 0, 100);
    ck_assert_uint_eq(prefix_store_find(store, &place), 0);
    uint64_t again = prefix_store_put(store, &place, bytes);
    ck_assert_uint_ne(again, first);
    place = place_of(1, 1, again, 100);
    ck_assert_uint_eq(prefix_store_find(store, &place), 0);
}
END_TEST

START_TEST(a_byte_that_changed_makes_a_block_nothing)
{
    struct prefix_place place = place_of(1, 0, 0, 1);
    uint8_t *memory;
    tear_down();
    make(1);
    fill(1, 0, bytes);
    uint64_t number = prefix_store_put(store, &place, bytes);
    ck_assert_uint_eq(prefix_store_get(store, &place, got), number);
    ck_assert_int_eq(shm_map(fd, size, (void **)&memory), 0);
    for (size_t i = 4096 + 8 * 512; i < size; i += BLOCK)
        memory[i + 1000] ^= 1;
    ck_assert_uint_eq(prefix_store_get(store, &place, got), 0);
    ck_assert_uint_eq(prefix_store_find(store, &place), 0);
    uint64_t again = prefix_store_put(store, &place, bytes);
    ck_assert_uint_ne(again, 0);
    ck_assert_uint_eq(prefix_store_get(store, &place, got), again);
    munmap(memory, size);
}
END_TEST

START_TEST(the_place_of_a_block_that_became_nothing_is_the_first_to_be_taken)
{
    uint8_t *memory;
    struct prefix_place place;
    tear_down();
    make(1);
    for (int32_t prompt = 1; prompt <= 8; prompt++) /* the eighth was used last */
        ck_assert_uint_eq(use_prompt(store, prompt, 1), 0);
    ck_assert_int_eq(shm_map(fd, size, (void **)&memory), 0);
    memory[4096 + 8 * 512 + 7 * BLOCK] ^= 1;
    munmap(memory, size);
    place = place_of(8, 0, 0, 100);
    ck_assert_uint_eq(prefix_store_get(store, &place, got), 0);
    ck_assert_uint_eq(use_prompt(store, 9, 1), 0);
    for (int32_t prompt = 1; prompt <= 9; prompt++) {
        place = place_of(prompt, 0, 0, 200);
        ck_assert_int_eq(prefix_store_find(store, &place) != 0, prompt != 8);
    }
}
END_TEST

/* ---- deaths ---- */

#define CHILDREN 3
#define DEATHS   100

/* Uses prompts of which a third fits, until it is killed; ends by itself only over a wrong byte. */
static void live(unsigned seed)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
    struct prefix_store *own;
    const struct prefix_store_kind kind = kind_of(7);
    if (prefix_store_open(fd, &kind, &own, NULL) < 0) /* asserts write into a pipe that is not ours */
        _exit(1);
    for (;;) {
        seed = seed * 1103515245 + 12345;
        use_prompt(own, (int32_t)(seed >> 16) % 32, 1 + (seed >> 8) % 12);
    }
}

static pid_t start(unsigned seed)
{
    pid_t pid = fork_child();
    if (pid == 0)
        live(seed);
    return pid;
}

START_TEST(a_process_that_is_killed_at_any_moment_harms_nobody)
{
    pid_t children[CHILDREN];
    for (unsigned i = 0; i < CHILDREN; i++)
        children[i] = start(i);
    for (unsigned i = 0; i < DEATHS; i++) {
        int status;
        pid_t *victim = &children[i % CHILDREN];
        usleep(1000 + i * 7919 % 4000);
        kill(*victim, SIGKILL);
        ck_assert_int_eq(waitpid(*victim, &status, 0), *victim);
        ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a wrong byte, or worse: %x",
                      status);
        *victim = start(1000 + i);
    }
    for (unsigned i = 0; i < CHILDREN; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    /* All of it can be used again as soon as what they had claimed is given up. */
    uint32_t found = 0;
    for (uint64_t end = clock_ns() + 20 * CLOCK_NS_PER_S; found < 30 && clock_ns() < end; usleep(20000)) {
        found = 0;
        for (int32_t prompt = 100; prompt < 110; prompt++)
            found += use_prompt(store, prompt, 3);
    }
    ck_assert_uint_eq(found, 30);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, what_one_keeps_another_finds);
    tcase_add_test(tests, nothing_is_found_that_means_something_else);
    tcase_add_test(tests, a_salt_that_is_too_long_is_not_kept);
    tcase_add_test(tests, what_cannot_be_shared_is_refused);
    tcase_add_test(tests, eight_blocks_are_the_least_room);
    tcase_add_test(tests, what_was_used_longest_ago_is_replaced_and_of_a_prompt_its_end);
    tcase_add_test(tests, of_a_prompt_that_fills_a_set_the_deepest_block_goes);
    tcase_add_test(tests, what_stood_behind_a_replaced_block_is_not_found);
    tcase_add_test(tests, a_byte_that_changed_makes_a_block_nothing);
    tcase_add_test(tests, the_place_of_a_block_that_became_nothing_is_the_first_to_be_taken);
    tcase_add_test(tests, a_process_that_is_killed_at_any_moment_harms_nobody);
}

int main(void)
{
    return run_tests("engine/prefix_store", add);
}
