/* SPDX-License-Identifier: MIT */
/* What a client keeps of frames that came too early: in order, within bounds, and again from nothing. */

#include "client/lib/core/state.h"
#include "tests/unit/run.h"

#include <stdlib.h>

/* How many are kept; their first bytes are 0, 1, 2 …, and they are freed. */
static size_t take_all(struct request *request)
{
    size_t n = 0;
    for (struct held_frame *held = state_take_held(request), *next; held; held = next) {
        next = held->next;
        ck_assert_uint_eq(held->data[0], (uint8_t)n++);
        free(held);
    }
    return n;
}

START_TEST(held_frames_are_bounded_in_number)
{
    struct request request = {0};
    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < HELD_MAX_FRAMES + 100; i++)
            state_hold_frame(&request, &(uint8_t){(uint8_t)i}, 1);
        ck_assert_uint_eq(take_all(&request), HELD_MAX_FRAMES);
    }
    ck_assert_uint_eq(take_all(&request), 0);
}
END_TEST

START_TEST(held_frames_are_bounded_in_bytes)
{
    static uint8_t frame[HELD_MAX_BYTES / 4];
    struct request request = {0};
    for (int again = 0; again < 2; again++) {
        for (frame[0] = 0; frame[0] < 6; frame[0]++)
            state_hold_frame(&request, frame, sizeof frame);
        ck_assert_uint_eq(take_all(&request), 4);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, held_frames_are_bounded_in_number);
    tcase_add_test(tests, held_frames_are_bounded_in_bytes);
}

int main(void)
{
    return run_tests("client state", add);
}
