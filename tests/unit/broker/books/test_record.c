/* SPDX-License-Identifier: MIT */
/* What of a request outlives the broker: its record and its log, as the next one reads them. */

#include "broker/books/record.h"
#include "broker/books/ledger.h"
#include "tests/unit/run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fd;
static struct journal journal;
static struct ledger ledger;

static void begin(void)
{
    ck_assert_int_eq(vault_create(VAULT_STEP_BYTES, &fd), 0);
    journal = (struct journal){.limit = 1 << 20};
    ledger = (struct ledger){.seed = 1};
    ck_assert_int_eq(vault_open(fd, &journal.vault, NULL), 0);
}

/* Frees the requests, and leaves the vault as it is. */
static void forget_requests(struct ledger *of)
{
    struct request *request, *next;
    HASH_CLEAR(by_current, of->by_current);
    HASH_ITER(by_home, of->by_home, request, next)
    {
        HASH_DELETE(by_home, of->by_home, request);
        free(request);
    }
}

static void end(void)
{
    forget_requests(&ledger);
    vault_close(journal.vault);
    close(fd);
}

static struct request *admit(uint8_t name, const char *body)
{
    struct request_key key = {{{name}}, {{name}}};
    struct request *request = ledger_add(&ledger, key);
    ck_assert_int_eq(record_make(journal.vault, request, body, strlen(body)), 0);
    request->model = (struct bytes){(const char *)request->body.data + 2, 3};
    request->seed = 77;
    request->priority = -3;
    request->arrived_ns = 1000;
    request->deadline_ns = 2000;
    request->keep_ns = 3000;
    request->on_disconnect = DISCONNECT_KEEP;
    request->prompt_tokens = 40;
    request->decode = 50;
    request->epoch = (struct epoch){5, 0};
    ck_assert_int_eq(journal_reserve(&journal, &request->log, 5000), 0);
    record_keep(journal.vault, request, NULL);
    return request;
}

static void append(struct request *request, unsigned n)
{
    char frame[100];
    for (unsigned i = 0; i < n; i++) {
        memset(frame, (int)request->log.count, sizeof frame);
        ck_assert_int_eq(journal_append(&journal, &request->log, 1, 2, frame, sizeof frame), 0);
    }
}

struct after { /* what the next broker has */
    struct vault *vault;
    struct journal journal;
    struct ledger ledger;
    struct request *request;
    struct restored restored;
    bool whole;
    size_t records;
};

/* Reads everything as another process would, this one having stopped in the middle of its work. What is the
 * process's own in a log is the reader's from then on. */
static struct after die(void)
{
    struct after after = {.journal = {.limit = 1 << 20}, .ledger = {.seed = 2}, .whole = true};
    ck_assert_int_eq(vault_open(fd, &after.vault, NULL), 0);
    after.journal.vault = after.vault;
    size_t size;
    uint64_t owner;
    uint32_t index;
    for (void *block = NULL; (block = vault_next(after.vault, block, &size));) {
        if (!record_is_one(block, size, &owner))
            continue;
        after.records++;
        after.request = ledger_add(&after.ledger, record_key(block));
        record_restore(after.request, block, &after.restored);
    }
    for (uint32_t n = 0; after.request && n < 20; n++)
        for (void *block = NULL; (block = vault_next(after.vault, block, &size));)
            if (journal_is_chunk(block, size, &owner, &index) && owner == after.request->log.owner &&
                index == n)
                after.whole &= journal_restore(&after.journal, &after.request->log, block, size);
    return after;
}

static void forget(struct after *after)
{
    forget_requests(&after->ledger);
    vault_close(after->vault);
}

START_TEST(a_request_and_its_frames_are_what_they_were)
{
    struct request *request = admit(1, "a body");
    append(request, 50);
    struct after after = die();
    ck_assert_uint_eq(after.records, 1);
    ck_assert(after.whole);
    struct request *again = after.request;
    ck_assert_mem_eq(&again->home, &request->home, sizeof again->home);
    ck_assert(bytes_equal(again->body, BYTES_LITERAL("a body")));
    ck_assert(bytes_equal(again->model, BYTES_LITERAL("bod")));
    ck_assert(request_same_body(again, "a body", 6));
    ck_assert_uint_eq(again->seed, 77);
    ck_assert_int_eq(again->priority, -3);
    ck_assert_uint_eq(again->arrived_ns, 1000);
    ck_assert_uint_eq(again->deadline_ns, 2000);
    ck_assert_uint_eq(again->keep_ns, 3000);
    ck_assert_int_eq(again->on_disconnect, DISCONNECT_KEEP);
    ck_assert_uint_eq(again->prompt_tokens, 40);
    ck_assert_uint_eq(again->decode, 50);
    ck_assert_uint_eq(again->epoch.boot, 5);
    ck_assert_int_eq(again->state, REQUEST_QUEUED);
    ck_assert_uint_eq(after.restored.reserved, 5000);
    ck_assert_uint_eq(after.restored.holder.incarnation, 0);
    ck_assert_uint_eq(again->log.count, 50);
    ck_assert_uint_eq(again->log.text_bytes, 100);
    struct journal_page page = {0};
    ck_assert_int_eq(journal_read(&again->log, 0, 1 << 20, &page), 0);
    ck_assert_uint_eq(page.n, 50);
    for (size_t i = 0; i < page.n; i++)
        ck_assert_int_eq(*(const char *)page.items[i].data, (int)i);
    ck_assert_int_eq(*(const char *)journal_last(&again->log).data, 49);
    journal_page_deinit(&page);
    /* And it can be gone on with. */
    ck_assert_int_eq(journal_append(&after.journal, &again->log, 1, 1, "x", 1), 0);
    ledger_remove(&after.ledger, &after.journal, again);
    ck_assert_uint_eq(after.journal.used, 0);
    ck_assert_uint_eq(vault_used(after.vault), 0);
    vault_close(after.vault);
}
END_TEST

/* Its log begins behind what it had made elsewhere. */
START_TEST(what_a_resumed_request_brought_along_is_remembered)
{
    struct request *request = admit(1, "a body");
    journal_resume(&request->log, 30, 60);
    record_keep(journal.vault, request, NULL);
    append(request, 5);
    struct after after = die();
    ck_assert(after.whole);
    ck_assert_uint_eq(after.request->log.count, 35);
    ck_assert_uint_eq(after.request->log.text_bytes, 70);
    ck_assert_uint_eq(after.request->log.given, 30);
    ck_assert_uint_eq(after.request->log.given_text, 60);
    ck_assert_uint_eq(journal_made(&after.request->log), 5);
    struct journal_page page = {0};
    ck_assert_int_eq(journal_read(&after.request->log, 32, 1 << 20, &page), 0);
    ck_assert_uint_eq(page.n, 3);
    ck_assert_uint_eq(page.from, 32);
    ck_assert_int_eq(*(const char *)page.items[0].data, 32);
    journal_page_deinit(&page);
    forget(&after);
}
END_TEST

START_TEST(each_step_of_its_life_is_remembered)
{
    struct request *request = admit(1, "a body");
    struct id128 other = {{9, 9}};
    request->has_digest = true;
    memset(request->digest, 4, sizeof request->digest);
    for (size_t i = 0; i < SAMPLING_N; i++)
        request->sampling[i] = 0.25 + (double)i;
    record_assigned(request, (struct record_holder){3, 8});
    ck_assert_int_eq(ledger_attach(&ledger, request, other), 0);
    record_attached(request);
    struct after after = die();
    ck_assert_uint_eq(after.restored.holder.index, 3);
    ck_assert_uint_eq(after.restored.holder.incarnation, 8);
    ck_assert_mem_eq(&after.restored.session, &other, sizeof other);
    ck_assert(after.request->has_digest);
    ck_assert_uint_eq(after.request->digest[15], 4);
    ck_assert_double_eq(after.request->sampling[SAMPLING_N - 1], 0.25 + SAMPLING_N - 1);
    forget(&after);

    record_returned(request);
    request->epoch.move++;
    request->n_lost = 7;
    record_moved(request);
    record_cancelled(request);
    after = die();
    ck_assert_uint_eq(after.restored.holder.incarnation, 0);
    ck_assert_uint_eq(after.request->epoch.boot, 5);
    ck_assert_uint_eq(after.request->epoch.move, 1);
    ck_assert_uint_eq(after.request->n_lost, 7);
    ck_assert_int_eq(after.request->state, REQUEST_CANCELLING);
    forget(&after);
}
END_TEST

START_TEST(of_an_ended_request_the_body_is_gone_and_the_rest_is_there)
{
    char body[3000];
    memset(body, 'x', sizeof body - 1);
    body[sizeof body - 1] = 0;
    struct request *request = admit(1, body);
    append(request, 3);
    size_t before = vault_used(journal.vault);
    ledger_ended(&ledger, &journal, request, 4242);
    ck_assert_uint_lt(vault_used(journal.vault), before - 2000);
    struct after after = die();
    ck_assert_int_eq(after.request->state, REQUEST_ENDED);
    ck_assert_uint_eq(after.request->ended_ns, 4242);
    ck_assert_uint_eq(after.request->log.count, 3);
    ck_assert(request_same_body(after.request, body, sizeof body - 1));
    forget(&after);
    ledger_remove(&ledger, &journal, request);
    after = die();
    ck_assert_uint_eq(after.records, 0);
    forget(&after);
}
END_TEST

START_TEST(large_bodies_that_ended_leave_room_for_others)
{
    enum { LARGE = 5 << 20, ROUNDS = 20 }; /* two of them fill the vault */
    char *body = malloc(LARGE);
    memset(body, 'x', LARGE - 1);
    body[LARGE - 1] = 0;
    struct request *requests[ROUNDS];
    for (uint8_t i = 0; i < ROUNDS; i++) {
        requests[i] = admit((uint8_t)(i + 1), body);
        ledger_ended(&ledger, &journal, requests[i], 4242);
    }
    struct after after = die();
    ck_assert_uint_eq(after.records, ROUNDS);
    ck_assert_int_eq(after.request->state, REQUEST_ENDED);
    ck_assert(request_same_body(after.request, body, LARGE - 1));
    forget(&after);
    for (int i = 0; i < ROUNDS; i++)
        ledger_remove(&ledger, &journal, requests[i]);
    ck_assert_uint_eq(vault_used(journal.vault), 0);
    free(body);
}
END_TEST

START_TEST(what_was_not_admitted_to_the_end_was_never_there)
{
    struct request_key key = {{{1}}, {{1}}};
    struct request *request = ledger_add(&ledger, key);
    ck_assert_int_eq(record_make(journal.vault, request, "half", 4), 0);
    struct after after = die();
    ck_assert_uint_eq(after.records, 0);
    forget(&after);
}
END_TEST

START_TEST(a_damaged_frame_cuts_off_its_log_and_a_damaged_record_is_none)
{
    struct request *request = admit(1, "a body");
    append(request, 30);
    struct journal_page page = {0};
    ck_assert_int_eq(journal_read(&request->log, 20, 1 << 20, &page), 0);
    ((char *)page.items[0].data)[50] ^= 1;
    journal_page_deinit(&page);
    struct after after = die();
    ck_assert(!after.whole);
    ck_assert_uint_eq(after.request->log.count, 20);
    forget(&after);
    ((char *)request->body.data)[1] ^= 1;
    after = die();
    ck_assert_uint_eq(after.records, 0);
    forget(&after);
}
END_TEST

/* Nobody would notice: its body is gone, and what it says is given to whoever asks for the answer. */
START_TEST(a_damaged_record_of_a_request_that_ended_is_none)
{
    enum { CHECKED = 8, FIXED = 176 }; /* behind magic and length of the body: what the checksum is of */
    struct request *request = admit(1, "a body");
    append(request, 3);
    ledger_ended(&ledger, &journal, request, 4242);
    uint8_t *bytes = (uint8_t *)request->record;
    for (size_t at = CHECKED; at < CHECKED + FIXED; at++) {
        bytes[at] ^= 0x40;
        struct after after = die();
        ck_assert_msg(after.records == 0, "byte %zu", at);
        forget(&after);
        bytes[at] ^= 0x40;
    }
    struct after after = die();
    ck_assert_uint_eq(after.records, 1);
    forget(&after);
    ledger_remove(&ledger, &journal, request);
}
END_TEST

/* Chunks of logs have another. */
START_TEST(a_block_that_does_not_begin_as_records_do_is_none)
{
    const struct request *request = admit(1, "a body");
    uint32_t *magic = (uint32_t *)(void *)request->record;
    for (int off = -1; off <= 1; off++) {
        *magic += (uint32_t)off;
        struct after after = die();
        ck_assert_uint_eq(after.records, off == 0);
        forget(&after);
        *magic -= (uint32_t)off;
    }
}
END_TEST

START_TEST(all_that_was_fixed_is_found_as_it_was)
{
    static const char body[] = "__mxx";
    static const uint8_t client_key[CLIENT_KEY_BYTES] = {1, [CLIENT_KEY_BYTES - 1] = 9};
    struct request *request = ledger_add(&ledger, (struct request_key){{{1}}, {{2}}});
    ck_assert_int_eq(record_make(journal.vault, request, body, sizeof body), 0);
    request->model = (struct bytes){(const char *)request->body.data + 2, 1};
    request->seed = 11;
    request->prompt_tokens = 12;
    request->decode = 13;
    request->arrived_ns = 14;
    request->deadline_ns = 15;
    request->keep_ns = 16;
    request->priority = -7;
    request->on_disconnect = DISCONNECT_KEEP;
    ck_assert_int_eq(journal_reserve(&journal, &request->log, 5000), 0);
    record_keep(journal.vault, request, client_key);
    struct after after = die();
    ck_assert_uint_eq(after.records, 1);
    const struct request *found = after.request;
    ck_assert_uint_eq(found->seed, 11);
    ck_assert_uint_eq(found->prompt_tokens, 12);
    ck_assert_uint_eq(found->decode, 13);
    ck_assert_uint_eq(found->arrived_ns, 14);
    ck_assert_uint_eq(found->deadline_ns, 15);
    ck_assert_uint_eq(found->keep_ns, 16);
    ck_assert_int_eq(found->priority, -7);
    ck_assert_int_eq(found->on_disconnect, DISCONNECT_KEEP);
    ck_assert_int_eq(found->state, REQUEST_QUEUED);
    ck_assert(bytes_equal(found->model, BYTES_LITERAL("m")));
    ck_assert(bytes_equal(found->body, (struct bytes){body, sizeof body}));
    ck_assert_uint_eq(after.restored.reserved, 5000);
    ck_assert(after.restored.has_client_key);
    ck_assert_mem_eq(after.restored.client_key, client_key, sizeof client_key);
    forget(&after);
}
END_TEST

START_TEST(who_named_no_model_and_has_no_key_has_none)
{
    struct request *request = ledger_add(&ledger, (struct request_key){{{1}}, {{2}}});
    ck_assert_int_eq(record_make(journal.vault, request, "body", 4), 0);
    record_keep(journal.vault, request, NULL);
    struct after after = die();
    ck_assert_uint_eq(after.request->model.len, 0);
    ck_assert_ptr_null(after.request->model.data);
    ck_assert(!after.restored.has_client_key);
    ck_assert_int_eq(after.request->on_disconnect, DISCONNECT_CANCEL);
    forget(&after);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_request_and_its_frames_are_what_they_were);
    tcase_add_test(tests, what_a_resumed_request_brought_along_is_remembered);
    tcase_add_test(tests, each_step_of_its_life_is_remembered);
    tcase_add_test(tests, of_an_ended_request_the_body_is_gone_and_the_rest_is_there);
    tcase_add_test(tests, large_bodies_that_ended_leave_room_for_others);
    tcase_add_test(tests, what_was_not_admitted_to_the_end_was_never_there);
    tcase_add_test(tests, a_damaged_frame_cuts_off_its_log_and_a_damaged_record_is_none);
    tcase_add_test(tests, a_damaged_record_of_a_request_that_ended_is_none);
    tcase_add_test(tests, a_block_that_does_not_begin_as_records_do_is_none);
    tcase_add_test(tests, all_that_was_fixed_is_found_as_it_was);
    tcase_add_test(tests, who_named_no_model_and_has_no_key_has_none);
}

int main(void)
{
    return run_tests("broker/record", add);
}
