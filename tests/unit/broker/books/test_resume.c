/* SPDX-License-Identifier: MIT */
/* The ids of a request, read back from its frames. */

#include "broker/books/resume.h"
#include "tests/unit/run.h"

#include <errno.h>

static struct journal journal;
static struct journal_log request_log;
static struct message_decoder *decoder;
static struct buffer bytes;
static struct ids ids;

static void set_up(void)
{
    journal = (struct journal){.limit = (uint64_t)64 << 20};
    ck_assert_int_eq(message_decoder_new(&decoder), 0);
}

static void tear_down(void)
{
    journal_release(&journal, &request_log);
    decoder = message_decoder_free(decoder);
    buffer_deinit(&bytes);
    ids_deinit(&ids);
}

/* A frame with these ids, of which the journal is told that it has `n_told`. */
static void append(uint64_t seq, const int32_t *items, size_t n, uint32_t n_told, bool has_end)
{
    struct message message = {.kind = MESSAGE_FRAME, .frame = {.seq = seq, .epoch = {1, 0}, .wseq = 1}};
    message.frame.ids = (struct id_list){items, n};
    message.frame.has_end = has_end;
    bytes.len = 0;
    ck_assert_int_eq(message_encode(&message, &bytes), 0);
    ck_assert_int_eq(journal_append(&journal, &request_log, n_told, 0, bytes.data, bytes.len), 0);
}

START_TEST(the_ids_of_all_frames_are_one_list)
{
    const int32_t first[] = {3, 1}, second[] = {4}, third[] = {1, 5, 9};
    append(0, first, 2, 2, false);
    append(2, second, 1, 1, false);
    append(3, third, 3, 3, true);
    ck_assert_int_eq(resume_ids(&request_log, decoder, &ids), 0);
    const int32_t all[] = {3, 1, 4, 1, 5, 9};
    ck_assert_uint_eq(ids.len, 6);
    ck_assert_mem_eq(ids.data, all, sizeof all);
}
END_TEST

START_TEST(frames_come_behind_what_was_made_elsewhere)
{
    const int32_t given[] = {8, 8}, made[] = {3, 1};
    journal_resume(&request_log, 2, 5);
    ck_assert_int_eq(ids_append(&ids, given, 2), 0);
    ck_assert_int_eq(resume_ids(&request_log, decoder, &ids), 0);
    ck_assert_uint_eq(ids.len, 2);
    append(2, made, 2, 2, false);
    ck_assert_int_eq(resume_ids(&request_log, decoder, &ids), 0);
    const int32_t all[] = {8, 8, 3, 1};
    ck_assert_uint_eq(ids.len, 4);
    ck_assert_mem_eq(ids.data, all, sizeof all);
}
END_TEST

START_TEST(of_no_frames_there_are_no_ids)
{
    ck_assert_int_eq(resume_ids(&request_log, decoder, &ids), 0);
    ck_assert_uint_eq(ids.len, 0);
}
END_TEST

/* More than a page of the journal. */
START_TEST(a_long_output_is_read_in_pages)
{
    static int32_t items[PROTO_MAX_FRAME_IDS];
    enum { FRAMES = 150 };
    for (int i = 0; i < FRAMES; i++) {
        for (int j = 0; j < PROTO_MAX_FRAME_IDS; j++)
            items[j] = i * PROTO_MAX_FRAME_IDS + j;
        append((uint64_t)i * PROTO_MAX_FRAME_IDS, items, PROTO_MAX_FRAME_IDS, PROTO_MAX_FRAME_IDS, false);
    }
    ck_assert_uint_gt(request_log.memory, (size_t)2 << 20);
    ck_assert_int_eq(resume_ids(&request_log, decoder, &ids), 0);
    ck_assert_uint_eq(ids.len, (size_t)FRAMES * PROTO_MAX_FRAME_IDS);
    size_t wrong = 0;
    for (size_t i = 0; i < ids.len; i++)
        wrong += ids.data[i] != (int32_t)i;
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

START_TEST(a_frame_that_does_not_continue_the_ones_before_is_refused)
{
    const int32_t items[] = {3, 1};
    append(0, items, 2, 2, false);
    append(3, items, 2, 2, false);
    ck_assert_int_eq(resume_ids(&request_log, decoder, &ids), -EBADMSG);
    ck_assert_uint_eq(ids.len, 2);
}
END_TEST

START_TEST(a_log_with_fewer_ids_than_it_says_is_refused)
{
    const int32_t items[] = {3};
    append(0, items, 0, 2, false);
    ck_assert_int_eq(resume_ids(&request_log, decoder, &ids), -EBADMSG);
}
END_TEST

START_TEST(what_is_no_frame_is_refused)
{
    const struct message pong = {.kind = MESSAGE_PONG, .pong = {.ref = 0}};
    ck_assert_int_eq(message_encode(&pong, &bytes), 0);
    ck_assert_int_eq(journal_append(&journal, &request_log, 1, 0, bytes.data, bytes.len), 0);
    ck_assert_int_eq(resume_ids(&request_log, decoder, &ids), -EBADMSG);
    journal_release(&journal, &request_log);
    ck_assert_int_eq(journal_append(&journal, &request_log, 1, 0, "\xc1", 1), 0);
    ck_assert_int_eq(resume_ids(&request_log, decoder, &ids), -EBADMSG);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_ids_of_all_frames_are_one_list);
    tcase_add_test(tests, frames_come_behind_what_was_made_elsewhere);
    tcase_add_test(tests, of_no_frames_there_are_no_ids);
    tcase_add_test(tests, a_long_output_is_read_in_pages);
    tcase_add_test(tests, a_frame_that_does_not_continue_the_ones_before_is_refused);
    tcase_add_test(tests, a_log_with_fewer_ids_than_it_says_is_refused);
    tcase_add_test(tests, what_is_no_frame_is_refused);
}

int main(void)
{
    return run_tests("broker/resume", add);
}
