/* SPDX-License-Identifier: MIT */
/* Limits of tenants: what is counted when, what is left of it, and what the next broker knows of it. */

#include "broker/books/rates.h"
#include "common/clock.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define S CLOCK_NS_PER_S

static struct rate_book book;
static struct rate_key ada;
static struct quotas quotas;
static struct error err;
static uint32_t retry_ms;

static void begin(void)
{
    book = (struct rate_book){.seed = 3};
    ada = rate_key_of(bytes_of_string("ada"), NULL);
    retry_ms = 0;
}

static void end(void)
{
    rates_deinit(&book);
}

static enum proto_error check(const struct rates *limits, uint64_t now)
{
    return rates_check(&book, &ada, limits, RATE_WHOLE, now, &quotas, &retry_ms, &err);
}

/* One request of so many tokens, which ends at once. */
static void ask(const struct rates *limits, uint64_t tokens, uint64_t now)
{
    struct rate *rate = rates_enter(&book, &ada, limits, false, tokens, now);
    ck_assert_ptr_nonnull(rate);
    rate_leave(rate);
}

START_TEST(so_many_requests_a_minute_and_then_one_at_a_time)
{
    const struct rates limits = {.rpm = 3};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(check(&limits, S), PROTO_OK);
        ck_assert_uint_eq(quotas.requests.limit, 3);
        ck_assert_uint_eq(quotas.requests.remaining, 3 - (uint64_t)i);
        ck_assert_uint_eq(quotas.tokens.limit, 0);
        ask(&limits, 1000000, S);
    }
    ck_assert_int_eq(check(&limits, S), PROTO_OVERLOADED);
    ck_assert_str_eq(err.text, "the limit of 3 requests a minute is reached (rpm): try again in 21 s");
    ck_assert_uint_eq(quotas.requests.remaining, 0);
    ck_assert_uint_ge(retry_ms, 20000);
    ck_assert_uint_le(retry_ms, 20001);
    ck_assert_uint_le(quotas.requests.reset_ms - 60000, 1);
    /* Who comes then is let in, and who comes again is not. */
    const uint64_t then = S + (uint64_t)retry_ms * CLOCK_NS_PER_MS;
    ck_assert_int_eq(check(&limits, then - S), PROTO_OVERLOADED);
    ck_assert_int_eq(check(&limits, then), PROTO_OK);
    ask(&limits, 0, then);
    ck_assert_int_eq(check(&limits, then), PROTO_OVERLOADED);
    ck_assert_int_eq(check(&limits, then + 3600 * S), PROTO_OK);
    ck_assert_uint_eq(quotas.requests.remaining, 3);
    ck_assert_uint_eq(quotas.requests.reset_ms, 0);
}
END_TEST

START_TEST(tokens_may_be_overdrawn_by_what_runs_and_are_given_back)
{
    const struct rates limits = {.tpm = 600};
    struct rate *rate = rates_enter(&book, &ada, &limits, false, 500, S);
    rate_charge(rate, 700, S);
    ck_assert_int_eq(check(&limits, S), PROTO_OVERLOADED);
    ck_assert_uint_ge(retry_ms, 60100); /* 601 tokens, ten a second */
    ck_assert_uint_le(retry_ms, 60101);
    ck_assert_ptr_nonnull(strstr(err.text, "600 tokens a minute is reached (tpm)"));
    rate_charge(rate, -900, S);
    ck_assert_int_eq(check(&limits, S), PROTO_OK);
    ck_assert_uint_eq(quotas.tokens.remaining, 300);
    rate_charge(rate, -900, S); /* never more than there is */
    ck_assert_int_eq(check(&limits, S), PROTO_OK);
    ck_assert_uint_eq(quotas.tokens.remaining, 600);
    rate_leave(rate);
}
END_TEST

START_TEST(of_a_minute_and_a_day_the_one_with_less_left_is_told)
{
    const struct rates limits = {.rpm = 10, .rpd = 12, .tpm = 50, .tpd = 1000};
    ck_assert_int_eq(check(&limits, S), PROTO_OK);
    ck_assert_uint_eq(quotas.requests.limit, 10);
    for (int i = 0; i < 10; i++)
        ask(&limits, 4, S);
    ck_assert_int_eq(check(&limits, S), PROTO_OVERLOADED);
    ck_assert_ptr_nonnull(strstr(err.text, "(rpm)"));
    ck_assert_int_eq(check(&limits, 61 * S), PROTO_OK); /* ten of the minute again, two of the day */
    ck_assert_uint_eq(quotas.requests.limit, 12);
    ck_assert_uint_eq(quotas.requests.remaining, 2);
    ck_assert_uint_eq(quotas.tokens.limit, 50);
    ask(&limits, 0, 61 * S);
    ask(&limits, 0, 61 * S);
    ck_assert_int_eq(check(&limits, 61 * S), PROTO_OVERLOADED);
    ck_assert_ptr_nonnull(strstr(err.text, "the limit of 12 requests a day is reached (rpd)"));
    ck_assert_uint_gt(retry_ms, 60000);
}
END_TEST

START_TEST(a_part_is_never_refused_and_counts_tokens_only)
{
    const struct rates limits = {.rpm = 1, .tpm = 100};
    ask(&limits, 10, S);
    ck_assert_int_eq(check(&limits, S), PROTO_OVERLOADED);
    ck_assert_int_eq(rates_check(&book, &ada, &limits, RATE_PART, S, &quotas, &retry_ms, &err), PROTO_OK);
    struct rate *rate = rates_enter(&book, &ada, &limits, true, 10, S);
    quotas = rate_quotas(rate, S);
    ck_assert_uint_eq(quotas.tokens.remaining, 80);
    rate_leave(rate);
    ck_assert_int_eq(check(&limits, 61 * S), PROTO_OK);
    ck_assert_uint_eq(quotas.requests.remaining, 1);
}
END_TEST

START_TEST(an_input_is_refused_for_tokens_only)
{
    const struct rates limits = {.rpm = 1, .tpm = 100, .rpd = 1};
    ask(&limits, 99, S);
    ck_assert_int_eq(rates_check(&book, &ada, &limits, RATE_INPUT, S, &quotas, &retry_ms, &err), PROTO_OK);
    struct rate *rate = rates_enter(&book, &ada, &limits, true, 50, S);
    ck_assert_int_eq(rates_check(&book, &ada, &limits, RATE_PART, S, &quotas, &retry_ms, &err), PROTO_OK);
    ck_assert_int_eq(rates_check(&book, &ada, &limits, RATE_INPUT, S, &quotas, &retry_ms, &err),
                     PROTO_OVERLOADED);
    ck_assert_ptr_nonnull(strstr(err.text, "the limit of 100 tokens a minute is reached (tpm)"));
    ck_assert_uint_gt(retry_ms, 29000);
    ck_assert_uint_lt(retry_ms, 31000);
    rate_leave(rate);
    ck_assert_int_eq(rates_check(&book, &ada, &limits, RATE_INPUT, 32 * S, &quotas, &retry_ms, &err),
                     PROTO_OK);
}
END_TEST

START_TEST(tenants_and_clients_are_counted_apart)
{
    const struct rates limits = {.rpm = 1};
    const struct id128 key = {{7}};
    const struct rate_key others[] = {rate_key_of(bytes_of_string("bob"), NULL),
                                      rate_key_of(bytes_of_string("ada"), &key)};
    ask(&limits, 0, S);
    ck_assert_int_eq(check(&limits, S), PROTO_OVERLOADED);
    for (size_t i = 0; i < 2; i++)
        ck_assert_int_eq(rates_check(&book, &others[i], &limits, RATE_WHOLE, S, &quotas, &retry_ms, &err),
                         PROTO_OK);
}
END_TEST

START_TEST(limits_that_change_leave_used_what_was_used)
{
    const struct rates ten = {.rpm = 10}, five = {.rpm = 5}, tokens = {.tpm = 7},
                       huge = {.rpm = PROTO_MAX_RATE};
    for (int i = 0; i < 4; i++)
        ask(&ten, 0, S);
    ck_assert_int_eq(check(&five, S), PROTO_OK);
    ck_assert_uint_eq(quotas.requests.remaining, 1);
    ask(&five, 0, S);
    ck_assert_int_eq(check(&five, S), PROTO_OVERLOADED);
    ck_assert_int_eq(check(&ten, S), PROTO_OK);
    ck_assert_uint_eq(quotas.requests.remaining, 5);
    ck_assert_int_eq(check(&tokens, S), PROTO_OK);
    ck_assert_uint_eq(quotas.requests.limit, 0);
    ck_assert_uint_eq(quotas.tokens.remaining, 7);
    ck_assert_int_eq(check(&huge, S), PROTO_OK);
    ck_assert_uint_eq(quotas.requests.limit, PROTO_MAX_RATE);
}
END_TEST

/* The blocks of a vault, as the next broker finds them. */
static void restore(struct vault *vault, struct rate_book *ret_book, uint64_t now)
{
    size_t size;
    *ret_book = (struct rate_book){.seed = 9, .vault = vault};
    for (void *block = vault_next(vault, NULL, &size); block; block = vault_next(vault, block, &size))
        ck_assert_int_eq(rates_restore(ret_book, block, size, now), 1);
}

/* As many tenants of a client as there may be ask once. */
static void ask_of_all(const struct id128 *client, const struct rates *limits, uint64_t tokens)
{
    for (uint32_t i = 0; i < RATES_MOST_OF_CLIENT; i++) {
        const struct rate_key key = rate_key_of((struct bytes){&i, sizeof i}, client);
        struct rate *rate = rates_enter(&book, &key, limits, false, tokens, S);
        ck_assert_ptr_nonnull(rate);
        rate_leave(rate);
    }
}

static void expect_room(const struct id128 *client, const struct rates *limits, uint64_t now)
{
    const struct rate_key key = rate_key_of(BYTES_LITERAL("one more"), client);
    ck_assert_int_eq(rates_check(&book, &key, limits, RATE_WHOLE, now, &quotas, &retry_ms, &err), PROTO_OK);
    ck_assert_uint_eq(HASH_COUNT(book.by_key), 0);
}

/* Or its place would never be free again. */
START_TEST(a_limit_that_is_taken_away_leaves_nothing_behind)
{
    const struct rates both = {.rpm = 10, .tpm = 100}, one = {.rpm = 10};
    const struct id128 client = {{1}};
    ask_of_all(&client, &both, 500);
    ask_of_all(&client, &one, 0);
    expect_room(&client, &one, 3600 * S);
}
END_TEST

START_TEST(what_an_earlier_broker_left_of_a_limit_that_was_taken_away_is_healed)
{
    const struct rates one = {.rpm = 10};
    const struct id128 client = {{1}};
    const double owed = -400;
    const size_t level = 8 + sizeof(struct rate_key) + 5 * 8; /* of the first place: tokens a minute */
    struct rate_book next;
    size_t size;
    int fd;
    ck_assert_int_eq(vault_create(VAULT_MOST_BYTES, &fd), 0);
    ck_assert_int_eq(vault_open(fd, &book.vault, NULL), 0);
    ask_of_all(&client, &one, 0);
    struct vault *vault = book.vault;
    rates_deinit(&book);
    uint8_t *page = NULL;
    while ((page = vault_next(vault, page, &size))) {
        double was;
        memcpy(&was, page + level, sizeof was);
        ck_assert(was == 0);
        memcpy(page + level, &owed, sizeof owed);
    }
    restore(vault, &next, S);
    book = next;
    ck_assert_uint_eq(HASH_COUNT(book.by_key), RATES_MOST_OF_CLIENT);
    expect_room(&client, &one, 3600 * S);
    rates_deinit(&book);
    vault_close(vault);
    close(fd);
}
END_TEST

/* Tenants are made up without end. */
START_TEST(the_book_has_an_end_and_those_with_all_of_theirs_make_room)
{
    const struct rates limits = {.rpm = 10};
    const struct id128 client = {{1}};
    uint32_t taken = 0;
    for (; taken < RATES_MOST + 10; taken++) {
        const struct rate_key key = rate_key_of((struct bytes){&taken, sizeof taken}, &client);
        if (rates_check(&book, &key, &limits, RATE_WHOLE, S, &quotas, &retry_ms, &err) != PROTO_OK)
            break;
        rate_leave(rates_enter(&book, &key, &limits, false, 0, S));
    }
    ck_assert_uint_eq(taken, RATES_MOST_OF_CLIENT);
    ck_assert_str_eq(err.text, "too many tenants with limits (rpm, tpm, rpd, tpd)");
    ck_assert_uint_eq(retry_ms, 1000);
    ck_assert_int_eq(check(&limits, S), PROTO_OK); /* of somebody else */
    const struct rate_key key = rate_key_of(BYTES_LITERAL("one more"), &client);
    ck_assert_int_eq(rates_check(&book, &key, &limits, RATE_WHOLE, 8 * S, &quotas, &retry_ms, &err),
                     PROTO_OK);
    ck_assert_uint_le(HASH_COUNT(book.by_key), 1); /* all were full again */
}
END_TEST

START_TEST(the_next_broker_goes_on_counting)
{
    const struct rates limits = {.rpm = 2, .tpd = 1000};
    struct rate_book next;
    int fd;
    ck_assert_int_eq(vault_create(VAULT_STEP_BYTES, &fd), 0);
    ck_assert_int_eq(vault_open(fd, &book.vault, NULL), 0);
    ask(&limits, 400, S);
    ask(&limits, 500, S);
    for (uint32_t i = 0; i < 100; i++) { /* on several pages */
        const struct rate_key key = rate_key_of((struct bytes){&i, sizeof i}, NULL);
        rate_leave(rates_enter(&book, &key, &limits, false, i, S));
    }
    struct vault *vault = book.vault;
    rates_deinit(&book);
    restore(vault, &next, 2 * S);
    book = next;
    ck_assert_uint_eq(HASH_COUNT(book.by_key), 101);
    ck_assert_int_eq(check(&limits, 2 * S), PROTO_OVERLOADED);
    ck_assert_uint_eq(quotas.tokens.remaining, 100);
    struct rate *again = rates_enter_again(&book, &ada);
    ck_assert_ptr_nonnull(again);
    rate_charge(again, 60, 2 * S);
    ck_assert_uint_eq(rate_quotas(again, 2 * S).tokens.remaining, 40);
    rate_leave(again);
    const struct rate_key nobody = rate_key_of(BYTES_LITERAL("nobody"), NULL);
    ck_assert_ptr_null(rates_enter_again(&book, &nobody));
    rates_deinit(&book);
    vault_close(vault);
    close(fd);
}
END_TEST

START_TEST(what_was_left_damaged_counts_nothing_and_harms_nobody)
{
    const struct rates limits = {.rpm = 2};
    struct rate_book next;
    size_t size;
    int fd;
    ck_assert_int_eq(vault_create(VAULT_STEP_BYTES, &fd), 0);
    ck_assert_int_eq(vault_open(fd, &book.vault, NULL), 0);
    ask(&limits, 0, S);
    struct vault *vault = book.vault;
    uint8_t *page = vault_next(vault, NULL, &size);
    for (int how = 0; how < 3; how++) {
        memset(page + 8, how == 0 ? 0xff : how == 1 ? 0x7f : 0xc1, size - 8); /* NaN; larger than can be */
        restore(vault, &next, 2 * S);
        ck_assert_uint_le(HASH_COUNT(next.by_key), 1);
        struct quotas left;
        ck_assert_int_eq(rates_check(&next, &ada, &limits, RATE_WHOLE, 2 * S, &left, &retry_ms, &err),
                         PROTO_OK);
        ck_assert_uint_eq(left.requests.remaining, 2);
        rates_deinit(&next);
    }
    memset(page, 0, 4);
    ck_assert_int_eq(rates_restore(&next, page, size, S), 0);
    ck_assert_int_eq(rates_restore(&next, page, 100, S), 0);
    book.pages[0] = NULL;
    book.n_pages = 0;
    rates_deinit(&book);
    vault_close(vault);
    close(fd);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, so_many_requests_a_minute_and_then_one_at_a_time);
    tcase_add_test(tests, tokens_may_be_overdrawn_by_what_runs_and_are_given_back);
    tcase_add_test(tests, of_a_minute_and_a_day_the_one_with_less_left_is_told);
    tcase_add_test(tests, a_part_is_never_refused_and_counts_tokens_only);
    tcase_add_test(tests, an_input_is_refused_for_tokens_only);
    tcase_add_test(tests, tenants_and_clients_are_counted_apart);
    tcase_add_test(tests, limits_that_change_leave_used_what_was_used);
    tcase_add_test(tests, a_limit_that_is_taken_away_leaves_nothing_behind);
    tcase_add_test(tests, what_an_earlier_broker_left_of_a_limit_that_was_taken_away_is_healed);
    tcase_add_test(tests, the_book_has_an_end_and_those_with_all_of_theirs_make_room);
    tcase_add_test(tests, the_next_broker_goes_on_counting);
    tcase_add_test(tests, what_was_left_damaged_counts_nothing_and_harms_nobody);
}

int main(void)
{
    return run_tests("broker/rates", add);
}
