/* SPDX-License-Identifier: MIT */
/* The worker's slot of the board: which boards are refused, and what a snapshot says. */

#include "worker/report.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/files/rundir.h"
#include "model/convert/synth.h"
#include "model/model.h"

static struct board_slot *slot;
static struct report report;

/* The descriptor of a slot, for whoever opens it. */
static int make_slot(void)
{
    int fd;
    ck_assert_int_eq(board_create(&fd, &slot), 0);
    return fd;
}

static void drop_slot(void)
{
    report_close(&report);
    slot = board_unmap(slot);
}

static struct board_snapshot seen(void)
{
    struct board_snapshot snapshot;
    ck_assert_int_eq(board_read(slot, &snapshot), 0);
    return snapshot;
}

START_TEST(a_board_that_cannot_be_written_to_is_refused_with_the_reason)
{
    struct error err = {0};
    int fd = make_slot();
    close(fd);
    ck_assert_int_eq(report_open(&report, fd, 1, &err), -EBADF);
    char says[128];
    snprintf(says, sizeof says, "board: descriptor %d: Bad file descriptor", fd);
    ck_assert_str_eq(err.text, says);
    drop_slot();
    fd = make_slot();
    slot->version++;
    ck_assert_int_eq(report_open(&report, fd, 1, &err), -EINVAL);
    ck_assert_str_eq(err.text, "board: not a board of this version");
    drop_slot();
}
END_TEST

START_TEST(without_a_board_nothing_is_written_and_the_next_is_due_all_the_same)
{
    const struct report_facts facts = {.state = WORKER_READY};
    ck_assert_int_eq(report_open(&report, -1, 1, NULL), 0);
    report_progress(&report);
    report_write(&report, &facts, 100, 20);
    ck_assert_uint_eq(report.next_ns, 120);
    report_close(&report);
}
END_TEST

START_TEST(a_snapshot_goes_into_the_workers_own_slot)
{
    const struct report_facts facts = {.state = WORKER_LOADING, .step_started_ns = 77, .unstarted = 5};
    struct error err = {0};
    const int fd = make_slot();
    ck_assert_msg(report_open(&report, fd, 9, &err) == 0, "%s", err.text);
    ck_assert_int_lt(close(fd), 0); /* it was closed */
    report_write(&report, &facts, 1000, 10);
    ck_assert_uint_eq(report.next_ns, 1010);
    const struct board_snapshot snapshot = seen();
    ck_assert_uint_eq(snapshot.state, WORKER_LOADING);
    ck_assert_uint_eq(snapshot.pid, (uint32_t)getpid());
    ck_assert_uint_eq(snapshot.incarnation, 9);
    ck_assert_uint_eq(snapshot.step_started_ns, 77);
    ck_assert_uint_eq(snapshot.waiting, 5);
    for (int i = 0; i < 3; i++)
        report_progress(&report);
    ck_assert_uint_eq(slot->layers, 3);
    drop_slot();
}
END_TEST

/* ---- with an engine ---- */

static void ignore(void *arg, const struct engine_event *event)
{
}

static struct model *make_model(void)
{
    char folder[RUNDIR_PATH_MAX + 1], path[RUNDIR_PATH_MAX + 32];
    struct model *model;
    struct error err = {0};
    ck_assert_int_eq(rundir_temporary(folder, &err), 0);
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    ck_assert_int_eq(synth_write(synth_shape_by_name("tiny"), mixture_by_name("F16"), 1, path, &err), 0);
    ck_assert_msg(model_open(path, true, &model, &err) == 0, "%s", err.text);
    rundir_remove(folder);
    return model;
}

/* One more token, of a prompt of three ids. */
static void make_token(struct engine *engine)
{
    static const int32_t ids[] = {30, 31, 32};
    const struct engine_request request = {.tag = 1,
                                           .prompt = ids,
                                           .n_prompt = 3,
                                           .max_tokens = 1,
                                           .sampling = SAMPLING_GREEDY,
                                           .uncached = true};
    struct error err = {0};
    ck_assert_msg(engine_submit(engine, &request, &err) == 0, "%s", err.text);
    while (engine_step(engine, &err) > 0)
        ;
}

START_TEST(the_speed_is_that_of_the_last_second_or_so)
{
    struct model *model = make_model();
    const struct engine_config config = {
        .model = model, .backend = &backend_null, .backend_config = {.n_slots = 2, .n_context = 96}};
    struct engine *engine;
    struct error err = {0};
    ck_assert_msg(engine_new(&config, ignore, NULL, &engine, &err) == 0, "%s", err.text);
    ck_assert_int_eq(report_open(&report, make_slot(), 1, &err), 0);
    const struct report_facts facts = {.state = WORKER_READY, .engine = engine, .unstarted = 2};
    const uint64_t begun = 100 * CLOCK_NS_PER_S;
    report_write(&report, &facts, begun, 0);
    for (int i = 0; i < 6; i++)
        make_token(engine);
    report_write(&report, &facts, begun + CLOCK_NS_PER_S / 2, 0);
    ck_assert(seen().tokens_per_s == 0); /* too soon to say */
    report_write(&report, &facts, begun + 2 * CLOCK_NS_PER_S, 0);
    struct board_snapshot snapshot = seen();
    ck_assert(snapshot.tokens_per_s == 3);
    ck_assert_uint_eq(snapshot.tokens, 6);
    ck_assert_uint_eq(snapshot.prefill_tokens, 18);
    ck_assert_uint_eq(snapshot.slots, 2);
    ck_assert_uint_eq(snapshot.waiting, 2);
    ck_assert_uint_eq(snapshot.kv_total, 2 * 96 / 32);
    ck_assert_uint_eq(snapshot.kv_free, snapshot.kv_total);
    ck_assert_uint_eq(snapshot.kv_block_bytes, 32);
    ck_assert_str_eq(snapshot.device, "null");
    ck_assert_uint_eq(slot->steps, 6);
    make_token(engine);
    report_write(&report, &facts, begun + 3 * CLOCK_NS_PER_S, 0);
    ck_assert(seen().tokens_per_s == 1);
    report_write(&report, &facts, begun + 4 * CLOCK_NS_PER_S, 0);
    ck_assert(seen().tokens_per_s == 0);
    engine_free(engine);
    model_free(model);
    drop_slot();
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_board_that_cannot_be_written_to_is_refused_with_the_reason);
    tcase_add_test(tests, without_a_board_nothing_is_written_and_the_next_is_due_all_the_same);
    tcase_add_test(tests, a_snapshot_goes_into_the_workers_own_slot);
    tcase_add_test(tests, the_speed_is_that_of_the_last_second_or_so);
}

int main(void)
{
    return run_tests("report", add);
}
