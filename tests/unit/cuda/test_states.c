/* SPDX-License-Identifier: MIT */
/* Recurrent states on the device: a sequence goes on from a snapshot with the bits that it had, wherever the
 * snapshot has been in between; and what cannot be is refused. The device is invariant, so that bits can be
 * compared. */

#include "cuda/backend.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/small_model.h"
#include "tests/unit/cuda/run_step.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROWS      80
#define SNAPSHOTS 6
#define BLOCKS    4 /* of a slot */

static struct model *model;
static struct backend *backend;
static int32_t ids[ROWS];
static float *whole, *again; /* [ROWS][n_vocab] */

static struct backend *open_backend(uint32_t n_snapshots)
{
    const struct backend_config config = {.model = model,
                                          .n_slots = 4,
                                          .n_context = 128,
                                          .n_blocks = 16,
                                          .n_snapshots = n_snapshots,
                                          .max_rows = 64,
                                          .invariant = true};
    struct backend *opened = NULL;
    struct error err = {0};
    ck_assert_msg(quern_backend.open(&config, &opened, &err) == 0, "%s", err.text);
    return opened;
}

static void set_up(void)
{
    struct synth_shape shape = hybrid_shape;
    shape.n_embd = shape.n_ff = 64;
    shape.head_dim = 32;
    shape.delta = (struct delta_net){2, 4, 16, 24, 4, false};
    model = make_model(&shape, "F32");
    backend = open_backend(SNAPSHOTS);
    const size_t bytes = (size_t)ROWS * model->params.n_vocab * sizeof *whole;
    whole = calloc(1, bytes);
    again = calloc(1, bytes);
    for (uint32_t i = 0; i < ROWS; i++)
        ids[i] = (int32_t)(3 + (i * i * 13 + i * 31) % 390);
}

static void tear_down(void)
{
    quern_backend.close(backend);
    model_free(model);
    free(whole);
    free(again);
}

static int try(const struct backend_row_set *set)
{
    const struct backend_step step = {set, 1};
    uint64_t ticket;
    return quern_backend.submit(backend, &step, &ticket);
}

/* Beginning at a position, with a snapshot where that is not 0. */
static int open_slot(uint32_t slot, uint32_t position, uint32_t snapshot)
{
    const struct backend_slot params = {
        .sampling = SAMPLING_GREEDY, .end_position = 127, .position = position, .snapshot = snapshot};
    return quern_backend.slot_open(backend, slot, &params);
}

/* Blocks of a slot are 4 slot, 4 slot + 1 …, the first ones `shared` with slot 0; all are told at once. */
static struct backend_blocks blocks_of(uint32_t slot, uint32_t shared, bool told, uint32_t *numbers)
{
    for (uint32_t i = 0; i < BLOCKS; i++)
        numbers[i] = i < shared ? i : slot * BLOCKS + i;
    return (struct backend_blocks){numbers, told ? 0 : BLOCKS, told ? BLOCKS : 0};
}

/* Rows first … end − 1 in chunks; a snapshot behind `border` rows of the sequence, if that is not 0. */
struct feeding {
    uint32_t slot, shared, first, end, chunk, border, snapshot;
    bool told; /* of its blocks, before */
};

static void feed(const struct feeding *f, float *logits)
{
    uint32_t numbers[BLOCKS];
    bool told = f->told;
    for (uint32_t at = f->first; at < f->end;) {
        const uint32_t n = f->end - at < f->chunk ? f->end - at : f->chunk;
        struct backend_row_set set = {.slot = f->slot,
                                      .ids = ids + at,
                                      .n_ids = n,
                                      .position = at,
                                      .output = BACKEND_LOGITS_ALL,
                                      .logits = logits + (size_t)at * model->params.n_vocab};
        set.blocks[0] = blocks_of(f->slot, f->shared, told, numbers);
        if (at < f->border && at + n >= f->border) {
            set.snapshot_rows = f->border - at;
            set.snapshot = f->snapshot;
        }
        told = true;
        run_step(backend, &set, 1);
        at += n;
    }
}

static void must_be_equal(uint32_t first, uint32_t end)
{
    const size_t n_vocab = model->params.n_vocab;
    for (size_t i = first * n_vocab; i < end * n_vocab; i++)
        ck_assert_msg(memcmp(&whole[i], &again[i], sizeof *whole) == 0,
                      "logit %zu of row %zu: %.9g, not %.9g", i % n_vocab, i / n_vocab, (double)again[i],
                      (double)whole[i]);
    memset(again, 0, ROWS * n_vocab * sizeof *again);
}

/* The whole in slot 0, with a snapshot behind 32 rows. */
static void feed_whole(uint32_t snapshot)
{
    const struct feeding all = {.end = ROWS, .chunk = 64, .border = 32, .snapshot = snapshot};
    ck_assert_int_eq(open_slot(0, 0, 0), 0);
    feed(&all, whole);
}

START_TEST(bits_do_not_depend_on_chunks)
{
    static const uint32_t chunks[] = {1, 3, 33};
    const uint32_t end = test_is_scaled() ? 36 : ROWS; /* in the second block */
    set_up();
    feed_whole(0);
    for (uint32_t i = 0; i < 3; i++) {
        const struct feeding cut = {.slot = 1 + i, .end = end, .chunk = chunks[i]};
        ck_assert_int_eq(open_slot(1 + i, 0, 0), 0);
        feed(&cut, again);
        must_be_equal(0, end);
    }
    tear_down();
}
END_TEST

START_TEST(a_sequence_goes_on_from_a_snapshot)
{
    set_up();
    feed_whole(2);
    const struct feeding rest = {.slot = 1, .shared = 1, .first = 32, .end = ROWS, .chunk = 7};
    for (int i = 0; i < 2; i++) { /* it is a copy */
        ck_assert_int_eq(open_slot(1, 32, 2), 0);
        feed(&rest, again);
        must_be_equal(32, ROWS);
        quern_backend.slot_close(backend, 1);
    }
    tear_down();
}
END_TEST

static void copy(bool out, uint32_t group, uint32_t number, void *host)
{
    const struct backend_copy what = {.group = group, .blocks = &number, .n = 1, .host = host};
    uint64_t ticket;
    ck_assert_int_eq((out ? quern_backend.copy_out : quern_backend.copy_in)(backend, &what, &ticket), 0);
    wait_for(backend, ticket);
}

/* To another device: block 0 and the snapshot. */
START_TEST(a_snapshot_goes_to_the_host_and_to_another_device)
{
    struct backend_info info;
    set_up();
    quern_backend.info(backend, &info);
    uint8_t *block = malloc(info.groups[0].block_bytes), *state = malloc(info.state_bytes);
    ck_assert_uint_eq(info.n_snapshots, SNAPSHOTS);
    feed_whole(3);
    copy(true, 0, 0, block);
    copy(true, info.n_groups, 3, state);
    quern_backend.close(backend);
    backend = open_backend(SNAPSHOTS);
    copy(false, 0, 0, block);
    copy(false, info.n_groups, 5, state);
    const struct feeding rest = {.slot = 2, .shared = 1, .first = 32, .end = ROWS, .chunk = 48};
    ck_assert_int_eq(open_slot(2, 32, 5), 0);
    feed(&rest, again);
    must_be_equal(32, ROWS);
    free(block);
    free(state);
    tear_down();
}
END_TEST

/* The row that completes a block comes from a recording, one of many. */
START_TEST(a_recorded_decode_takes_a_snapshot)
{
    uint32_t numbers[BLOCKS];
    set_up();
    feed_whole(0);
    const struct feeding before = {.slot = 1, .end = 63, .chunk = 63};
    ck_assert_int_eq(open_slot(1, 0, 0), 0);
    feed(&before, again);
    struct backend_row_set set = {.slot = 1,
                                  .ids = ids + 63,
                                  .n_ids = 1,
                                  .position = 63,
                                  .output = BACKEND_SAMPLE_LAST,
                                  .snapshot_rows = 1,
                                  .snapshot = 4};
    set.blocks[0] = blocks_of(1, 0, true, numbers);
    const uint64_t launched = device_counts(backend_device(backend)).graph_launches;
    run_step(backend, &set, 1);
    ck_assert_uint_eq(device_counts(backend_device(backend)).graph_launches, launched + 1);
    const struct feeding rest = {.slot = 3, .shared = 2, .first = 64, .end = ROWS, .chunk = 16};
    ck_assert_int_eq(open_slot(3, 64, 4), 0);
    feed(&rest, again);
    must_be_equal(64, ROWS);
    tear_down();
}
END_TEST

START_TEST(a_slot_begins_with_zeros_and_so_it_does_after_a_trim)
{
    set_up();
    feed_whole(0);
    const struct feeding all = {.end = ROWS, .chunk = 64};
    quern_backend.trim(backend, 0, 0, 0);
    feed(&all, again);
    must_be_equal(0, ROWS);
    quern_backend.slot_close(backend, 0);
    ck_assert_int_eq(open_slot(0, 0, 0), 0);
    feed(&all, again);
    must_be_equal(0, ROWS);
    /* Without a snapshot nothing leads back to any other position: the slot is good for closing only. */
    quern_backend.trim(backend, 0, 64, SNAPSHOTS);
    const struct backend_row_set set = {
        .ids = ids + 64, .n_ids = 1, .position = 64, .blocks = {{.told = 2}}, .output = BACKEND_SAMPLE_LAST};
    ck_assert_int_eq(try(&set), -EINVAL);
    tear_down();
}
END_TEST

/* The id that comes behind `end` rows, fed one by one. */
static int32_t sampled_behind(uint32_t end)
{
    uint32_t numbers[BLOCKS];
    const struct feeding before = {.slot = 3, .end = end - 1, .chunk = 64};
    ck_assert_int_eq(open_slot(3, 0, 0), 0);
    feed(&before, again);
    struct backend_row_set set = {
        .slot = 3, .ids = ids + end - 1, .n_ids = 1, .position = end - 1, .output = BACKEND_SAMPLE_LAST};
    set.blocks[0] = blocks_of(3, 0, true, numbers);
    const int32_t id = run_step(backend, &set, 1)->ids[0];
    quern_backend.slot_close(backend, 3);
    return id;
}

/* Rows 40 … are a draft whose first id is right and whose second is wrong. */
START_TEST(a_wrong_draft_is_led_back)
{
    uint32_t numbers[BLOCKS];
    set_up();
    ids[41] = sampled_behind(41);
    feed_whole(0);
    const struct feeding before = {.slot = 1, .end = 40, .chunk = 40};
    ck_assert_int_eq(open_slot(1, 0, 0), 0);
    feed(&before, again);
    int32_t draft[] = {ids[40], ids[41], sampled_behind(42) == 5 ? 6 : 5, 7};
    struct backend_row_set set = {.slot = 1,
                                  .ids = draft,
                                  .n_ids = 4,
                                  .position = 40,
                                  .output = BACKEND_SAMPLE_ALL,
                                  .snapshot_rows = 1,
                                  .snapshot = 5};
    set.blocks[0] = blocks_of(1, 0, true, numbers);
    const struct backend_result *result = run_step(backend, &set, 1);
    ck_assert_uint_eq(result->n_accepted, 1);
    ck_assert_uint_eq(result->n_ids, 2);
    set = (struct backend_row_set){
        .slot = 1, .ids = ids + 42, .n_ids = 1, .position = 42, .output = BACKEND_SAMPLE_LAST};
    set.blocks[0] = blocks_of(1, 0, true, numbers);
    ck_assert_int_eq(try(&set), -EINVAL); /* its state is beyond */
    quern_backend.trim(backend, 1, 41, 5);
    set.blocks[0] = (struct backend_blocks){numbers + 2, 2, 2}; /* the trim has cut them */
    set = (struct backend_row_set){.slot = 1,
                                   .ids = ids + 41,
                                   .n_ids = 1,
                                   .position = 41,
                                   .output = BACKEND_LOGITS_LAST,
                                   .logits = again + (size_t)41 * model->params.n_vocab,
                                   .blocks = {set.blocks[0]}};
    run_step(backend, &set, 1);
    const struct feeding rest = {.slot = 1, .first = 42, .end = ROWS, .chunk = 9, .told = true};
    feed(&rest, again);
    must_be_equal(41, ROWS);
    tear_down();
}
END_TEST

START_TEST(what_cannot_be_is_refused)
{
    uint32_t numbers[BLOCKS];
    uint64_t ticket;
    set_up();
    ck_assert_int_eq(open_slot(0, 32, SNAPSHOTS), -EINVAL);
    ck_assert_int_eq(open_slot(0, 31, 0), -EINVAL); /* a state is kept at borders of blocks */
    ck_assert_int_eq(open_slot(0, 33, 0), -EINVAL);
    ck_assert_int_eq(open_slot(0, 0, SNAPSHOTS), 0); /* it begins with none */
    struct backend_row_set set = {.ids = ids, .n_ids = 40, .snapshot_rows = 41};
    set.blocks[0] = blocks_of(0, 0, false, numbers);
    ck_assert_int_eq(try(&set), -EINVAL); /* beyond it */
    set.snapshot_rows = 32;
    set.snapshot = SNAPSHOTS;
    ck_assert_int_eq(try(&set), -EINVAL); /* there is none */
    set.snapshot_rows = 0;
    run_step(backend, &set, 1);
    uint32_t number = SNAPSHOTS;
    uint8_t host[8];
    struct backend_copy copy = {.group = 1, .blocks = &number, .n = 1, .host = host};
    ck_assert_int_eq(quern_backend.copy_out(backend, &copy, &ticket), -EINVAL);
    number = 0;
    copy.group = 2;
    ck_assert_int_eq(quern_backend.copy_in(backend, &copy, &ticket), -EINVAL);
    tear_down();
}
END_TEST

/* Four for each slot, at least 16; counted with the rest of the device's memory. */
START_TEST(there_are_as_many_snapshots_as_suggest_themselves)
{
    struct backend_info info, fewer;
    set_up();
    quern_backend.info(backend, &fewer);
    quern_backend.close(backend);
    backend = open_backend(0);
    quern_backend.info(backend, &info);
    ck_assert_uint_eq(info.n_snapshots, 16);
    /* Two layers of four: tails of 3 rows of 160 channels, and four heads of 24 × 16. */
    ck_assert_uint_eq(info.state_bytes, 2 * (3 * 160 + 4 * 24 * 16) * sizeof(float));
    const size_t more = info.memory_bytes - fewer.memory_bytes, n = info.n_snapshots - fewer.n_snapshots;
    ck_assert_uint_le(n * info.state_bytes, more + DEVICE_GRANULE);
    ck_assert_uint_le(more, n * info.state_bytes + DEVICE_GRANULE);
    tear_down();
}
END_TEST

START_TEST(a_device_without_room_for_the_states_says_what_they_take)
{
    set_up();
    const struct backend_config config = {
        .model = model, .n_slots = 4, .n_context = 128, .n_blocks = 16, .n_snapshots = 3000, .max_rows = 64};
    struct backend *opened = NULL;
    struct error err = {0};
    setenv("QUERN_EMU_BYTES", "33554432", 1);
    ck_assert_int_eq(quern_backend.open(&config, &opened, &err), -ENOMEM);
    unsetenv("QUERN_EMU_BYTES");
    /* 3,004 of 2 · (3 · 160 + 4 · 24 · 16) numbers */
    ck_assert_msg(strstr(err.text, ", 46.2 states of sequences and their snapshots; ") != NULL, "%s",
                  err.text);
    tear_down();
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 280);
    tcase_add_test(tests, bits_do_not_depend_on_chunks);
    tcase_add_test(tests, a_sequence_goes_on_from_a_snapshot);
    tcase_add_test(tests, a_snapshot_goes_to_the_host_and_to_another_device);
    tcase_add_test(tests, a_recorded_decode_takes_a_snapshot);
    tcase_add_test(tests, a_slot_begins_with_zeros_and_so_it_does_after_a_trim);
    tcase_add_test(tests, a_wrong_draft_is_led_back);
    tcase_add_test(tests, what_cannot_be_is_refused);
    tcase_add_test(tests, there_are_as_many_snapshots_as_suggest_themselves);
    tcase_add_test(tests, a_device_without_room_for_the_states_says_what_they_take);
}

int main(void)
{
    return run_tests("states", add);
}
