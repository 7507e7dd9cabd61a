/* SPDX-License-Identifier: MIT */
/* The memory of a segment, through the store that asks for it: all of it there, in huge pages, on its nodes.
 */

#include "engine/backend/weight_pages.h"
#include "tests/unit/run.h"
#include "tests/unit/engine/backend/weight_store_opening.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { MEMBERS = 3 };

struct team {
    void (*work)(void *arg);
    void *arg;
    int n_runs;
};

static void *be_member(void *arg)
{
    const struct team *team = arg;
    team->work(team->arg);
    return NULL;
}

static void run_members(void *arg, void (*work)(void *arg), void *work_arg)
{
    struct team *team = arg;
    pthread_t threads[MEMBERS];
    team->work = work;
    team->arg = work_arg;
    team->n_runs++;
    for (int i = 0; i < MEMBERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, be_member, team), 0);
    for (int i = 0; i < MEMBERS; i++)
        pthread_join(threads[i], NULL);
}

/* Of segments of this process that are larger than the page of a wish. */
static int64_t bytes_of_segments(void)
{
    int64_t bytes = 0;
    for (int fd = 0; fd < 256; fd++) {
        char path[32], target[64] = "";
        struct stat st;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, target, sizeof target - 1) > 0 && strstr(target, "memfd:quern-weights") &&
            fstat(fd, &st) == 0 && st.st_size > 4096)
            bytes += st.st_blocks * 512;
    }
    return bytes;
}

/* Between rounds of 512 MiB neighbours and the supervisor hear that it goes on. */
START_TEST(much_memory_comes_in_rounds)
{
    struct weight_store_file file = file_of_test(true);
    struct team team = {0};
    void *memory;
    struct weight_store *store = open_store(&file);
    weight_store_know(store, digest);
    ck_assert_int_eq(weight_store_make(store, LAYOUT, (size_t)513 << 20, run_members, &team, &memory), 0);
    ck_assert_int_eq(team.n_runs, 2);
    weight_store_free(store);
}
END_TEST

/* Whether memory comes in huge pages or small ones, by one thread or by several. */
START_TEST(all_memory_is_there_and_zero_before_packing_begins)
{
    static const size_t sizes[] = {1, 5000, (size_t)5 << 20, ((size_t)70 << 20) + 333};
    struct weight_store_file file = file_of_test(true);
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        const size_t size = sizes[i / 2];
        struct team team = {0};
        void *memory;
        file.key[2]++;
        struct weight_store *store = open_store(&file);
        weight_store_know(store, digest);
        ck_assert_int_eq(
            weight_store_make(store, LAYOUT, size, i % 2 ? run_members : NULL, i % 2 ? &team : NULL, &memory),
            0);
        ck_assert_int_eq(team.n_runs, (int)(i % 2));
        ck_assert_int_ge(bytes_of_segments(), (int64_t)((4096 + size + 4095) / 4096 * 4096));
        const uint8_t *bytes = memory;
        size_t n_set = 0;
        for (size_t at = 0; at < size; at++)
            n_set += bytes[at] != 0;
        ck_assert_uint_eq(n_set, 0);
        memset(memory, 7, size);
        ck_assert_int_eq(weight_store_publish(store, NULL), 0);
        for (size_t at = 0; at < size; at++)
            n_set += bytes[at] == 7;
        ck_assert_uint_eq(n_set, size);
        weight_store_free(store);
    }
}
END_TEST

/* What the store asked of a machine with nodes, by one thread. */
struct wishes {
    uint32_t nodes[512];
    uint32_t n;
};

static void wish(void *arg, uint32_t node)
{
    struct wishes *wishes = arg;
    if (wishes->n < 512)
        wishes->nodes[wishes->n++] = node;
}

/* A part of 32 MiB and a rest: once page by page before the kernel joins them, once for what it did not join.
 */
START_TEST(huge_pages_come_from_each_node_in_turn)
{
    static const uint32_t set[] = {1, 3, 6};
    struct wishes wishes = {.n = 0};
    struct weight_store_file file = file_of_test(true);
    file.place =
        (struct weight_store_place){.nodes = 1 << 1 | 1 << 3 | 1 << 6, .prefer = wish, .arg = &wishes};
    void *memory;
    struct weight_store *store = open_store(&file);
    ck_assert_uint_eq(wishes.n, 2); /* for the page that others see first */
    ck_assert_uint_eq(wishes.nodes[0], set[0]);
    ck_assert_uint_eq(wishes.nodes[1], WEIGHT_STORE_ANY_NODE);
    wishes.n = 0;
    weight_store_know(store, digest);
    ck_assert_int_eq(weight_store_make(store, LAYOUT, ((size_t)37 << 20), NULL, NULL, &memory), 0);
    weight_store_free(store);
    ck_assert_uint_eq(wishes.n, 16 + 16 + 2 + 3 + 1);
    for (uint32_t i = 0; i < 37; i++) {
        const uint32_t page = i < 32 ? i % 16 : i < 34 ? i - 16 : i - 18;
        ck_assert_uint_eq(wishes.nodes[i], set[page % 3]);
    }
    ck_assert_uint_eq(wishes.nodes[37], WEIGHT_STORE_ANY_NODE);
}
END_TEST

/* A kernel of Linux 6.1: of several huge pages that it is asked for it makes the first, and says -EINVAL. */
static bool is_linux_6_1;
static uint32_t n_collapsed;

int __real_madvise(void *start, size_t size, int advice);
int __wrap_madvise(void *start, size_t size, int advice);

int __wrap_madvise(void *start, size_t size, int advice)
{
    if (!is_linux_6_1 || advice != 25 /* MADV_COLLAPSE */)
        return __real_madvise(start, size, advice);
    n_collapsed += size == (size_t)2 << 20;
    errno = EINVAL;
    return -1;
}

START_TEST(each_huge_page_is_asked_for_where_not_all_are_made_at_once)
{
    struct weight_store_file file = file_of_test(true);
    void *memory;
    struct weight_store *store = open_store(&file);
    weight_store_know(store, digest);
    is_linux_6_1 = true;
    int r = weight_store_make(store, LAYOUT, (size_t)37 << 20, NULL, NULL, &memory);
    is_linux_6_1 = false;
    ck_assert_int_eq(r, 0);
    ck_assert_uint_eq(n_collapsed, 18);
    weight_store_free(store);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, much_memory_comes_in_rounds);
    tcase_add_test(tests, all_memory_is_there_and_zero_before_packing_begins);
    tcase_add_test(tests, huge_pages_come_from_each_node_in_turn);
    tcase_add_test(tests, each_huge_page_is_asked_for_where_not_all_are_made_at_once);
}

int main(void)
{
    return run_tests("weight pages", add);
}
