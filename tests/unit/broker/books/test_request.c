/* SPDX-License-Identifier: MIT */
/* What a request says of itself: whether it is asked for again, what it needs of a worker, and its state. */

#include "broker/books/request.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <string.h>

static const char body[] = "what was asked";

static struct request asked(enum request_state state)
{
    return (struct request){
        .state = state, .body = {body, sizeof body}, .body_hash = hash128(body, sizeof body, 0)};
}

START_TEST(the_same_request_is_the_same_bytes)
{
    const char other[sizeof body] = "what was askeD";
    struct request request = asked(REQUEST_QUEUED);
    ck_assert(request_same_body(&request, body, sizeof body));
    ck_assert(!request_same_body(&request, body, sizeof body - 1));
    ck_assert(!request_same_body(&request, other, sizeof other));
}
END_TEST

START_TEST(both_halves_of_the_hash_are_compared)
{
    struct request low = asked(REQUEST_ENDED), high = asked(REQUEST_ENDED);
    ck_assert(request_same_body(&low, body, sizeof body));
    low.body_hash.low++;
    high.body_hash.high++;
    ck_assert(!request_same_body(&low, body, sizeof body));
    ck_assert(!request_same_body(&high, body, sizeof body));
}
END_TEST

START_TEST(of_one_that_ended_the_hash_is_all_there_is)
{
    for (int state = 0; state < REQUEST_STATE_COUNT; state++) {
        struct request request = asked((enum request_state)state);
        request.body = (struct bytes){0};
        ck_assert_int_eq(request_same_body(&request, body, sizeof body), state == REQUEST_ENDED);
    }
}
END_TEST

START_TEST(its_kind_is_what_a_worker_must_have_for_it)
{
    struct request request = {.body.len = REQUEST_BRIEF_BYTES};
    ck_assert_uint_eq(request_kind(&request), 0);
    request.body.len++;
    ck_assert_uint_eq(request_kind(&request), REQUEST_BULKY);
    request.body.len = REQUEST_BRIEF_BYTES - 10;
    request.log.count = 2; /* ids that it has made, five bytes each */
    ck_assert_uint_eq(request_assign_bytes(&request), REQUEST_BRIEF_BYTES);
    ck_assert_uint_eq(request_kind(&request), 0);
    request.log.count = 3;
    ck_assert_uint_eq(request_kind(&request), REQUEST_BULKY);
    request.embed = true;
    ck_assert_uint_eq(request_kind(&request), REQUEST_BULKY | REQUEST_EMBEDS);
    request.pair = true;
    ck_assert_uint_eq(request_kind(&request), REQUEST_KINDS - 1);
}
END_TEST

START_TEST(it_counts_for_its_key_or_else_for_its_session)
{
    struct request request = {.home.session = {{1}}, .client = {{2}}};
    ck_assert_ptr_eq(request_client(&request), &request.home.session);
    request.key = 1;
    ck_assert_ptr_eq(request_client(&request), &request.client);
}
END_TEST

START_TEST(a_tenant_is_one_for_all_who_may_name_it_alone_and_else_its_clients_own)
{
    const struct id128 ann = {{1}}, bob = {{2}};
    const struct bytes name = BYTES_LITERAL("x"), other = BYTES_LITERAL("y");
    const struct tenancy near = tenancy_of(name, &ann, true, 7), same = tenancy_of(name, &bob, true, 7),
                         far = tenancy_of(name, &ann, false, 7), bobs = tenancy_of(name, &bob, false, 7);
    ck_assert(near.named && near.alone && far.named && !far.alone);
    ck_assert_mem_eq(&near.id, &same.id, sizeof near.id);
    const struct tenancy others[] = {far, bobs, tenancy_of(other, &ann, true, 7),
                                     tenancy_of(name, &ann, true, 8)};
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j <= i; j++)
            ck_assert_mem_ne(&others[i].id, j == i ? &near.id : &others[j].id, sizeof near.id);
    ck_assert(!tenancy_of(BYTES_LITERAL(""), &ann, true, 7).named);
    ck_assert(!tenancy_of(BYTES_LITERAL(""), &ann, true, 7).alone);
}
END_TEST

/* Space and salt of what such a request asks for, as one text. */
static const char *scope(const struct request *request, const char *tenant, const char *salt, bool shared)
{
    static char texts[16][200];
    static unsigned n;
    char space[PROTO_MAX_SPACE_BYTES + 1], *text = texts[n++ % 16];
    struct generation generation = {.tenant = bytes_of_string(tenant), .cache_salt = bytes_of_string(salt)};
    request_set_cache_space(request, shared, space, &generation);
    ck_assert_uint_le(generation.cache_space.len, PROTO_MAX_SPACE_BYTES);
    snprintf(text, sizeof texts[0], "%.*s/%.*s", (int)generation.cache_space.len,
             (const char *)generation.cache_space.data, (int)generation.cache_salt.len,
             (const char *)generation.cache_salt.data);
    return text;
}

START_TEST(who_must_not_share_prefixes_has_another_space_or_salt)
{
    const struct request near = {.near = true}, far = {.near = false}, ann = {.keyed = true, .client = {{1}}},
                         bob = {.keyed = true, .client = {{2}}};
    const char *const apart[] = {
        scope(&near, "", "", false), scope(&near, "x", "", false), scope(&near, "", "x", false),
        scope(&far, "x", "", false), scope(&far, "", "x", false),  scope(&ann, "", "", false),
        scope(&bob, "", "", false),  scope(&ann, "x", "", false),  scope(&ann, "", "x", false),
        scope(&bob, "", "x", false), scope(&near, "y", "", false), scope(&near, "", "tx", false)};
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(apart[i], apart[j]);
    /* Without keys, salts and tenants there is one space; a salt is stronger than a tenant; sharing ends all
     * but salts. */
    ck_assert_str_eq(scope(&near, "", "", false), scope(&far, "", "", false));
    ck_assert_str_eq(scope(&near, "x", "s", false), scope(&near, "y", "s", false));
    ck_assert_str_eq(scope(&ann, "x", "", true), scope(&far, "", "", true));
    ck_assert_str_eq(scope(&ann, "x", "s", true), scope(&near, "", "s", true));
    ck_assert_str_ne(scope(&ann, "x", "s", true), scope(&ann, "x", "", true));
}
END_TEST

START_TEST(turns_are_the_tenants_if_it_stands_alone_and_else_the_clients)
{
    struct request request = {.home.session = {{1}}, .tenancy = {{{5}}, true, true}};
    struct party party = request_party(&request);
    ck_assert_ptr_eq(party.client, &request.home.session);
    ck_assert_ptr_eq(party_in_turn(&party), &request.tenancy.id);
    request.tenancy.alone = false;
    ck_assert_ptr_eq(party_in_turn(&party), &request.home.session);
}
END_TEST

START_TEST(every_state_has_a_name)
{
    static const char *const names[] = {"queued", "running", "cancelling", "ended", "unknown"};
    for (int state = 0; state <= REQUEST_STATE_COUNT; state++)
        ck_assert_str_eq(request_state_name((enum request_state)state), names[state]);
}
END_TEST

/* The struct, its place in the tables, its end message: not much less, and not many times that. */
START_TEST(what_it_costs_beside_its_frames_is_more_than_the_struct)
{
    ck_assert_uint_ge(request_overhead(), sizeof(struct request) + 512);
    ck_assert_uint_le(request_overhead(), sizeof(struct request) + 1024);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_same_request_is_the_same_bytes);
    tcase_add_test(tests, both_halves_of_the_hash_are_compared);
    tcase_add_test(tests, of_one_that_ended_the_hash_is_all_there_is);
    tcase_add_test(tests, its_kind_is_what_a_worker_must_have_for_it);
    tcase_add_test(tests, it_counts_for_its_key_or_else_for_its_session);
    tcase_add_test(tests, who_must_not_share_prefixes_has_another_space_or_salt);
    tcase_add_test(tests, a_tenant_is_one_for_all_who_may_name_it_alone_and_else_its_clients_own);
    tcase_add_test(tests, turns_are_the_tenants_if_it_stands_alone_and_else_the_clients);
    tcase_add_test(tests, every_state_has_a_name);
    tcase_add_test(tests, what_it_costs_beside_its_frames_is_more_than_the_struct);
}

int main(void)
{
    return run_tests("broker/request", add);
}
