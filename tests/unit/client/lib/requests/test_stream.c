/* SPDX-License-Identifier: MIT */
/* libquern against a stream that loses, reorders and repeats. */

#include "common/clock.h"
#include "tests/unit/client/lib/fixture.h"
#include "tests/unit/run.h"

/* Plays a script of `n` frames and checks that all of it arrives. The replays that it took. */
static int play(int n, const int *script, int page_frames)
{
    struct gathered g = {0};
    start((struct fake_config){.n_frames = n, .script = script, .page_frames = page_frames});
    generate(&g);
    check_whole(&g, n);
    int replays = fake_broker_count(broker, "replay");
    stop();
    return replays;
}

/* The same, in less than so many milliseconds: above a second of silence asks for a replay too, and on a busy
 * machine one play may take that long. All of several do not, unless the client itself waits. */
static int play_within(int ms, int n, const int *script, int page_frames)
{
    enum { PLAYS = 15 };
    for (int i = 0; i < PLAYS; i++) {
        uint64_t begun = clock_ns();
        int replays = play(n, script, page_frames);
        if (clock_ns() - begun < (uint64_t)ms * CLOCK_NS_PER_MS)
            return replays;
    }
    ck_abort_msg("none of %d took less than %d ms", PLAYS, ms);
}

START_TEST(frames_in_order_need_no_replay)
{
    static const int script[] = {0, 1, 2, 3, STEP_END, STEP_STOP};
    ck_assert_int_eq(play_within(900, 4, script, 0), 0);
}
END_TEST

START_TEST(an_end_that_overtakes_its_frames_is_waited_for)
{
    static const int script[] = {0, 1, STEP_END, 2, 3, STEP_STOP};
    ck_assert_int_eq(play_within(900, 4, script, 0), 0);
}
END_TEST

START_TEST(lost_frames_are_replayed_page_by_page)
{
    static const int script[] = {0, 1, 8, 9, STEP_STOP};
    /* The gap is asked about when it is seen, not after the second of silence. */
    ck_assert_int_eq(play_within(900, 10, script, 3), 3);
}
END_TEST

START_TEST(pages_follow_one_another_without_a_wait)
{
    static const int script[] = {0, 199, STEP_STOP};
    ck_assert_int_eq(play_within(2000, 200, script, 2), 100);
}
END_TEST

START_TEST(reordered_and_repeated_frames_come_once_and_in_order)
{
    static const int script[] = {1, 0, 3, 2, 2, 0, 4, 4, 5, STEP_STOP};
    ck_assert_int_gt(play(6, script, 2), 0);
}
END_TEST

START_TEST(live_frames_during_a_replay_wait_for_their_turn)
{
    static const int script[] = {0, 3, STEP_AFTER_REPLAY, 4, 6, 5, 7, 5, 6, 7, STEP_STOP};
    ck_assert_int_gt(play(8, script, 2), 1);
}
END_TEST

START_TEST(a_stream_that_lost_everything_is_made_good_after_the_end)
{
    static const int script[] = {STEP_END, STEP_STOP};
    /* The DEALER's end shortens the wait: well below the second of silence. */
    ck_assert_int_eq(play_within(900, 5, script, 2), 3);
}
END_TEST

START_TEST(silence_is_asked_about)
{
    static const int script[] = {0, STEP_STOP};
    ck_assert_int_ge(play(5, script, 100), 1);
}
END_TEST

START_TEST(the_last_frame_alone_can_be_lost)
{
    static const int script[] = {0, 1, 2, STEP_END, STEP_STOP};
    ck_assert_int_eq(play_within(900, 4, script, 100), 1);
}
END_TEST

START_TEST(frames_of_an_older_epoch_are_not_seen)
{
    static const int script[] = {STEP_STALE, 0, STEP_STALE, STEP_MOVE, 1, STEP_STALE, 2, 3, STEP_STOP};
    ck_assert_int_eq(play_within(900, 4, script, 0), 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, frames_in_order_need_no_replay);
    tcase_add_test(tests, an_end_that_overtakes_its_frames_is_waited_for);
    tcase_add_test(tests, lost_frames_are_replayed_page_by_page);
    tcase_add_test(tests, pages_follow_one_another_without_a_wait);
    tcase_add_test(tests, reordered_and_repeated_frames_come_once_and_in_order);
    tcase_add_test(tests, live_frames_during_a_replay_wait_for_their_turn);
    tcase_add_test(tests, a_stream_that_lost_everything_is_made_good_after_the_end);
    tcase_add_test(tests, silence_is_asked_about);
    tcase_add_test(tests, the_last_frame_alone_can_be_lost);
    tcase_add_test(tests, frames_of_an_older_epoch_are_not_seen);
}

int main(void)
{
    return run_tests("client stream", add);
}
