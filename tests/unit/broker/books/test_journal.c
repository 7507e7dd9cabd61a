/* SPDX-License-Identifier: MIT */
/* The journal: what goes in comes out by position, nobody gets more memory than was promised, and what an
 * earlier process left is found. */

#include "broker/books/journal.h"
#include "tests/unit/run.h"

#include <stdlib.h>
#include <string.h>

/* Appends n frames of one id and `len` bytes, each filled with its index. */
static void append_frames(struct journal *journal, struct journal_log *log, unsigned n, size_t len)
{
    char frame[4096];
    for (unsigned i = 0; i < n; i++) {
        memset(frame, (int)(log->count & 0x7f), sizeof frame);
        ck_assert_int_eq(journal_append(journal, log, 1, 2, frame, len), 0);
    }
}

START_TEST(a_page_starts_at_the_first_frame_that_is_missing)
{
    struct journal journal = {.limit = 1 << 20};
    struct journal_log log = {0};
    struct journal_page page = {0};
    append_frames(&journal, &log, 100, 100);
    ck_assert_uint_eq(log.count, 100);
    ck_assert_uint_eq(log.text_bytes, 200);
    for (uint64_t next = 0; next < 100; next++) {
        ck_assert_int_eq(journal_read(&log, next, 1 << 20, &page), 0);
        ck_assert_uint_eq(page.from, next);
        ck_assert_uint_eq(page.next, 100);
        ck_assert_uint_eq(page.n, 100 - next);
        ck_assert_int_eq(*(const char *)page.items[0].data, (char)next);
        ck_assert(page.done);
    }
    journal_page_deinit(&page);
    journal_release(&journal, &log);
}
END_TEST

START_TEST(pages_joined_are_the_whole_log)
{
    struct journal journal = {.limit = 1 << 20};
    struct journal_log log = {0};
    struct journal_page page = {0};
    append_frames(&journal, &log, 77, 300);
    uint64_t next = 0;
    unsigned pages = 0;
    do {
        ck_assert_int_eq(journal_read(&log, next, 1000, &page), 0);
        ck_assert_uint_eq(page.from, next);
        ck_assert_uint_le(page.n * 300, 1000);
        ck_assert_uint_gt(page.n, 0);
        next = page.next;
        pages++;
    } while (!page.done);
    ck_assert_uint_eq(next, 77);
    ck_assert_uint_eq(pages, 26);
    journal_page_deinit(&page);
    journal_release(&journal, &log);
}
END_TEST

START_TEST(a_frame_above_the_page_limit_is_still_given)
{
    struct journal journal = {.limit = 1 << 20};
    struct journal_log log = {0};
    struct journal_page page = {0};
    append_frames(&journal, &log, 2, 4000);
    ck_assert_int_eq(journal_read(&log, 0, 100, &page), 0);
    ck_assert_uint_eq(page.n, 1);
    ck_assert(!page.done);
    journal_page_deinit(&page);
    journal_release(&journal, &log);
}
END_TEST

START_TEST(an_end_without_ids_is_found_by_whoever_has_all_ids)
{
    struct journal journal = {.limit = 1 << 20};
    struct journal_log log = {0};
    struct journal_page page = {0};
    append_frames(&journal, &log, 3, 10);
    ck_assert_int_eq(journal_append(&journal, &log, 0, 5, "end", 3), 0);
    ck_assert_int_eq(journal_read(&log, 3, 1000, &page), 0);
    ck_assert_uint_eq(page.n, 1);
    ck_assert_mem_eq(page.items[0].data, "end", 3);
    ck_assert_uint_eq(page.from, 3);
    ck_assert_uint_eq(page.next, 3);
    journal_page_deinit(&page);
    journal_release(&journal, &log);
}
END_TEST

START_TEST(an_end_with_ids_is_given_to_whoever_has_them_all)
{
    struct journal journal = {.limit = 1 << 20};
    struct journal_log log = {0};
    struct journal_page page = {0};
    append_frames(&journal, &log, 3, 10);
    ck_assert_int_eq(journal_append(&journal, &log, 2, 5, "end", 3), 0);
    ck_assert_int_eq(journal_read(&log, 5, 1000, &page), 0);
    ck_assert_uint_eq(page.n, 0); /* it goes on */
    journal_settle(&journal, &log, 0);
    for (uint64_t next = 5; next < 8; next++) { /* and to who claims to have more */
        ck_assert_int_eq(journal_read(&log, next, 1000, &page), 0);
        ck_assert_uint_eq(page.n, 1);
        ck_assert_mem_eq(page.items[0].data, "end", 3);
        ck_assert_uint_eq(page.from, 3);
        ck_assert_uint_eq(page.next, 5);
        ck_assert(page.done);
    }
    journal_page_deinit(&page);
    journal_release(&journal, &log);
}
END_TEST

START_TEST(an_empty_log_gives_an_empty_last_page)
{
    struct journal_log log = {0};
    struct journal_page page = {0};
    ck_assert_int_eq(journal_read(&log, 7, 1000, &page), 0);
    ck_assert_uint_eq(page.n, 0);
    ck_assert_uint_eq(page.next, 0);
    ck_assert(page.done);
}
END_TEST

START_TEST(a_reservation_is_charged_at_once_and_given_back)
{
    struct journal journal = {.limit = 10000};
    struct journal_log a = {0}, b = {0};
    ck_assert_int_eq(journal_reserve(&journal, &a, 6000), 0);
    ck_assert_int_eq(journal_reserve(&journal, &b, 6000), JOURNAL_E_FULL);
    ck_assert_uint_eq(journal.used, 6000);
    append_frames(&journal, &a, 3, 100);
    ck_assert_uint_eq(journal.used, 6000);
    journal_settle(&journal, &a, 100);
    ck_assert_uint_lt(journal.used, 2000);
    ck_assert_uint_ge(journal.used, a.memory + 100);
    ck_assert_int_eq(journal_reserve(&journal, &b, 6000), 0);
    journal_release(&journal, &a);
    ck_assert_uint_eq(journal.used, 6000);
    journal_release(&journal, &b);
    ck_assert_uint_eq(journal.used, 0);
}
END_TEST

START_TEST(only_ended_requests_count_as_room_that_could_be_made)
{
    struct journal journal = {.limit = 10000};
    struct journal_log alive = {0}, ended = {0};
    ck_assert_int_eq(journal_reserve(&journal, &alive, 4000), 0);
    ck_assert_int_eq(journal_reserve(&journal, &ended, 6000), 0);
    ck_assert(!journal_could_hold(&journal, 1));
    append_frames(&journal, &ended, 5, 400);
    journal_settle(&journal, &ended, 0);
    ck_assert_uint_eq(journal.settled, journal.used - 4000);
    ck_assert_uint_eq(journal.unread, journal.settled);
    ck_assert(!journal_could_hold(&journal, 6000));
    journal_taken(&journal, &ended);
    ck_assert_uint_eq(journal.unread, 0);
    ck_assert(journal_could_hold(&journal, 6000));
    ck_assert(!journal_could_hold(&journal, 6001));
    ck_assert(!journal_could_hold(&journal, UINT64_MAX));
    journal_release(&journal, &ended);
    ck_assert_uint_eq(journal.settled, 0);
    journal_release(&journal, &alive);
    ck_assert_uint_eq(journal.used, 0);
}
END_TEST

START_TEST(unread_logs_count_as_room_beyond_their_part)
{
    struct journal journal = {.limit = 10000};
    struct journal_log logs[9] = {0};
    for (int i = 0; i < 9; i++) {
        ck_assert_int_eq(journal_reserve(&journal, &logs[i], 1000), 0);
        journal_settle(&journal, &logs[i], 1000);
    }
    ck_assert(journal_may_drop_unread(&journal));
    ck_assert(journal_could_hold(&journal, 5000));
    ck_assert(!journal_could_hold(&journal, 5001));
    for (int i = 0; i < 4; i++)
        journal_release(&journal, &logs[i]);
    ck_assert(!journal_may_drop_unread(&journal));
    ck_assert_uint_eq(journal_free(&journal), 5000);
    for (int i = 4; i < 9; i++)
        journal_release(&journal, &logs[i]);
    ck_assert_uint_eq(journal.unread, 0);
    ck_assert_uint_eq(journal_free(&journal), 10000);
}
END_TEST

START_TEST(a_log_within_its_reservation_never_fails)
{
    struct journal journal = {.limit = 1 << 20};
    struct journal_log log = {0}, others = {0};
    uint64_t worst = journal_start_bytes(0) + 1000 * journal_token_bytes(0, false);
    ck_assert_int_eq(journal_reserve(&journal, &log, worst), 0);
    ck_assert_int_eq(journal_reserve(&journal, &others, journal.limit - worst), 0);
    append_frames(&journal, &log, 1000, 130);
    ck_assert_uint_eq(journal.used, journal.limit);
    journal_release(&journal, &log);
    journal_release(&journal, &others);
}
END_TEST

START_TEST(what_an_append_would_take_is_known_before)
{
    struct journal journal = {.limit = 1 << 20};
    struct journal_log log = {0};
    char frame[3000] = {0};
    ck_assert_int_eq(journal_reserve(&journal, &log, 2000), 0);
    bool grew = false;
    for (size_t len = 1; len < sizeof frame; len += 7) {
        uint64_t growth = journal_growth(&log, len), used = journal.used;
        ck_assert_int_eq(journal_append(&journal, &log, 1, 0, frame, len), 0);
        ck_assert_uint_eq(journal.used, used + growth);
        grew |= growth > 0;
    }
    ck_assert(grew);
    journal_release(&journal, &log);
}
END_TEST

/* A quarter of the limit is beyond it, for what is made already. */
START_TEST(a_log_beyond_its_reservation_takes_what_is_left_and_then_is_refused)
{
    struct journal journal = {.limit = 12000};
    struct journal_log log = {0};
    char frame[1000] = {0};
    ck_assert_int_eq(journal_reserve(&journal, &log, 1000), 0);
    int r;
    unsigned n = 0;
    while ((r = journal_append(&journal, &log, 1, 0, frame, sizeof frame)) == 0)
        n++;
    ck_assert_int_eq(r, JOURNAL_E_FULL);
    ck_assert_uint_ge(n, 3);
    ck_assert_uint_eq(log.count, n);
    ck_assert_uint_gt(journal.used, journal.limit);
    ck_assert_uint_le(journal.used, journal.limit + journal.limit / 4);
    journal_release(&journal, &log);
    ck_assert_uint_eq(journal.used, 0);
}
END_TEST

START_TEST(what_is_reckoned_counts_tokens_their_logprobs_and_what_is_there_anyway)
{
    ck_assert_uint_eq(journal_start_bytes(0), 1024);
    ck_assert_uint_eq(journal_start_bytes(7), 1031);
    ck_assert_uint_eq(journal_token_bytes(0, true), 192);
    ck_assert_uint_eq(journal_token_bytes(3, false), 192 + 3 * 12);
    ck_assert_uint_eq(journal_token_bytes(3, true), 192 + 3 * 24);
}
END_TEST

/* Memory that a log has already and that is empty still is not promised twice. */
START_TEST(a_promise_counts_what_is_there_and_may_be_changed)
{
    struct journal journal = {.limit = 1 << 20};
    struct journal_log log = {0};
    char frame[100] = {0};
    ck_assert_uint_eq(journal_reservation(&log, 50, 1000), 1050);
    ck_assert_int_eq(journal_reserve(&journal, &log, 1050), 0);
    ck_assert_int_eq(journal_append(&journal, &log, 1, 0, frame, sizeof frame), 0);
    uint64_t written = journal_written(&log), empty = log.memory - written;
    ck_assert_uint_ge(written, sizeof frame);
    ck_assert_uint_gt(empty, 0);
    ck_assert_uint_eq(journal_reservation(&log, 50, empty), 50 + log.memory);
    ck_assert_uint_eq(journal_reservation(&log, 50, empty + 1), 51 + log.memory);
    journal_extend(&journal, &log, 5000);
    ck_assert_uint_eq(journal.used, 5000);
    journal_extend(&journal, &log, 10);
    ck_assert_uint_eq(journal.used, log.memory);
    journal_release(&journal, &log);
    ck_assert_uint_eq(journal.used, 0);
}
END_TEST

/* ---- what an earlier process left ---- */

enum { OWNER = 77, LEFT_FRAMES = 10, LEFT_BYTES = 13 };

/* The only block of a log of ten frames, as it is found; the caller's. */
static uint8_t *leave_block(size_t *ret_size)
{
    struct journal journal = {.limit = 1 << 20};
    struct journal_log log = {.owner = OWNER};
    append_frames(&journal, &log, LEFT_FRAMES, LEFT_BYTES);
    journal_settle(&journal, &log, 0); /* without its unused end */
    ck_assert_uint_eq(log.n_chunks, 1);
    uint8_t *block = malloc(log.memory);
    ck_assert_ptr_nonnull(block);
    memcpy(block, log.first, log.memory);
    *ret_size = log.memory;
    journal_release(&journal, &log);
    return block;
}

START_TEST(a_block_says_whose_it_is)
{
    uint64_t owner = 0;
    uint32_t index = 9;
    size_t size;
    uint8_t *block = leave_block(&size);
    ck_assert(journal_is_chunk(block, size, &owner, &index));
    ck_assert_uint_eq(owner, OWNER);
    ck_assert_uint_eq(index, 0);
    ck_assert(!journal_is_chunk(block, size - 1, &owner, &index)); /* it would have more than it holds */
    ck_assert(!journal_is_chunk(block, 8, &owner, &index));
    block[0] ^= 1;
    ck_assert(!journal_is_chunk(block, size, &owner, &index));
    free(block);
}
END_TEST

/* What is restored for an owner of a block whose frame `damaged` (1 …) is so; −1: of none. */
static bool restore(struct journal *journal, struct journal_log *log, uint64_t owner, int damaged)
{
    size_t size;
    uint8_t *block = leave_block(&size);
    for (size_t i = 0; damaged >= 0 && i + LEFT_BYTES <= size; i++) {
        uint8_t frame[LEFT_BYTES];
        memset(frame, damaged, sizeof frame);
        if (memcmp(block + i, frame, sizeof frame) == 0) {
            block[i + LEFT_BYTES - 1] ^= 1;
            break;
        }
    }
    *journal = (struct journal){.limit = 1 << 20, .used = 1000};
    *log = (struct journal_log){.owner = owner};
    bool whole = journal_restore(journal, log, block, size);
    ck_assert_uint_eq(log->memory, size);
    ck_assert_uint_eq(journal->used, 1000 + size);
    return whole;
}

START_TEST(a_log_that_is_found_goes_on_where_it_was)
{
    struct journal journal;
    struct journal_log log;
    struct journal_page page = {0};
    ck_assert(restore(&journal, &log, OWNER, -1));
    ck_assert_uint_eq(log.count, LEFT_FRAMES);
    ck_assert_uint_eq(log.text_bytes, 2 * LEFT_FRAMES);
    ck_assert_uint_eq(log.n_chunks, 1);
    struct bytes last = journal_last(&log);
    ck_assert_uint_eq(last.len, LEFT_BYTES);
    ck_assert_int_eq(*(const char *)last.data, LEFT_FRAMES - 1);
    append_frames(&journal, &log, 3, LEFT_BYTES);
    ck_assert_int_eq(journal_read(&log, 0, 1 << 20, &page), 0);
    ck_assert_uint_eq(page.n, LEFT_FRAMES + 3);
    for (int i = 0; i < LEFT_FRAMES + 3; i++)
        ck_assert_int_eq(*(const char *)page.items[i].data, i);
    journal_page_deinit(&page);
    journal_release(&journal, &log);
    ck_assert_uint_eq(journal.used, 1000);
}
END_TEST

START_TEST(a_damaged_frame_and_what_follows_it_is_cut_off)
{
    struct journal journal;
    struct journal_log log;
    for (int damaged = 1; damaged < LEFT_FRAMES; damaged++) {
        ck_assert(!restore(&journal, &log, OWNER, damaged));
        ck_assert_uint_eq(log.count, (uint64_t)damaged);
        ck_assert_uint_eq(log.text_bytes, 2 * (uint64_t)damaged);
        ck_assert_int_eq(*(const char *)journal_last(&log).data, damaged - 1);
        journal_release(&journal, &log);
    }
    ck_assert(!restore(&journal, &log, OWNER + 1, -1)); /* another's frames are none of this log */
    ck_assert_uint_eq(log.count, 0);
    ck_assert_uint_eq(journal_last(&log).len, 0);
    journal_release(&journal, &log);
}
END_TEST

START_TEST(a_block_that_is_not_the_next_one_is_not_taken)
{
    struct journal journal;
    struct journal_log log;
    size_t size;
    uint8_t *again = leave_block(&size);
    ck_assert(restore(&journal, &log, OWNER, -1));
    ck_assert(!journal_restore(&journal, &log, again, size));
    ck_assert_uint_eq(log.n_chunks, 1);
    ck_assert_uint_eq(log.count, LEFT_FRAMES);
    ck_assert_uint_eq(journal.used, 1000 + size);
    free(again);
    journal_release(&journal, &log);
}
END_TEST

/* The first chunk has 464 bytes for records, each with a header of 24. */
START_TEST(a_chunk_is_filled_to_its_end)
{
    static const struct {
        size_t len;
        unsigned n;
    } fits[] = {{8, 14}, {1, 14}, {9, 11}, {208, 2}, {440, 1}};
    for (size_t i = 0; i < sizeof fits / sizeof *fits; i++) {
        struct journal journal = {.limit = 1 << 20};
        struct journal_log log = {0};
        append_frames(&journal, &log, fits[i].n, fits[i].len);
        ck_assert_uint_eq(log.n_chunks, 1);
        ck_assert_uint_eq(log.memory, 512);
        append_frames(&journal, &log, 1, fits[i].len);
        ck_assert_uint_eq(log.n_chunks, 2);
        ck_assert_uint_eq(log.memory, 512 + 1024);
        journal_release(&journal, &log);
    }
}
END_TEST

START_TEST(a_page_is_filled_to_its_limit)
{
    struct journal journal = {.limit = 1 << 20};
    struct journal_log log = {0};
    struct journal_page page = {0};
    append_frames(&journal, &log, 10, 300);
    ck_assert_int_eq(journal_read(&log, 0, 900, &page), 0);
    ck_assert_uint_eq(page.n, 3);
    ck_assert_uint_eq(page.bytes, 900);
    ck_assert_int_eq(journal_read(&log, 3, 899, &page), 0); /* counted anew */
    ck_assert_uint_eq(page.n, 2);
    ck_assert_uint_eq(page.bytes, 600);
    journal_page_deinit(&page);
    journal_release(&journal, &log);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_page_starts_at_the_first_frame_that_is_missing);
    tcase_add_test(tests, pages_joined_are_the_whole_log);
    tcase_add_test(tests, a_frame_above_the_page_limit_is_still_given);
    tcase_add_test(tests, an_end_without_ids_is_found_by_whoever_has_all_ids);
    tcase_add_test(tests, an_end_with_ids_is_given_to_whoever_has_them_all);
    tcase_add_test(tests, an_empty_log_gives_an_empty_last_page);
    tcase_add_test(tests, a_reservation_is_charged_at_once_and_given_back);
    tcase_add_test(tests, only_ended_requests_count_as_room_that_could_be_made);
    tcase_add_test(tests, unread_logs_count_as_room_beyond_their_part);
    tcase_add_test(tests, a_log_within_its_reservation_never_fails);
    tcase_add_test(tests, what_an_append_would_take_is_known_before);
    tcase_add_test(tests, a_log_beyond_its_reservation_takes_what_is_left_and_then_is_refused);
    tcase_add_test(tests, what_is_reckoned_counts_tokens_their_logprobs_and_what_is_there_anyway);
    tcase_add_test(tests, a_promise_counts_what_is_there_and_may_be_changed);
    tcase_add_test(tests, a_block_says_whose_it_is);
    tcase_add_test(tests, a_log_that_is_found_goes_on_where_it_was);
    tcase_add_test(tests, a_damaged_frame_and_what_follows_it_is_cut_off);
    tcase_add_test(tests, a_block_that_is_not_the_next_one_is_not_taken);
    tcase_add_test(tests, a_chunk_is_filled_to_its_end);
    tcase_add_test(tests, a_page_is_filled_to_its_limit);
}

int main(void)
{
    return run_tests("broker/journal", add);
}
