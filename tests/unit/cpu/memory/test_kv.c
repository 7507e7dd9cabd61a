/* SPDX-License-Identifier: MIT */
/* How many KV blocks there are: what is wanted, or as much of it as this worker's part of memory holds. */

#include "cpu/memory/kv.h"

#include "common/amount.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 32768 /* bytes of a group's: two layers of 16 KiB */

static struct model_layer layers[4];
static const struct model model = {.params = {.n_layers = 4, .n_heads = 4, .n_kv_heads = 2, .head_dim = 64},
                                   .layers = layers};
static struct memory memory;
static struct kv kv;
static struct error err;

/* Every second layer has a window, which begins with the layer `first`. */
static void set_windows(int first)
{
    for (int l = 0; l < 4; l++)
        layers[l].traits = (struct layer_traits){.window = l % 2 == first ? 64 : 0, .heads = {4, 2, 64}};
}

static void set_up(void)
{
    memory = (struct memory){0};
    set_windows(1);
}

static void tear_down(void)
{
    memory_deinit(&memory);
}

/* Of all that the machine has, these bytes are nobody's. */
static void leave(uint64_t bytes)
{
    struct available available;
    ck_assert_int_eq(available_read("", &available), 0);
    memory.reserved = available.total - bytes;
}

/* So many blocks of each group, or what four slots want: 128 of the first and 18 of the second. */
static int take(uint32_t n_blocks)
{
    const struct kv_config config = {
        .model = &model, .n_blocks = n_blocks, .n_slots = 4, .n_context = 1024, .max_rows = 64};
    err = (struct error){0};
    return kv_init(&kv, &config, &memory, &err);
}

static void expect_beginning(const char *text)
{
    ck_assert_msg(strncmp(err.text, text, strlen(text)) == 0, "%s", err.text);
}

START_TEST(what_is_wanted_is_cut_to_what_fits)
{
    static const struct {
        uint64_t fits; /* blocks: seven eighths of what is left */
        uint32_t first, second;
    } cases[] = {{7, 3, 4}, {14, 10, 4}, {77, 68, 9}, {140, 123, 17}, {147, 128, 18}, {1400, 128, 18}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leave(cases[i].fits / 7 * 8 * BLOCK);
        ck_assert_msg(take(0) == 0, "%s", err.text);
        ck_assert_uint_eq(kv.n_groups, 2);
        ck_assert_uint_eq(kv.groups[0].block_bytes, BLOCK);
        ck_assert_uint_eq(kv.groups[1].block_bytes, BLOCK);
        ck_assert_uint_eq(kv.groups[0].n_blocks, cases[i].first);
        ck_assert_uint_eq(kv.groups[1].n_blocks, cases[i].second);
        memory_deinit(&memory);
    }
}
END_TEST

START_TEST(a_window_without_room_for_one_sequence_is_refused)
{
    leave(4 * BLOCK); /* the second group alone needs four blocks, and half a block is missing */
    ck_assert_int_eq(take(0), -ENOMEM);
    expect_beginning("1 KV block of 64 KiB for each of 1 worker do not fit (1 would): ");
    ck_assert_uint_eq(memory.total, 0);
}
END_TEST

START_TEST(who_asks_for_a_number_gets_it_within_his_part)
{
    char taken[192];
    memory.n_sharers = 2;
    leave((uint64_t)100 * 2 * BLOCK);
    ck_assert_int_eq(take(50), 0);
    ck_assert_uint_eq(kv.groups[0].n_blocks, 50);
    ck_assert_uint_eq(kv.groups[1].n_blocks, 50);
    memory_deinit(&memory);
    ck_assert_int_eq(take(51), -ENOMEM);
    expect_beginning("51 KV blocks of 64 KiB for each of 2 workers do not fit (50 would): ");
    memory.total = 2 * BLOCK + 1; /* weights of its own */
    ck_assert_int_eq(take(49), -ENOMEM);
    snprintf(taken, sizeof taken, "%s used by this worker, %s by the prefix store",
             amount_of_bytes(memory.total).text, amount_of_bytes(memory.reserved).text);
    ck_assert_msg(strstr(err.text, " (48 would): ") && strstr(err.text, taken), "%s", err.text);
    memory.total = 0;
}
END_TEST

START_TEST(each_layer_has_its_own_place_in_a_block_of_its_group)
{
    ck_assert_int_eq(take(2), 0);
    for (uint32_t l = 0; l < 4; l++) {
        ck_assert_uint_eq(kv.layers[l].group, l % 2);
        ck_assert_uint_eq(kv.layers[l].offset, l / 2 * BLOCK / 2);
    }
    memset(kv_block(&kv, 0, 0), 1, 2 * BLOCK);
    memset(kv_block(&kv, 1, 0), 2, 2 * BLOCK);
    ck_assert_uint_eq(*kv_block(&kv, 0, 1), 1);
    ck_assert_uint_eq(kv_block(&kv, 0, 1)[BLOCK - 1], 1);
}
END_TEST

START_TEST(blocks_of_another_order_have_another_layout)
{
    struct kv_config config = {
        .model = &model, .type = BACKEND_KV_Q8, .n_blocks = 2, .n_slots = 4, .n_context = 1024};
    uint64_t seen[5];
    ck_assert_int_eq(take(2), 0);
    seen[0] = kv_layout(&kv);
    ck_assert_int_eq(take(3), 0);
    ck_assert_uint_eq(kv_layout(&kv), seen[0]); /* there are more of them */
    ck_assert_int_eq(kv_init(&kv, &config, &memory, &err), 0);
    seen[1] = kv_layout(&kv);
    config.type = BACKEND_KV_Q4;
    ck_assert_int_eq(kv_init(&kv, &config, &memory, &err), 0);
    seen[4] = kv_layout(&kv);
    set_windows(0);
    ck_assert_int_eq(take(2), 0);
    seen[2] = kv_layout(&kv);
    set_windows(2); /* none */
    ck_assert_int_eq(take(2), 0);
    seen[3] = kv_layout(&kv);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < i; j++)
            ck_assert_uint_ne(seen[i], seen[j]);
}
END_TEST

START_TEST(a_model_that_ranks_keeps_floats_unless_another_type_is_asked_for)
{
    struct model ranks = model;
    struct kv_config config = {.model = &ranks, .n_blocks = 2, .n_slots = 4, .n_context = 1024};
    ck_assert_int_eq(take(2), 0);
    ck_assert_int_eq(kv.type, BACKEND_KV_F16);
    ranks.params.pooling = POOLING_RANK;
    ck_assert_int_eq(kv_init(&kv, &config, &memory, &err), 0);
    ck_assert_int_eq(kv.type, BACKEND_KV_F32);
    ck_assert_uint_eq(kv.groups[0].block_bytes, 2 * BLOCK);
    config.type = BACKEND_KV_F16;
    ck_assert_int_eq(kv_init(&kv, &config, &memory, &err), 0);
    ck_assert_int_eq(kv.type, BACKEND_KV_F16);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, what_is_wanted_is_cut_to_what_fits);
    tcase_add_test(tests, a_window_without_room_for_one_sequence_is_refused);
    tcase_add_test(tests, who_asks_for_a_number_gets_it_within_his_part);
    tcase_add_test(tests, each_layer_has_its_own_place_in_a_block_of_its_group);
    tcase_add_test(tests, blocks_of_another_order_have_another_layout);
    tcase_add_test(tests, a_model_that_ranks_keeps_floats_unless_another_type_is_asked_for);
}

int main(void)
{
    return run_tests("kv", add);
}
