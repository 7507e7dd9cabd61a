/* SPDX-License-Identifier: MIT */
/* The second tier alone: workers, each with blocks and a cache of its own, over one store. Their device
 * copies when it is asked whether it did, which is as late as one may. Each test runs with one group of
 * blocks, and with two of which the second has a window. */

#include "tests/unit/run.h"
#include "engine/tier.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/system/shm.h"

#define T      BACKEND_BLOCK_TOKENS
#define BLOCKS 1200
#define BYTES  48 /* of the largest block */
#define WINDOW (2 * T)
#define SALT   BYTES_LITERAL("tenant")

struct backend {
    uint8_t kv[2][BLOCKS][BYTES];
    struct {
        uint32_t group, block;
        uint8_t *host;
        bool out;
    } copies[64]; /* by ticket */
    struct backend_info info;
    uint64_t n_copies;  /* so far */
    uint64_t refuse_at; /* that one is not taken, once */
    int refusal;
    uint32_t late; /* times that it says of each copy that it is not done */
    uint32_t said;
    int patience; /* for which a poll waits now */
    bool lost;
    int lost_code; /* 0: -EIO */
};

struct worker {
    struct backend device;
    struct blocks *blocks[2];
    struct prefix *prefix;
    struct tier *tier;
};

static int fd;
static struct worker *first, *second;

/* ---- the device ---- */

static void info(const struct backend *device, struct backend_info *ret_info)
{
    *ret_info = device->info;
}

static int copy(struct backend *device, const struct backend_copy *what, bool out, uint64_t *ret_ticket)
{
    if (++device->n_copies == device->refuse_at) {
        device->n_copies--;
        device->refuse_at = 0;
        return device->refusal;
    }
    *ret_ticket = device->n_copies;
    device->copies[device->n_copies % 64].group = what->group;
    device->copies[device->n_copies % 64].block = what->blocks[0];
    device->copies[device->n_copies % 64].host = what->host;
    device->copies[device->n_copies % 64].out = out;
    ck_assert_uint_eq(what->n, 1);
    return 0;
}

static int copy_out(struct backend *device, const struct backend_copy *what, uint64_t *ret_ticket)
{
    return copy(device, what, true, ret_ticket);
}

static int copy_in(struct backend *device, const struct backend_copy *what, uint64_t *ret_ticket)
{
    return copy(device, what, false, ret_ticket);
}

static int poll_copy(struct backend *device, uint64_t ticket, int timeout_ms,
                     const struct backend_result **ret_results, struct error *err)
{
    ck_assert_int_eq(timeout_ms, device->patience); /* a step waits for no copy */
    if (device->lost)
        return error_set(err, device->lost_code ? device->lost_code : -EIO, "the device is lost");
    if (device->said++ < device->late)
        return -EAGAIN;
    device->said = 0;
    const uint32_t group = device->copies[ticket % 64].group;
    uint8_t *block = device->kv[group][device->copies[ticket % 64].block];
    uint8_t *host = device->copies[ticket % 64].host;
    const size_t bytes = device->info.groups[group].block_bytes;
    if (device->copies[ticket % 64].out)
        memcpy(host, block, bytes);
    else
        memcpy(block, host, bytes);
    return 0;
}

static const struct backend_ops ops = {
    .name = "copier", .info = info, .copy_out = copy_out, .copy_in = copy_in, .poll = poll_copy};

/* ---- workers ---- */

static struct worker *hire(uint32_t n_groups, uint32_t n_blocks)
{
    struct worker *worker = calloc(1, sizeof *worker);
    struct backend_info *about = &worker->device.info;
    struct prefix_store *store;
    struct error err = {0};
    about->n_groups = n_groups;
    about->groups[0] = (struct backend_group){1, 0, n_blocks, BYTES};
    about->groups[1] = (struct backend_group){1, WINDOW, n_blocks, BYTES / 3};
    struct prefix_store_kind kind = {.model = "the model", .layout = 7};
    for (uint32_t g = 0; g < n_groups; g++) {
        ck_assert_int_eq(blocks_new(n_blocks, &worker->blocks[g]), 0);
        kind.block_bytes += about->groups[g].block_bytes;
    }
    ck_assert_int_eq(prefix_new(about->groups, n_groups, worker->blocks, UINT32_MAX, &worker->prefix), 0);
    ck_assert_msg(prefix_store_open(fd, &kind, &store, &err) == 0, "%s", err.text);
    ck_assert_int_eq(tier_new(&ops, &worker->device, worker->prefix, store, &worker->tier), 0);
    return worker;
}

/* Nobody holds a block any more. */
static void dismiss(struct worker *worker)
{
    for (uint32_t g = 0; g < worker->device.info.n_groups; g++)
        ck_assert_uint_eq(prefix_available(worker->prefix, g), blocks_total(worker->blocks[g]));
    tier_free(worker->tier);
    prefix_free(worker->prefix);
    blocks_free(worker->blocks[0]);
    blocks_free(worker->blocks[1]);
    free(worker);
}

static void hire_two_with(int groups, size_t store_bytes)
{
    ck_assert_int_eq(shm_create("test", store_bytes, &fd), 0);
    first = hire((uint32_t)groups, BLOCKS);
    second = hire((uint32_t)groups, BLOCKS);
}

/* Both, over a store with room for all they make. */
static void hire_two(int groups)
{
    hire_two_with(groups, 4 << 20);
}

static void dismiss_two(void)
{
    dismiss(first);
    dismiss(second);
    close(fd);
}

/* ---- sequences ---- */

/* A prompt of n blocks, which begins as others of the same kind do; at `differs` it goes its own way. */
static struct sequence *arrive(struct worker *worker, int32_t kind, uint32_t n, uint32_t differs)
{
    struct sequence *sequence = calloc(1, sizeof *sequence);
    ck_assert_int_eq(ids_grow(&sequence->ids, (size_t)n * T), 0);
    for (uint32_t i = 0; i < n * T; i++)
        ck_assert_int_eq(ids_push(&sequence->ids, kind + (int32_t)(i / T) + (i / T >= differs ? 5000 : 0)),
                         0);
    sequence->n_groups = worker->device.info.n_groups;
    for (uint32_t g = 0; g < sequence->n_groups; g++)
        sequence->tables[g] = calloc(n, sizeof *sequence->tables[g]);
    sequence->space = sequence->place = prefix_enter(worker->prefix, SALT);
    return sequence;
}

static void go(struct worker *worker, struct sequence *sequence)
{
    prefix_leave(worker->prefix, sequence->space);
    ids_deinit(&sequence->ids);
    free(sequence->tables[0]);
    free(sequence->tables[1]);
    free(sequence);
}

/* What the n-th block of a group holds. */
static uint8_t content(const struct sequence *sequence, uint32_t group, uint32_t n, size_t i)
{
    return (uint8_t)((uint32_t)sequence->ids.data[(size_t)n * T] * 31 + group * 101 + i);
}

/* Computes all of the prompt's blocks, which are kept, and are nobody's then. */
static struct sequence *compute(struct worker *worker, int32_t kind, uint32_t n)
{
    struct sequence *sequence = arrive(worker, kind, n, UINT32_MAX);
    for (uint32_t g = 0; g < sequence->n_groups; g++) {
        ck_assert(prefix_alloc(worker->prefix, g, n, sequence->tables[g]));
        tier_fresh(worker->tier, g, sequence->tables[g], n);
        for (uint32_t at = 0; at < n; at++)
            for (size_t i = 0; i < worker->device.info.groups[g].block_bytes; i++)
                worker->device.kv[g][sequence->tables[g][at]][i] = content(sequence, g, at, i);
    }
    for (uint32_t at = 0; at < n; at++) {
        const uint64_t before = sequence->place;
        uint32_t blocks[BACKEND_MOST_GROUPS];
        for (uint32_t g = 0; g < sequence->n_groups; g++)
            blocks[g] = sequence->tables[g][at];
        if (prefix_insert(worker->prefix, &sequence->place, sequence->ids.data + (size_t)at * T, blocks))
            tier_offer(worker->tier, sequence, at, before);
    }
    for (uint32_t g = sequence->n_groups; g-- > 0;)
        prefix_release(worker->prefix, g, sequence->tables[g], n);
    return sequence;
}

/* Until nothing is left to do; how many steps that took. */
static uint32_t settle(struct worker *worker)
{
    struct error err = {0};
    uint32_t steps = 0;
    for (; tier_has_work(worker->tier); steps++) {
        ck_assert_msg(tier_work(worker->tier, &err) == 0, "%s", err.text);
        ck_assert_uint_lt(steps, 10000);
    }
    return steps;
}

static void keep(struct worker *worker, int32_t kind, uint32_t n)
{
    go(worker, compute(worker, kind, n));
    settle(worker);
}

/* The blocks that the cache has are filled with what was computed. */
static void check_filled(struct worker *worker, const struct sequence *sequence, uint32_t n)
{
    for (uint32_t g = 0; g < sequence->n_groups; g++) {
        const struct backend_group *group = &worker->device.info.groups[g];
        for (uint32_t at = backend_first_block(group, n * T); at < n; at++)
            for (size_t i = 0; i < group->block_bytes; i++)
                ck_assert_uint_eq(worker->device.kv[g][sequence->tables[g][at]][i],
                                  content(sequence, g, at, i));
    }
}

static uint32_t look_up(struct worker *worker, struct sequence *sequence)
{
    return prefix_find(worker->prefix, sequence->space, sequence->ids.data, (uint32_t)(sequence->ids.len / T),
                       sequence->tables, &sequence->place);
}

/* Asks for a prompt's blocks until there are no more: how many the cache has then. *ret_asked: how often. */
static uint32_t restore(struct worker *worker, int32_t kind, uint32_t n, uint32_t differs,
                        uint32_t *ret_asked)
{
    struct sequence *sequence = arrive(worker, kind, n, differs);
    struct error err = {0};
    bool more = true;
    uint32_t found = 0;
    for (*ret_asked = 0; more; ++*ret_asked) {
        ck_assert_uint_lt(*ret_asked, 10000);
        ck_assert_msg(tier_work(worker->tier, &err) == 0, "%s", err.text);
        found = look_up(worker, sequence);
        found += tier_restore(worker->tier, sequence, found, n, &more);
    }
    settle(worker);
    ck_assert_uint_eq(look_up(worker, sequence), found);
    check_filled(worker, sequence, found);
    go(worker, sequence);
    return found;
}

static uint32_t found_by(struct worker *worker, int32_t kind, uint32_t n)
{
    uint32_t asked;
    return restore(worker, kind, n, UINT32_MAX, &asked);
}

/* ---- what is promised ---- */

START_TEST(what_one_worker_keeps_another_finds)
{
    hire_two(_i);
    keep(first, 100, 10);
    ck_assert_uint_eq(first->device.n_copies, 10 * (uint64_t)_i);
    ck_assert_uint_eq(found_by(second, 100, 10), 10);
    ck_assert_uint_eq(tier_restores(second->tier), 10);
    ck_assert_uint_eq(second->device.n_copies, 10 * (uint64_t)_i);
    ck_assert_uint_eq(found_by(second, 100, 10), 10); /* in its own cache by now */
    ck_assert_uint_eq(second->device.n_copies, 10 * (uint64_t)_i);
    ck_assert_uint_eq(found_by(second, 700, 10), 0);
    ck_assert_uint_eq(tier_restores(first->tier), 0);
    dismiss_two();
}
END_TEST

START_TEST(a_prompt_that_goes_its_own_way_gets_what_it_shares)
{
    uint32_t asked;
    hire_two(_i);
    keep(first, 100, 10);
    ck_assert_uint_eq(restore(second, 100, 10, 3, &asked), 3);
    ck_assert_uint_eq(restore(second, 100, 10, 0, &asked), 0);
    ck_assert_uint_eq(restore(second, 100, 12, 7, &asked), 7);
    ck_assert_uint_eq(tier_restores(second->tier), 7);
    dismiss_two();
}
END_TEST

/* However much there is: a step copies a few blocks each way, so that it is none the longer. */
START_TEST(a_step_copies_a_few_blocks)
{
    struct error err = {0};
    uint32_t asked;
    hire_two(_i);
    go(first, compute(first, 100, 200));
    ck_assert_uint_eq(first->device.n_copies, 0);
    for (uint64_t before = 0; tier_has_work(first->tier); before = first->device.n_copies) {
        ck_assert_int_eq(tier_work(first->tier, &err), 0);
        ck_assert_uint_le(first->device.n_copies - before, 16 * (uint64_t)_i);
    }
    ck_assert_uint_eq(restore(second, 100, 200, UINT32_MAX, &asked), 200);
    ck_assert_uint_ge(asked, 200 / 4);
    dismiss_two();
}
END_TEST

START_TEST(copies_may_be_late)
{
    hire_two(_i);
    first->device.late = second->device.late = 3;
    go(first, compute(first, 100, 40));
    ck_assert_uint_gt(settle(first), 40);
    ck_assert_uint_eq(found_by(second, 100, 40), 40);
    dismiss_two();
}
END_TEST

/* And what is behind it would not be found. */
START_TEST(a_block_that_is_anothers_before_its_turn_is_not_kept)
{
    for (uint32_t group = 0; group < (uint32_t)_i; group++)
        for (int under_way = 0; under_way < 2; under_way++) {
            struct error err = {0};
            hire_two(_i);
            struct sequence *sequence = compute(first, 100, 4);
            first->device.late = 2;
            if (under_way)
                ck_assert_int_eq(tier_work(first->tier, &err), 0);
            tier_fresh(first->tier, group, &sequence->tables[group][1], 1);
            memset(first->device.kv[group][sequence->tables[group][1]], 0xee, BYTES);
            go(first, sequence);
            settle(first);
            ck_assert_uint_eq(found_by(second, 100, 4), 1);
            dismiss_two();
        }
}
END_TEST

START_TEST(what_another_put_there_is_not_copied_again)
{
    hire_two(_i);
    keep(first, 100, 10);
    keep(second, 100, 10);
    ck_assert_uint_eq(second->device.n_copies, 0);
    keep(second, 100, 12); /* its end is new */
    ck_assert_uint_eq(second->device.n_copies, 2 * (uint64_t)_i);
    ck_assert_uint_eq(found_by(first, 100, 12), 12);
    ck_assert_uint_eq(tier_restores(first->tier), 2);
    dismiss_two();
}
END_TEST

START_TEST(what_is_missing_behind_a_workers_own_blocks_is_brought)
{
    hire_two(_i);
    keep(first, 100, 10);
    go(second, compute(second, 100, 4)); /* which it has not looked for in the store yet */
    ck_assert_uint_eq(found_by(second, 100, 10), 10);
    ck_assert_uint_eq(tier_restores(second->tier), 6);
    go(second, compute(second, 400, 4)); /* which the store has not, nor what is behind it */
    keep(first, 402, 8);
    ck_assert_uint_eq(found_by(second, 400, 10), 4);
    dismiss_two();
}
END_TEST

/* The oldest are kept, and the ring of them goes round. */
START_TEST(more_than_can_be_owed_is_let_go)
{
    hire_two(_i);
    keep(first, 1000, 1100);
    const uint32_t kept = found_by(second, 1000, 1100);
    ck_assert(kept >= 500 && kept < 1100);
    keep(first, 3000, 300);
    keep(first, 4000, 900);
    ck_assert_uint_eq(found_by(second, 4000, 900), 900);
    dismiss_two();
}
END_TEST

START_TEST(a_copy_that_cannot_be_now_is_made_later)
{
    for (uint64_t at = 1; at <= 16; at++)
        for (int late = 0; late < 2; late++) {
            hire_two(_i);
            first->device.late = second->device.late = (uint32_t)late;
            first->device.refusal = second->device.refusal = -EAGAIN;
            first->device.refuse_at = second->device.refuse_at = at;
            keep(first, 100, 8);
            ck_assert_uint_eq(found_by(second, 100, 8), 8);
            ck_assert_uint_eq(tier_restores(second->tier), 8);
            dismiss_two();
        }
}
END_TEST

/* The prompt is computed from there on. */
START_TEST(a_copy_in_that_is_refused_ends_what_is_brought)
{
    for (uint64_t at = 1; at <= 8 * (uint64_t)_i; at++) {
        hire_two(_i);
        keep(first, 100, 8);
        second->device.refusal = -ENOMEM;
        second->device.refuse_at = at;
        ck_assert_uint_eq(found_by(second, 100, 8), (at - 1) / (uint64_t)_i);
        ck_assert_uint_eq(found_by(second, 100, 8), 8);
        dismiss_two();
    }
}
END_TEST

START_TEST(no_more_is_brought_than_there_is_room_for)
{
    hire_two(_i);
    keep(first, 100, 8);
    for (uint32_t group = 0; group < (uint32_t)_i; group++) {
        uint32_t held[4];
        struct worker *small = hire((uint32_t)_i, 5);
        ck_assert(prefix_alloc(small->prefix, group, 4, held));
        ck_assert_uint_eq(found_by(small, 100, 8), 1);
        prefix_release(small->prefix, group, held, 4);
        ck_assert_uint_eq(found_by(small, 100, 8), 5);
        dismiss(small);
    }
    dismiss_two();
}
END_TEST

/* Its copies out are under way when others are brought into the same blocks. */
START_TEST(what_is_brought_is_not_kept_as_what_was_there)
{
    hire_two(_i);
    keep(first, 300, 4);
    struct worker *small = hire((uint32_t)_i, 4);
    small->device.late = 5;
    go(small, compute(small, 100, 4));
    ck_assert_uint_eq(found_by(small, 300, 4), 4);
    ck_assert_uint_eq(found_by(second, 100, 4), 0);
    ck_assert_uint_eq(found_by(second, 300, 4), 4);
    dismiss(small);
    dismiss_two();
}
END_TEST

/* The block of one group alone, of a node that is there still. */
START_TEST(a_node_that_lost_a_block_to_what_is_brought_is_not_kept)
{
    uint32_t held[4];
    hire_two(2);
    keep(first, 300, 1);
    struct worker *small = hire(2, 8);
    small->device.late = 5;
    go(small, compute(small, 100, 4));
    ck_assert(prefix_alloc(small->prefix, 1, 4, held));
    ck_assert_uint_eq(found_by(small, 300, 1), 1);
    ck_assert_uint_eq(found_by(second, 100, 4), 3);
    prefix_release(small->prefix, 1, held, 4);
    dismiss(small);
    dismiss_two();
}
END_TEST

/* What hangs on a block goes before it, and what was used lately stays. */
START_TEST(a_full_store_loses_ends_of_prompts_and_the_oldest_first)
{
    const size_t places = 8 * (512 + (_i == 1 ? BYTES : BYTES + BYTES / 3));
    hire_two_with(_i, 4096 + places);
    keep(first, 100, 8);
    keep(first, 300, 2);
    ck_assert_uint_eq(found_by(second, 100, 8), 6);
    struct worker *third = hire((uint32_t)_i, BLOCKS);
    keep(first, 500, 2);
    ck_assert_uint_eq(found_by(third, 300, 2), 0);
    ck_assert_uint_eq(found_by(third, 100, 8), 6);
    dismiss(third);
    dismiss_two();
}
END_TEST

/* Out, and in for one that waits: the rest of its blocks comes with the next look. */
START_TEST(where_nothing_else_is_to_be_done_a_copy_is_waited_for)
{
    struct error err = {0};
    struct sequence *sequence;
    bool more;
    hire_two(_i);
    ck_assert_int_eq(tier_wait(first->tier, 10, &err), 0); /* for none */
    sequence = compute(first, 1, 8);
    first->device.late = UINT32_MAX;
    ck_assert_int_eq(tier_work(first->tier, &err), 0);
    ck_assert(tier_has_work(first->tier));
    first->device.patience = 10;
    ck_assert_int_eq(tier_wait(first->tier, 10, &err), 0); /* in vain */
    first->device.late = 0;
    ck_assert_int_eq(tier_wait(first->tier, 10, &err), 0);
    first->device.patience = 0;
    go(first, sequence);
    settle(first);
    sequence = arrive(second, 1, 8, UINT32_MAX);
    const uint32_t n = tier_restore(second->tier, sequence, look_up(second, sequence), 8, &more);
    ck_assert(n > 0 && n < 8 && more);
    second->device.patience = 10;
    for (uint32_t i = 0; i < n; i++)
        ck_assert_int_eq(tier_wait(second->tier, 10, &err), 0);
    second->device.lost = true; /* there is nothing that it could be asked */
    ck_assert_int_eq(tier_wait(second->tier, 10, &err), 0);
    second->device.lost = false;
    second->device.patience = 0;
    go(second, sequence);
    settle(second);
    dismiss_two();
}
END_TEST

START_TEST(a_device_that_fails_while_it_is_waited_for_is_told_of)
{
    static const int codes[] = {-EIO, -ENOMEM, -ETIMEDOUT, -EPERM};
    struct error err = {0};
    hire_two(_i);
    struct sequence *sequence = compute(first, 1, 8);
    first->device.late = UINT32_MAX;
    ck_assert_int_eq(tier_work(first->tier, &err), 0);
    first->device.late = 0;
    first->device.patience = 10;
    first->device.lost = true;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        first->device.lost_code = codes[i];
        ck_assert_int_eq(tier_wait(first->tier, 10, &err), codes[i]);
        ck_assert_str_eq(err.text, "the device is lost");
    }
    first->device.lost = false;
    ck_assert_int_eq(tier_wait(first->tier, 10, &err), 0);
    first->device.patience = 0;
    go(first, sequence);
    settle(first);
    dismiss_two();
}
END_TEST

START_TEST(a_device_that_fails_is_told_of)
{
    struct error err = {0};
    hire_two(_i);
    go(first, compute(first, 100, 2));
    first->device.refusal = -EIO;
    first->device.refuse_at = 1;
    ck_assert_int_eq(tier_work(first->tier, &err), -EIO);
    ck_assert_str_eq(err.text, "a copy of KV blocks could not be started: Input/output error");
    settle(first);
    go(first, compute(first, 300, 2));
    first->device.late = 1;
    ck_assert_int_eq(tier_work(first->tier, &err), 0);
    first->device.lost = true;
    ck_assert_int_eq(tier_work(first->tier, &err), -EIO);
    ck_assert_str_eq(err.text, "the device is lost");
    dismiss_two(); /* as an engine is freed then */
}
END_TEST

START_TEST(a_device_that_fails_while_blocks_come_in_is_told_of)
{
    struct error err = {0};
    bool more;
    hire_two(_i);
    keep(first, 100, 2);
    struct sequence *sequence = arrive(second, 100, 2, UINT32_MAX);
    ck_assert_int_eq(tier_work(second->tier, &err), 0);
    ck_assert_uint_eq(tier_restore(second->tier, sequence, 0, 2, &more), 2);
    ck_assert(tier_has_work(second->tier) && !more);
    second->device.lost = true;
    ck_assert_int_eq(tier_work(second->tier, &err), -EIO);
    second->device.lost = false;
    settle(second);
    go(second, sequence);
    dismiss_two();
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, what_one_worker_keeps_another_finds, 1, 3);
    tcase_add_loop_test(tests, a_prompt_that_goes_its_own_way_gets_what_it_shares, 1, 3);
    tcase_add_loop_test(tests, a_step_copies_a_few_blocks, 1, 3);
    tcase_add_loop_test(tests, copies_may_be_late, 1, 3);
    tcase_add_loop_test(tests, a_block_that_is_anothers_before_its_turn_is_not_kept, 1, 3);
    tcase_add_loop_test(tests, what_another_put_there_is_not_copied_again, 1, 3);
    tcase_add_loop_test(tests, what_is_missing_behind_a_workers_own_blocks_is_brought, 1, 3);
    tcase_add_loop_test(tests, more_than_can_be_owed_is_let_go, 1, 3);
    tcase_add_loop_test(tests, a_copy_that_cannot_be_now_is_made_later, 1, 3);
    tcase_add_loop_test(tests, a_copy_in_that_is_refused_ends_what_is_brought, 1, 3);
    tcase_add_loop_test(tests, no_more_is_brought_than_there_is_room_for, 1, 3);
    tcase_add_loop_test(tests, what_is_brought_is_not_kept_as_what_was_there, 1, 3);
    tcase_add_test(tests, a_node_that_lost_a_block_to_what_is_brought_is_not_kept);
    tcase_add_loop_test(tests, a_full_store_loses_ends_of_prompts_and_the_oldest_first, 1, 3);
    tcase_add_loop_test(tests, where_nothing_else_is_to_be_done_a_copy_is_waited_for, 1, 3);
    tcase_add_loop_test(tests, a_device_that_fails_while_it_is_waited_for_is_told_of, 1, 3);
    tcase_add_loop_test(tests, a_device_that_fails_is_told_of, 1, 3);
    tcase_add_loop_test(tests, a_device_that_fails_while_blocks_come_in_is_told_of, 1, 3);
}

int main(void)
{
    return run_tests("engine/tier", add);
}
