/* SPDX-License-Identifier: MIT */
/* The scheduler on the fake backend without an engine: sequences that begin behind blocks which others
 * filled, and a state that changes only as it may. */

#include "tests/unit/engine/harness.h"
#include "engine/delivery.h"
#include "engine/plan.h"
#include "model/model.h"

#include <errno.h>
#include <signal.h>

struct rig {
    struct backend *backend;
    struct scheduler scheduler;
    struct planner planner;
    struct plan plan;
    uint64_t arrivals;
};

static void set_up_cached(struct rig *rig, uint32_t most_cached)
{
    const struct backend_config config = {.n_slots = 3, .n_context = 512, .n_blocks = 20, .max_rows = 48};
    *rig = (struct rig){0};
    fake_script = (struct fake_script){0};
    ck_assert_int_eq(backend_fake.open(&config, &rig->backend, NULL), 0);
    ck_assert_int_eq(scheduler_init(&rig->scheduler, &backend_fake, rig->backend, 3, most_cached), 0);
    ck_assert_int_eq(planner_init(&rig->planner, &rig->scheduler, 0), 0);
    ck_assert_int_eq(plan_init(&rig->plan, &rig->scheduler), 0);
}

static void set_up(struct rig *rig)
{
    set_up_cached(rig, UINT32_MAX);
}

static void tear_down(struct rig *rig)
{
    ck_assert_uint_eq(prefix_available(rig->scheduler.prefix, 0), 20);
    ck_assert_uint_eq(fake_script.open_slots, 0);
    plan_deinit(&rig->plan);
    planner_deinit(&rig->planner);
    scheduler_deinit(&rig->scheduler);
    backend_fake.close(rig->backend);
}

static struct sequence *add_sequence(struct rig *rig, const struct engine_request *request)
{
    struct sequence *sequence;
    const int32_t end = FAKE_END;
    ck_assert_int_eq(sequence_new(request, (struct ids_view){&end, 1}, 1, ++rig->arrivals, 0, &sequence), 0);
    scheduler_add(&rig->scheduler, sequence, request->cache_salt);
    return sequence;
}

/* Starts what may start and runs a step; rows of prompts in it. */
static uint32_t step(struct rig *rig)
{
    const struct backend_result *results;
    struct buffer text = {0};
    uint64_t ticket;
    uint32_t n_filled;
    for (struct sequence *next; (next = scheduler_next(&rig->scheduler, &n_filled));)
        ck_assert_int_eq(scheduler_start(&rig->scheduler, next, n_filled), 0);
    plan_build(&rig->planner, &rig->plan);
    const struct backend_step step = {rig->plan.sets, rig->plan.n};
    ck_assert_int_eq(backend_fake.submit(rig->backend, &step, &ticket), 0);
    ck_assert_int_eq(backend_fake.poll(rig->backend, ticket, 0, &results, NULL), 0);
    for (uint32_t i = 0; i < rig->plan.n; i++) {
        enum engine_end end;
        struct sequence *sequence = rig->plan.sequences[i];
        uint32_t n = sequence_settle(sequence, &rig->plan.sets[i], &results[i]);
        ck_assert_int_eq(
            sequence_accept(sequence, fake_model.tokenizer, results[i].ids, n, BACKEND_RUNNING, &text, &end),
            (int)n);
        scheduler_offer(&rig->scheduler, sequence);
    }
    buffer_deinit(&text);
    return rig->plan.prefill_rows;
}

static void let_go(struct rig *rig, struct sequence *sequence)
{
    sequence_become(sequence, SEQUENCE_ENDED);
    if (sequence->slot != SEQUENCE_NO_SLOT)
        scheduler_release(&rig->scheduler, sequence);
    else
        scheduler_dequeue(&rig->scheduler, sequence);
    scheduler_forget(&rig->scheduler, sequence);
}

static void check_ids(const struct sequence *sequence)
{
    ck_assert_uint_gt(sequence->ids.len, sequence->n_prompt);
    for (uint32_t n = sequence->n_prompt; n < sequence->ids.len; n++)
        ck_assert_int_eq(sequence->ids.data[n], fake_next(sequence->sampling.seed, sequence->ids.data, n));
}

static void keep_cached(void *arg, const struct engine_event *event)
{
    *(uint32_t *)arg = event->totals->n_cached;
}

START_TEST(a_sequence_begins_behind_blocks_that_are_filled)
{
    struct rig rig;
    set_up(&rig);
    struct engine_request request = request_of(1, 90, 100);
    request.sampling.seed = lasting_seed(&request, 90);
    struct sequence *first = add_sequence(&rig, &request);
    while (first->ids.len < 95)
        step(&rig);
    /* The same prompt again: two of its three blocks are full of it, and the third is written still. */
    struct sequence *second = add_sequence(&rig, &request);
    uint32_t rows = 0;
    while (second->ids.len == 90)
        rows += step(&rig);
    ck_assert_uint_eq(rows, 1);
    ck_assert_uint_eq(second->n_cached, 89);
    ck_assert_uint_eq(blocks_holders(rig.scheduler.blocks[0], first->tables[0][0]),
                      3); /* both, and the cache */
    step(&rig);
    check_ids(first);
    let_go(&rig, first); /* the other keeps what they shared */
    for (int i = 0; i < 10; i++)
        step(&rig);
    check_ids(second);
    uint32_t cached = 0;
    struct delivery delivery = {.sink = keep_cached, .sink_arg = &cached};
    delivery_add(&delivery, second);
    delivery_end(&delivery, second, ENGINE_END_CANCELLED, NULL);
    ck_assert_uint_eq(cached, 89); /* the owner hears of it at the end */
    delivery_deinit(&delivery);
    scheduler_release(&rig.scheduler, second);
    scheduler_forget(&rig.scheduler, second);
    tear_down(&rig);
}
END_TEST

/* As it is computed, while the answer grows in the same block, when that is full, and when it has ended. */
START_TEST(a_short_prompt_is_computed_once)
{
    struct rig rig;
    static const uint32_t made[] = {1, 4, 20, 40};
    set_up(&rig);
    struct engine_request request = request_of(1, 16, 100);
    request.sampling.seed = lasting_seed(&request, 90);
    for (int i = 0; i < 4; i++) {
        request.cache_salt = (struct bytes){"abcd" + i, 1}; /* nothing is found of the round before */
        struct sequence *first = add_sequence(&rig, &request);
        while (first->ids.len < 16 + made[i])
            step(&rig);
        for (int ended = 0; ended < 2; ended++) {
            uint32_t rows = 0;
            struct sequence *second = add_sequence(&rig, &request);
            while (second->ids.len < 24)
                rows += step(&rig);
            ck_assert_uint_eq(rows, 1);
            ck_assert_uint_eq(second->n_cached, 15);
            check_ids(second);
            let_go(&rig, second);
            if (!ended)
                let_go(&rig, first);
        }
    }
    tear_down(&rig);
}
END_TEST

START_TEST(what_is_copied_ends_where_prompts_part)
{
    struct rig rig;
    int32_t ids[90];
    set_up(&rig);
    struct engine_request request = request_of(1, 90, 100), other = request;
    request.sampling.seed = lasting_seed(&request, 90);
    /* Where they part, and what is found: nothing is copied for fewer than eight ids of a block. */
    static const uint32_t parted[][2] = {{7, 0},   {8, 8},   {31, 31}, {32, 32}, {39, 32},
                                         {40, 40}, {64, 64}, {71, 64}, {72, 72}, {89, 89}};
    for (size_t i = 0; i < sizeof parted / sizeof *parted; i++) {
        request.cache_salt = other.cache_salt = (struct bytes){"abcdefghij" + i, 1};
        struct sequence *first = add_sequence(&rig, &request);
        while (first->ids.len < 93)
            step(&rig);
        let_go(&rig, first);
        memcpy(ids, request.prompt, sizeof ids);
        ids[parted[i][0]]++;
        other.prompt = ids;
        other.sampling.seed = lasting_seed(&other, 90);
        struct sequence *second = add_sequence(&rig, &other);
        while (second->ids.len < 95)
            step(&rig);
        ck_assert_uint_eq(second->n_cached, parted[i][1]);
        check_ids(second);
        let_go(&rig, second);
    }
    tear_down(&rig);
}
END_TEST

/* Requests without a salt need not be of one client: how long a guess is right cannot be told, from neither
 * what is found nor what is kept. */
START_TEST(strangers_find_no_prompt_id_by_id)
{
    struct rig rig;
    int32_t ids[20];
    set_up(&rig);
    struct engine_request request = request_of(1, 20, 100), guess = request;
    request.sampling.seed = lasting_seed(&request, 90);
    struct sequence *first = add_sequence(&rig, &request);
    while (first->ids.len < 70) /* its first block is full */
        step(&rig);
    for (uint32_t right = 0; right < 20; right++) {
        memcpy(ids, request.prompt, sizeof ids);
        ids[right]++;
        guess.prompt = ids;
        guess.sampling.seed = lasting_seed(&guess, 20);
        const uint32_t others = prefix_counts(rig.scheduler.prefix).cached - first->n_offered;
        struct sequence *second = add_sequence(&rig, &guess);
        while (second->ids.len < 22)
            step(&rig);
        ck_assert_uint_eq(second->n_cached, right < 19 ? 0 : 19); /* the last id counts for nothing */
        let_go(&rig, second);
        ck_assert_uint_eq(prefix_counts(rig.scheduler.prefix).cached, first->n_offered + others + 1);
        prefix_drop_idle(rig.scheduler.prefix);
    }
    let_go(&rig, first);
    tear_down(&rig);
}
END_TEST

START_TEST(a_copy_is_not_made_without_room_and_given_back_when_the_slot_is_refused)
{
    struct rig rig;
    uint32_t taken[20];
    set_up(&rig);
    struct engine_request request = request_of(1, 16, 60);
    request.sampling.seed = lasting_seed(&request, 60);
    struct sequence *first = add_sequence(&rig, &request);
    while (first->ids.len < 20)
        step(&rig);
    let_go(&rig, first);
    /* The one block that can be had is what there is to copy. */
    ck_assert(prefix_alloc(rig.scheduler.prefix, 0, 19, taken));
    struct sequence *second = add_sequence(&rig, &request);
    uint32_t n_filled;
    ck_assert_ptr_eq(scheduler_next(&rig.scheduler, &n_filled), second);
    ck_assert_int_eq(scheduler_start(&rig.scheduler, second, n_filled), 0);
    ck_assert_uint_eq(second->n_cached, 0);
    ck_assert_uint_eq(fake_script.block_copies, 0);
    while (second->ids.len < 20)
        step(&rig);
    check_ids(second);
    let_go(&rig, second);
    prefix_release(rig.scheduler.prefix, 0, taken, 19);

    fake_script.slot_refusal = -ENOMEM;
    fake_script.refused_seed = request.sampling.seed;
    struct sequence *third = add_sequence(&rig, &request);
    ck_assert_ptr_eq(scheduler_next(&rig.scheduler, &n_filled), third);
    ck_assert_int_eq(scheduler_start(&rig.scheduler, third, n_filled), -ENOMEM);
    ck_assert_uint_eq(fake_script.block_copies, 1);
    ck_assert_uint_eq(prefix_available(rig.scheduler.prefix, 0), 20);
    fake_script.slot_refusal = 0;
    while (third->ids.len < 20)
        step(&rig);
    ck_assert_uint_eq(third->n_cached, 15);
    check_ids(third);
    let_go(&rig, third);
    tear_down(&rig);
}
END_TEST

START_TEST(who_never_starts_holds_nothing)
{
    struct rig rig;
    set_up(&rig);
    struct engine_request request = request_of(1, 70, 50);
    struct sequence *first = add_sequence(&rig, &request);
    while (first->ids.len < 72)
        step(&rig);
    struct sequence *second = add_sequence(&rig, &request);
    uint32_t n_filled;
    ck_assert_ptr_eq(scheduler_next(&rig.scheduler, &n_filled), second);
    ck_assert_uint_eq(n_filled, 2);
    ck_assert_uint_eq(blocks_holders(rig.scheduler.blocks[0], first->tables[0][0]), 2);
    let_go(&rig, second);
    ck_assert_uint_eq(blocks_holders(rig.scheduler.blocks[0], first->tables[0][0]), 2);
    let_go(&rig, first);
    tear_down(&rig);
}
END_TEST

START_TEST(prompts_that_begin_alike_at_once_are_computed_once)
{
    struct rig rig;
    uint32_t rows = 0;
    set_up(&rig);
    struct engine_request request = request_of(1, 150, 100), other = request_of(9, 10, 100);
    request.sampling.seed = lasting_seed(&request, 90);
    other.sampling.seed = lasting_seed(&other, 90);
    struct sequence *first = add_sequence(&rig, &request), *second = add_sequence(&rig, &request),
                    *unlike = add_sequence(&rig, &other);
    rows += step(&rig);
    ck_assert_int_eq(second->state, SEQUENCE_WAITING);
    ck_assert_int_ne(unlike->state, SEQUENCE_WAITING); /* it waits for nobody */
    while (second->ids.len == 150)
        rows += step(&rig);
    ck_assert_uint_eq(rows, 150 + (150 - 128) + 10);
    ck_assert_uint_eq(second->n_cached, 128);
    let_go(&rig, first);
    let_go(&rig, second);
    let_go(&rig, unlike);
    tear_down(&rig);
}
END_TEST

START_TEST(who_waits_for_a_prompt_that_goes_away_computes_it)
{
    struct rig rig;
    set_up(&rig);
    struct engine_request request = request_of(1, 150, 100);
    request.sampling.seed = lasting_seed(&request, 90);
    struct sequence *first = add_sequence(&rig, &request), *second = add_sequence(&rig, &request);
    step(&rig);
    const uint32_t filled = first->n_final;
    ck_assert_uint_ge(filled % 32, 8);
    ck_assert_int_eq(second->state, SEQUENCE_WAITING);
    let_go(&rig, first);
    step(&rig);
    ck_assert_int_eq(second->state, SEQUENCE_PREFILLING);
    ck_assert_uint_eq(second->n_cached, filled);
    while (second->ids.len < 155)
        step(&rig);
    check_ids(second);
    let_go(&rig, second);
    tear_down(&rig);
}
END_TEST

START_TEST(who_follows_a_prompt_that_the_cache_has_no_room_for_begins)
{
    struct rig rig;
    set_up_cached(&rig, 1); /* block */
    struct engine_request request = request_of(1, 150, 100);
    request.sampling.seed = lasting_seed(&request, 90);
    struct sequence *first = add_sequence(&rig, &request), *second = add_sequence(&rig, &request);
    step(&rig);
    ck_assert_int_eq(second->state, SEQUENCE_WAITING);
    step(&rig);
    ck_assert_int_eq(first->state, SEQUENCE_PREFILLING);
    step(&rig);
    ck_assert_int_eq(second->state, SEQUENCE_PREFILLING);
    ck_assert_uint_eq(second->n_cached, 32);
    while (second->ids.len < 155)
        step(&rig);
    check_ids(first);
    check_ids(second);
    let_go(&rig, first);
    let_go(&rig, second);
    tear_down(&rig);
}
END_TEST

START_TEST(who_follows_a_prompt_begins_where_they_part)
{
    struct rig rig;
    int32_t ids[150];
    set_up(&rig);
    struct engine_request request = request_of(1, 150, 100), other = request;
    request.sampling.seed = lasting_seed(&request, 90);
    memcpy(ids, request.prompt, sizeof ids);
    ids[70]++;
    other.prompt = ids;
    other.sampling.seed = lasting_seed(&other, 90);
    struct sequence *first = add_sequence(&rig, &request), *second = add_sequence(&rig, &other);
    step(&rig);
    ck_assert_uint_eq(first->n_offered, 1);
    ck_assert_int_eq(second->state, SEQUENCE_WAITING);
    step(&rig);
    ck_assert_uint_eq(first->n_offered, 3);
    step(&rig);
    ck_assert_int_eq(second->state, SEQUENCE_PREFILLING); /* and not when the whole prompt is computed */
    ck_assert_uint_eq(second->n_cached, 64);
    while (second->ids.len < 155)
        step(&rig);
    check_ids(first);
    check_ids(second);
    let_go(&rig, first);
    let_go(&rig, second);
    tear_down(&rig);
}
END_TEST

START_TEST(salts_keep_prompts_apart)
{
    struct rig rig;
    set_up(&rig);
    struct engine_request request = request_of(1, 90, 100), salted;
    request.sampling.seed = lasting_seed(&request, 90);
    salted = request;
    salted.cache_salt = BYTES_LITERAL("another");
    struct sequence *first = add_sequence(&rig, &request);
    while (first->ids.len < 92)
        step(&rig);
    struct sequence *second = add_sequence(&rig, &salted), *third = add_sequence(&rig, &request);
    while (second->ids.len < 92 || third->ids.len < 92)
        step(&rig);
    ck_assert_uint_eq(second->n_cached, 0);
    ck_assert_uint_eq(third->n_cached, 89);
    let_go(&rig, first);
    let_go(&rig, second);
    let_go(&rig, third);
    tear_down(&rig);
}
END_TEST

START_TEST(a_preempted_sequence_finds_its_blocks_again)
{
    struct rig rig;
    set_up(&rig);
    struct engine_request request = request_of(1, 90, 100);
    request.sampling.seed = lasting_seed(&request, 90);
    struct sequence *first = add_sequence(&rig, &request);
    while (first->ids.len < 95)
        step(&rig);
    struct sequence *second = add_sequence(&rig, &request);
    while (second->ids.len < 92)
        step(&rig);
    sequence_become(second, SEQUENCE_LEAVING);
    scheduler_release(&rig.scheduler, second);
    ck_assert_int_eq(second->state, SEQUENCE_WAITING);
    ck_assert_uint_eq(blocks_holders(rig.scheduler.blocks[0], first->tables[0][0]), 2);
    uint32_t rows = 0;
    while (second->ids.len < 96)
        rows += step(&rig);
    ck_assert_uint_eq(rows, 1);              /* what it had computed of its last block was copied */
    ck_assert_uint_eq(second->n_cached, 89); /* of its first start */
    check_ids(second);
    let_go(&rig, second);
    let_go(&rig, first);
    tear_down(&rig);
}
END_TEST

/* A sequence that only waits. */
static struct sequence *waiting_since(uint64_t now, int32_t priority, uint64_t deadline_ns)
{
    static uint64_t arrivals;
    struct sequence *sequence;
    struct engine_request request = request_of(1, 4, 4);
    request.priority = priority;
    request.deadline_ns = deadline_ns;
    ck_assert_int_eq(sequence_new(&request, (struct ids_view){0}, 1, ++arrivals, now, &sequence), 0);
    return sequence;
}

START_TEST(neither_priorities_nor_deadlines_keep_anyone_out_for_ever)
{
    const uint64_t s = CLOCK_NS_PER_S, start = 1000 * s;
    const struct {
        uint64_t after, deadline;
        int32_t priority;
        bool before; /* the one that waits since the start, at −1 and without a deadline */
        bool senior;
    } newcomers[] = {{29 * s, 0, 0, true, true},
                     {31 * s, 0, 0, false, false},
                     {59 * s, 0, 1, true, true},
                     {61 * s, 0, 1, false, false},
                     {0, 0, -2, false, false},
                     {20 * s, 29 * s, -1, true, false},
                     {20 * s, 3600 * s, -1, false, false},
                     {31 * s, 32 * s, -1, false, false}};
    struct sequence *patient = waiting_since(start, -1, 0);
    for (size_t i = 0; i < sizeof newcomers / sizeof *newcomers; i++) {
        struct sequence *newcomer = waiting_since(start + newcomers[i].after, newcomers[i].priority,
                                                  newcomers[i].deadline ? start + newcomers[i].deadline : 0);
        ck_assert_msg(sequence_goes_before(newcomer, patient) == newcomers[i].before, "newcomer %zu", i);
        ck_assert_msg(sequence_goes_before(patient, newcomer) != newcomers[i].before, "newcomer %zu", i);
        ck_assert_msg(sequence_is_senior(newcomer, patient) == newcomers[i].senior, "newcomer %zu", i);
        sequence_free(newcomer);
    }
    sequence_free(patient);
}
END_TEST

START_TEST(a_state_that_may_not_follow_aborts)
{
    struct sequence *sequence;
    const struct engine_request request = request_of(1, 4, 4);
    ck_assert_int_eq(sequence_new(&request, (struct ids_view){0}, 1, 1, 0, &sequence), 0);
    sequence_become(sequence, SEQUENCE_ENDED);
    sequence_become(sequence, SEQUENCE_WAITING);
}
END_TEST

START_TEST(every_state_has_a_name)
{
    for (int state = SEQUENCE_WAITING; state <= SEQUENCE_ENDED; state++)
        for (int other = SEQUENCE_WAITING; other < state; other++)
            ck_assert_str_ne(sequence_state_name((enum sequence_state)state),
                             sequence_state_name((enum sequence_state)other));
}
END_TEST

START_TEST(control_tokens_are_text_where_a_request_wants_them_spelled)
{
    const int32_t prompt[] = {'a'}, marks[] = {FAKE_END}, made[] = {'x', FAKE_END, 'y'};
    for (uint32_t n = 0; n < 2; n++) {
        struct engine_request request = {
            .prompt = prompt, .n_prompt = 1, .max_tokens = 10, .spelled = marks, .n_spelled = n};
        struct sequence *sequence;
        struct buffer text = {0};
        enum engine_end end;
        ck_assert_int_eq(sequence_new(&request, (struct ids_view){0}, 1, 0, 0, &sequence), 0);
        ck_assert_int_eq(
            sequence_accept(sequence, fake_model.tokenizer, made, 3, BACKEND_RUNNING, &text, &end), 3);
        ck_assert(bytes_equal((struct bytes){text.data, text.len},
                              n ? BYTES_LITERAL("x<end>y") : BYTES_LITERAL("xy")));
        struct bytes piece = {0};
        ck_assert(sequence_accept_plain(sequence, fake_model.tokenizer, FAKE_END, &piece));
        ck_assert_uint_eq(piece.len, n ? strlen("<end>") : 0);
        buffer_deinit(&text);
        sequence_free(sequence);
    }
}
END_TEST

static void info_with_states(const struct backend *backend, struct backend_info *ret_info)
{
    backend_fake.info(backend, ret_info);
    ret_info->state_bytes = 64;
    ret_info->n_snapshots = 2;
}

/* Of a model with states: what did not fit is looked at again when a node that it shares gets a snapshot,
 * with no block more and none less. */
START_TEST(a_snapshot_given_is_a_reason_to_look_again)
{
    static struct backend_ops ops;
    struct rig rig;
    uint32_t snapshot, n_filled;
    int32_t prompt[440];
    set_up(&rig);
    ops = backend_fake;
    ops.info = info_with_states;
    scheduler_deinit(&rig.scheduler);
    ck_assert_int_eq(scheduler_init(&rig.scheduler, &ops, rig.backend, 3, UINT32_MAX), 0);
    struct engine_request request = request_of(1, 190, 50);
    request.sampling.seed = lasting_seed(&request, 30);
    struct sequence *first = add_sequence(&rig, &request);
    while (first->ids.len == 190)
        step(&rig);
    for (uint32_t i = 0; i < 440; i++)
        prompt[i] = i < 64 ? request.prompt[i] : 'z';
    struct engine_request longer = {
        .tag = 2, .prompt = prompt, .n_prompt = 440, .max_tokens = 5, .sampling = {SAMPLING_OFF, .seed = 2}};
    struct sequence *second = add_sequence(&rig, &longer);
    ck_assert_ptr_null(scheduler_next(&rig.scheduler, &n_filled));
    ck_assert_ptr_null(scheduler_next(&rig.scheduler, &n_filled));
    ck_assert(prefix_take_snapshot(rig.scheduler.prefix, &snapshot));
    ck_assert(prefix_give_snapshot(rig.scheduler.prefix,
                                   prefix_place_of(rig.scheduler.prefix, first->tables[0][1]), snapshot));
    ck_assert_ptr_eq(scheduler_next(&rig.scheduler, &n_filled), second);
    ck_assert_uint_eq(n_filled, 2);
    let_go(&rig, first);
    let_go(&rig, second);
    tear_down(&rig);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_snapshot_given_is_a_reason_to_look_again);
    tcase_add_test(tests, control_tokens_are_text_where_a_request_wants_them_spelled);
    tcase_add_test(tests, a_sequence_begins_behind_blocks_that_are_filled);
    tcase_add_test(tests, a_short_prompt_is_computed_once);
    tcase_add_test(tests, what_is_copied_ends_where_prompts_part);
    tcase_add_test(tests, strangers_find_no_prompt_id_by_id);
    tcase_add_test(tests, a_copy_is_not_made_without_room_and_given_back_when_the_slot_is_refused);
    tcase_add_test(tests, who_never_starts_holds_nothing);
    tcase_add_test(tests, prompts_that_begin_alike_at_once_are_computed_once);
    tcase_add_test(tests, who_waits_for_a_prompt_that_goes_away_computes_it);
    tcase_add_test(tests, who_follows_a_prompt_that_the_cache_has_no_room_for_begins);
    tcase_add_test(tests, who_follows_a_prompt_begins_where_they_part);
    tcase_add_test(tests, salts_keep_prompts_apart);
    tcase_add_test(tests, a_preempted_sequence_finds_its_blocks_again);
    if (tests_fork())
        tcase_add_test_raise_signal(tests, a_state_that_may_not_follow_aborts, SIGABRT);
    tcase_add_test(tests, neither_priorities_nor_deadlines_keep_anyone_out_for_ever);
    tcase_add_test(tests, every_state_has_a_name);
}

int main(void)
{
    return run_tests("scheduler", add);
}
