/* SPDX-License-Identifier: MIT */
/* Snapshots in the store, alone: a worker with a cache, whose device copies when it is asked whether it did.
 */

#include "tests/unit/run.h"
#include "engine/tier_snapshots.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/system/shm.h"

#define BLOCKS    8
#define SNAPSHOTS 2
#define BYTES     64               /* of a block, and so of a piece */
#define PIECES    3                /* of a snapshot, the last of them not full */
#define STATE     (BYTES * 2 + 10) /* bytes */
#define NUMBER    77               /* of the node in the store */
#define DEPTH     4

struct backend {
    uint8_t states[SNAPSHOTS][STATE];
    struct backend_copy copy;
    uint32_t snapshot;
    bool out;
    uint64_t tickets;
    bool late; /* it has not copied yet */
};

static struct backend device;
static struct blocks *blocks, *numbers;
static struct prefix *prefix;
static struct prefix_store *store;
static struct tier_snapshots *snapshots;
static uint64_t nodes[2]; /* places of two that the cache has */
static int fd;

static void info(const struct backend *unused, struct backend_info *ret_info)
{
    (void)unused;
    *ret_info =
        (struct backend_info){.n_groups = 1, .state_bytes = STATE, .groups[0] = {1, 0, BLOCKS, BYTES}};
}

static int copy(struct backend *to, const struct backend_copy *what, bool out, uint64_t *ret_ticket)
{
    ck_assert(what->group == 1 && what->n == 1 && what->blocks[0] < SNAPSHOTS);
    to->copy = *what;
    to->snapshot = what->blocks[0];
    to->out = out;
    *ret_ticket = ++to->tickets;
    return 0;
}

static int copy_out(struct backend *to, const struct backend_copy *what, uint64_t *ret_ticket)
{
    return copy(to, what, true, ret_ticket);
}

static int copy_in(struct backend *to, const struct backend_copy *what, uint64_t *ret_ticket)
{
    return copy(to, what, false, ret_ticket);
}

static int poll_copy(struct backend *from, uint64_t ticket, int timeout_ms,
                     const struct backend_result **ret_results, struct error *err)
{
    (void)timeout_ms, (void)ret_results, (void)err;
    ck_assert_uint_eq(ticket, from->tickets);
    if (from->late)
        return -EAGAIN;
    uint8_t *state = from->states[from->snapshot];
    memcpy(from->out ? from->copy.host : state, from->out ? state : from->copy.host, STATE);
    return 0;
}

static const struct backend_ops ops = {
    .name = "copier", .info = info, .copy_out = copy_out, .copy_in = copy_in, .poll = poll_copy};

static void set_up(void)
{
    const struct backend_group group = {1, 0, BLOCKS, BYTES};
    const struct prefix_store_kind kind = {.model = "the model", .layout = 7, .block_bytes = BYTES};
    struct error err = {0};
    int32_t ids[BACKEND_BLOCK_TOKENS] = {0};
    device = (struct backend){0};
    ck_assert_int_eq(shm_create("test", 1 << 20, &fd), 0);
    ck_assert_int_eq(blocks_new(BLOCKS, &blocks), 0);
    ck_assert_int_eq(blocks_new(SNAPSHOTS, &numbers), 0);
    ck_assert_int_eq(prefix_new(&group, 1, &blocks, UINT32_MAX, &prefix), 0);
    ck_assert_int_eq(prefix_use_snapshots(prefix, numbers), 0);
    ck_assert_msg(prefix_store_open(fd, &kind, &store, &err) == 0, "%s", err.text);
    ck_assert_int_eq(tier_snapshots_new(&ops, &device, prefix, store, BYTES, &snapshots), 0);
    for (int i = 0; i < 2; i++) {
        uint32_t block;
        ids[0] = i;
        nodes[i] = prefix_enter(prefix, BYTES_LITERAL("tenant"));
        ck_assert(prefix_alloc(prefix, 0, 1, &block));
        ck_assert(prefix_insert(prefix, &nodes[i], ids, &block));
        prefix_release(prefix, 0, &block, 1);
    }
}

static void tear_down(void)
{
    tier_snapshots_free(snapshots);
    prefix_store_close(store);
    prefix_free(prefix);
    blocks_free(numbers);
    blocks_free(blocks);
    close(fd);
}

/* Another worker's: piece i stands behind the node, with -1 - i for ids. */
static void put_piece(uint32_t piece, uint8_t content)
{
    uint8_t bytes[BYTES];
    int32_t ids[BACKEND_BLOCK_TOKENS];
    for (int i = 0; i < BACKEND_BLOCK_TOKENS; i++)
        ids[i] = -1 - (int32_t)piece;
    memset(bytes, content, sizeof bytes);
    const struct prefix_place place = {.before = NUMBER, .ids = ids, .depth = DEPTH + 1, .use = 1};
    ck_assert_uint_ne(prefix_store_put(store, &place, bytes), 0);
}

static bool has(void)
{
    return tier_snapshots_has(snapshots, NUMBER, DEPTH, prefix_store_use(store));
}

static int work(void)
{
    const struct tier_nodes none = {0};
    struct error err = {0};
    return tier_snapshots_work(snapshots, &none, &err);
}

START_TEST(a_snapshot_that_lacks_any_piece_is_not_there)
{
    for (uint32_t piece = 0; piece < PIECES; piece++)
        if (piece != (uint32_t)_i)
            put_piece(piece, 1);
    ck_assert(!has());
    ck_assert_int_eq(tier_snapshots_bring(snapshots, nodes[0], NUMBER, DEPTH), 0);
    put_piece((uint32_t)_i, 1);
    ck_assert(has());
    ck_assert_int_eq(tier_snapshots_bring(snapshots, nodes[0], NUMBER, DEPTH), 1);
    ck_assert_int_eq(work(), 0);
}
END_TEST

START_TEST(one_that_is_brought_has_its_bytes)
{
    uint32_t snapshot;
    for (uint32_t piece = 0; piece < PIECES; piece++)
        put_piece(piece, (uint8_t)(10 + piece));
    ck_assert_int_eq(tier_snapshots_bring(snapshots, nodes[0], NUMBER, DEPTH), 1);
    ck_assert_int_eq(work(), 0);
    ck_assert(prefix_snapshot_at(prefix, nodes[0], &snapshot));
    for (uint32_t i = 0; i < STATE; i++)
        ck_assert_uint_eq(device.states[snapshot][i], 10 + i / BYTES);
}
END_TEST

START_TEST(while_one_comes_in_another_has_to_wait_and_comes_then)
{
    struct error err = {0};
    for (uint32_t piece = 0; piece < PIECES; piece++)
        put_piece(piece, 1);
    device.late = true;
    ck_assert_int_eq(tier_snapshots_bring(snapshots, nodes[0], NUMBER, DEPTH), 1);
    ck_assert_int_eq(work(), 0);
    ck_assert_int_eq(tier_snapshots_bring(snapshots, nodes[1], NUMBER, DEPTH), -EAGAIN);
    ck_assert(tier_snapshots_has_work(snapshots));
    ck_assert_int_eq(tier_snapshots_wait(snapshots, 0, &err), 1);
    device.late = false;
    ck_assert_int_eq(tier_snapshots_wait(snapshots, 0, &err), 1);
    ck_assert_int_eq(tier_snapshots_wait(snapshots, 0, &err), 0);
    ck_assert_int_eq(tier_snapshots_bring(snapshots, nodes[1], NUMBER, DEPTH), 1);
    ck_assert_int_eq(work(), 0);
    ck_assert(!tier_snapshots_has_work(snapshots));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, a_snapshot_that_lacks_any_piece_is_not_there, 0, PIECES);
    tcase_add_test(tests, one_that_is_brought_has_its_bytes);
    tcase_add_test(tests, while_one_comes_in_another_has_to_wait_and_comes_then);
}

int main(void)
{
    return run_tests("engine/tier_snapshots", add);
}
