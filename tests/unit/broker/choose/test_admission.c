/* SPDX-License-Identifier: MIT */
/* Admission: shares of the queue and of the journal, the time to come back, and what is fixed at the door. */

#include "broker/choose/admission.h"
#include "common/clock.h"
#include "tests/unit/run.h"

#include <string.h>

static const struct id128 ann = {{'a'}}, bob = {{'b'}}, eve = {{'e'}};

static struct request make(struct id128 session, size_t bytes, uint64_t journal_bytes)
{
    return (struct request){.home.session = session, .body.len = bytes, .log.reserved = journal_bytes};
}

static void enter(struct admission *admission, struct request *request)
{
    ck_assert_int_eq(admission_entered(admission, request), 0);
    admission_queued(admission, request);
}

static void end(struct admission *admission, struct request *request)
{
    admission_dequeued(admission, request);
    admission_ended(admission, request, CLOCK_NS_PER_S);
}

/* Who names nobody. */
static struct party naming_nobody(const struct id128 *session)
{
    static const struct tenancy none;
    return (struct party){session, &none};
}

/* What the refusal of a message of so many bytes says; "" when there is room. */
static const char *refusal(const struct admission *admission, struct id128 session, size_t bytes)
{
    static struct error reason;
    const struct party party = naming_nobody(&session);
    enum proto_error error = admission_check_queue(admission, &party, bytes, &reason);
    ck_assert(error == PROTO_OK || error == PROTO_OVERLOADED);
    return error == PROTO_OK ? "" : reason.text;
}

static enum proto_error ask_journal(const struct admission *admission, const struct id128 *session,
                                    uint64_t bytes, const struct journal *journal, struct error *reason)
{
    const struct party party = naming_nobody(session);
    return admission_check_journal(admission, &party, bytes, 0, journal, reason);
}

#define FULL                           "queue full: "
#define SHARE_FULL                     "this session's share of the queue is full: "
#define ck_assert_begins(text, prefix) ck_assert_mem_eq(text, prefix, sizeof(prefix) - 1)

START_TEST(of_the_queue_a_session_has_as_much_as_it_leaves_free)
{
    struct admission admission = {.max_queued = 8, .max_queued_bytes = 1000};
    struct request requests[8];
    for (int i = 0; i < 4; i++) {
        ck_assert_str_eq(refusal(&admission, ann, 1), "");
        requests[i] = make(ann, 1, 0);
        enter(&admission, &requests[i]);
    }
    ck_assert_begins(refusal(&admission, ann, 1),
                     SHARE_FULL "4 requests waiting, of 4 in all, with room for 4 more");
    for (int i = 4; i < 6; i++) {
        ck_assert_str_eq(refusal(&admission, bob, 1), "");
        requests[i] = make(bob, 1, 0);
        enter(&admission, &requests[i]);
    }
    ck_assert_begins(refusal(&admission, bob, 1), SHARE_FULL "2 requests");
    ck_assert_str_eq(refusal(&admission, eve, 1), ""); /* who has nothing finds room */
    requests[6] = make(eve, 1, 0);
    enter(&admission, &requests[6]);
    end(&admission, &requests[0]);
    ck_assert_begins(refusal(&admission, ann, 1), SHARE_FULL "3 requests"); /* others want it now */
    for (int i = 1; i < 7; i++)
        end(&admission, &requests[i]);
    ck_assert_ptr_null(admission.shares.by_id);
    ck_assert_uint_eq(admission.queued, 0);
}
END_TEST

START_TEST(of_the_bytes_of_prompts_a_session_has_as_much_as_it_leaves_free)
{
    struct admission admission = {.max_queued = 100, .max_queued_bytes = 1000};
    struct request a = make(ann, 300, 0), b = make(bob, 349, 0), c = make(eve, 350, 0);
    ck_assert_begins(
        refusal(&admission, ann, 501),
        SHARE_FULL "0 bytes of prompts waiting, and 501 bytes more exceed its share of the 1000 bytes left");
    ck_assert_str_eq(refusal(&admission, ann, 500), "");
    enter(&admission, &a);
    ck_assert_begins(refusal(&admission, ann, 201), SHARE_FULL);
    ck_assert_str_eq(refusal(&admission, ann, 200), "");
    ck_assert_str_eq(refusal(&admission, bob, 350), "");
    enter(&admission, &b);
    enter(&admission, &c); /* as a request that came back from its worker */
    ck_assert_begins(refusal(&admission, eve, 2),
                     FULL "3 requests of 999 bytes waiting; at most 100 of 1000 bytes are allowed");
    end(&admission, &a);
    end(&admission, &b);
    end(&admission, &c);
    ck_assert_uint_eq(admission.queued_bytes, 0);
}
END_TEST

START_TEST(of_the_journals_part_for_the_queue_a_session_has_as_much_as_it_leaves_free)
{
    struct admission admission = {.max_queued = 100, .max_queued_bytes = 1000};
    struct journal journal = {.limit = 8000};
    struct request request = make(ann, 1, 0);
    struct error reason;
    ck_assert_int_eq(journal_reserve(&journal, &request.log, 400), 0);
    enter(&admission, &request);
    ck_assert_uint_eq(admission.waiting_bytes, 400);
    ck_assert_int_eq(ask_journal(&admission, &ann, 100, &journal, &reason), PROTO_OK);
    ck_assert_int_eq(ask_journal(&admission, &ann, 101, &journal, &reason), PROTO_OVERLOADED);
    ck_assert_begins(reason.text,
                     "this session's share of the journal is full: its waiting requests have 400 bytes, and "
                     "101 bytes more exceed its share of the rest, 600 bytes of 1000 bytes");
    ck_assert_int_eq(ask_journal(&admission, &bob, 300, &journal, &reason), PROTO_OK);
    ck_assert_int_eq(ask_journal(&admission, &bob, 601, &journal, &reason), PROTO_OVERLOADED);
    ck_assert_begins(reason.text, "journal full: waiting requests use 400 bytes of their 1000 bytes");
    end(&admission, &request);
    ck_assert_uint_eq(admission.waiting_bytes, 0);
    ck_assert_int_eq(ask_journal(&admission, &ann, 500, &journal, &reason), PROTO_OK);
    journal_settle(&journal, &request.log, 400);
    journal_release(&journal, &request.log);
}
END_TEST

START_TEST(what_runs_and_unread_answers_may_leave_no_room_to_wait_in)
{
    struct admission admission = {.max_queued = 100, .max_queued_bytes = 1000};
    struct journal journal = {.limit = 8000};
    struct request request = make(ann, 1, 0);
    struct error reason;
    ck_assert_int_eq(journal_reserve(&journal, &request.log, 7901), 0);
    ck_assert_int_eq(ask_journal(&admission, &bob, 100, &journal, &reason), PROTO_OVERLOADED);
    ck_assert_begins(reason.text, "journal full: waiting requests use 0 bytes of their 1000 bytes; with "
                                  "running requests and unread answers, 7901 bytes of 8000 bytes are in use");
    ck_assert_int_eq(ask_journal(&admission, &bob, 99, &journal, &reason), PROTO_OK);
    journal_release(&journal, &request.log);
}
END_TEST

/* By the same rule as the queue, but what is free is the caller's to say. */
START_TEST(a_session_grows_as_far_as_it_leaves_as_much_free)
{
    struct admission admission = {.max_queued = 100, .max_queued_bytes = 1000};
    struct request mine = make(ann, 1, 400), other = make(bob, 1, 100);
    enter(&admission, &mine);
    enter(&admission, &other);
    ck_assert(admission_may_grow(&admission, &mine, 100, 600));
    ck_assert(!admission_may_grow(&admission, &mine, 101, 600));
    ck_assert(admission_may_grow(&admission, &other, 250, 600));
    ck_assert(!admission_may_grow(&admission, &other, 251, 600));
    admission_grows(&mine, 200);
    mine.log.reserved += 200;
    ck_assert(!admission_may_grow(&admission, &mine, 1, 400));
    end(&admission, &mine);
    end(&admission, &other);
}
END_TEST

START_TEST(no_request_may_need_more_than_three_quarters_of_the_journal)
{
    struct admission admission = {.max_queued = 100, .max_queued_bytes = 1000};
    struct journal journal = {.limit = 800};
    const struct party party = naming_nobody(&ann);
    struct error reason;
    ck_assert_int_eq(admission_check_journal(&admission, &party, 10, 600, &journal, &reason), PROTO_OK);
    ck_assert_int_eq(admission_check_journal(&admission, &party, 10, 601, &journal, &reason), PROTO_TOO_LONG);
    ck_assert_str_eq(reason.text, "max_tokens and logprobs could take 601 bytes of the journal; at most 600 "
                                  "bytes are allowed for a request");
}
END_TEST

static void end_at(struct admission *admission, uint64_t now)
{
    struct request request = make(ann, 1, 0);
    ck_assert_int_eq(admission_entered(admission, &request), 0);
    admission_ended(admission, &request, now);
}

START_TEST(the_retry_time_follows_the_rate_of_ends_and_is_bounded)
{
    struct admission admission = {.max_queued = 10000, .max_queued_bytes = 1 << 20};
    admission.queued = 8000;
    ck_assert_uint_eq(admission_retry_ms(&admission, 0), 1000); /* who knows */
    uint64_t now = CLOCK_NS_PER_S;
    for (int i = 0; i < 10000; i++)
        end_at(&admission, now += CLOCK_NS_PER_MS);
    uint32_t at_a_thousand = admission_retry_ms(&admission, now);
    ck_assert_uint_ge(at_a_thousand, 900);
    ck_assert_uint_le(at_a_thousand, 1100);
    ck_assert_uint_eq(admission_retry_ms(&admission, now + 100 * CLOCK_NS_PER_S), 10000); /* it stands */
    admission.queued = 0;
    ck_assert_uint_eq(admission_retry_ms(&admission, now), 100);
    end_at(&admission, now + 100 * CLOCK_NS_PER_S);
    admission.queued = 8000;
    ck_assert_uint_eq(admission_retry_ms(&admission, now + 100 * CLOCK_NS_PER_S), 10000);
}
END_TEST

/* In the first second there is no average yet; 10 s were told where the queue was empty after one. */
START_TEST(the_retry_time_is_right_from_the_first_ends_on)
{
    struct admission admission = {.max_queued = 10000, .max_queued_bytes = 1 << 20, .queued = 8000};
    uint64_t now = CLOCK_NS_PER_S;
    for (int i = 0; i < 1200; i++)
        end_at(&admission, now += CLOCK_NS_PER_MS / 6);
    uint32_t at_six_thousand = admission_retry_ms(&admission, now);
    ck_assert_uint_ge(at_six_thousand, 150);
    ck_assert_uint_le(at_six_thousand, 190);
}
END_TEST

START_TEST(a_seed_is_drawn_only_for_those_who_chose_none)
{
    struct request request = {0};
    struct generation generation;
    generation_defaults(&generation);
    admission_fix(&request, &generation, 42, 1000);
    ck_assert_uint_eq(request.seed, 42);
    generation.has_seed = true;
    generation.sampling.seed = 7;
    admission_fix(&request, &generation, 42, 1000);
    ck_assert_uint_eq(request.seed, 7);
}
END_TEST

START_TEST(a_deadline_counts_from_arrival_and_an_endless_one_is_none)
{
    struct request request = {.deadline_ns = UINT64_MAX};
    struct generation generation;
    generation_defaults(&generation);
    admission_fix(&request, &generation, 0, 1000);
    ck_assert_uint_eq(request.deadline_ns, UINT64_MAX);
    generation.deadline_ms = UINT64_MAX;
    admission_fix(&request, &generation, 0, 1000);
    ck_assert_uint_eq(request.deadline_ns, UINT64_MAX);
    generation.deadline_ms = 3;
    admission_fix(&request, &generation, 0, 1000);
    ck_assert_uint_eq(request.deadline_ns, 1000 + 3 * CLOCK_NS_PER_MS);
}
END_TEST

START_TEST(the_load_is_the_prompt_and_a_part_of_what_may_come)
{
    struct request request = {0};
    struct generation generation;
    generation_defaults(&generation);
    generation.max_tokens = 10;
    generation.prompt.form = PROMPT_IDS;
    generation.prompt.ids.n = 33;
    admission_fix(&request, &generation, 0, 0);
    ck_assert_uint_eq(request.prompt_tokens, 33);
    ck_assert_uint_eq(request.decode, 2);
    generation.prompt.form = PROMPT_TEXT;
    generation.prompt.text.len = 400;
    admission_fix(&request, &generation, 0, 0);
    ck_assert_uint_eq(request.prompt_tokens, 101);
    generation.max_tokens = INT32_MAX; /* says nothing of how many will come */
    admission_fix(&request, &generation, 0, 0);
    ck_assert_uint_eq(request.decode, 129);
}
END_TEST

START_TEST(a_session_of_bytes_that_fit_is_refused_for_its_share_and_not_for_the_queue)
{
    struct admission admission = {.max_queued = 2, .max_queued_bytes = 1000};
    ck_assert_begins(refusal(&admission, ann, 1000), SHARE_FULL);
    ck_assert_begins(refusal(&admission, ann, 1001), FULL "0 requests of 0 bytes waiting");
}
END_TEST

START_TEST(a_client_may_have_so_many_requests_that_have_not_ended)
{
    struct admission admission = {.max_queued = 100, .max_queued_bytes = 1000, .max_client_requests = 2};
    struct request first = make(ann, 1, 0), second = make(ann, 1, 0);
    enter(&admission, &first);
    ck_assert_str_eq(refusal(&admission, ann, 1), "");
    enter(&admission, &second);
    admission_dequeued(&admission, &second); /* it runs */
    ck_assert_str_eq(refusal(&admission, ann, 1),
                     "this client has 2 requests unfinished; at most 2 are allowed (client-requests)");
    ck_assert_str_eq(refusal(&admission, bob, 1), "");
    admission_ended(&admission, &second, CLOCK_NS_PER_S);
    ck_assert_str_eq(refusal(&admission, ann, 1), "");
    end(&admission, &first);
}
END_TEST

START_TEST(what_a_client_has_is_the_sum_of_its_requests)
{
    struct admission admission = {.max_queued = 100, .max_queued_bytes = 1000};
    struct request first = make(ann, 10, 100), second = make(ann, 20, 30);
    enter(&admission, &first);
    enter(&admission, &second);
    const struct share *share = share_find(&admission.shares, &ann);
    ck_assert_uint_eq(share->journal_bytes, 130);
    ck_assert_uint_eq(share->queued_bytes, 30);
    ck_assert_uint_eq(share->queued, 2);
    end(&admission, &first);
    ck_assert_uint_eq(share->journal_bytes, 30);
    ck_assert_uint_eq(share->queued_bytes, 20);
    ck_assert_uint_eq(share->queued, 1);
    ck_assert_uint_eq(admission.queued_bytes, 20);
    end(&admission, &second);
    ck_assert_ptr_null(second.share);
}
END_TEST

/* Five ends in a second, one in the third: how long eighty that wait take, an eighth of them and one. */
START_TEST(the_rate_of_ends_is_halved_by_each_second)
{
    struct admission admission = {0};
    const uint64_t s = CLOCK_NS_PER_S;
    for (int i = 0; i < 5; i++)
        end_at(&admission, 10 * s);
    admission.queued = 80;
    ck_assert_uint_eq(admission_retry_ms(&admission, 10 * s), 220); /* as if in a tenth of a second */
    ck_assert_uint_eq(admission_retry_ms(&admission, 10 * s + s / 10), 220);
    ck_assert_uint_eq(admission_retry_ms(&admission, 10 * s + s / 2), 1100);
    ck_assert_uint_eq(admission_retry_ms(&admission, 11 * s), 4400);
    ck_assert_uint_eq(admission_retry_ms(&admission, 12 * s - 1), 4400);
    ck_assert_uint_eq(admission_retry_ms(&admission, 12 * s), 8800);
    ck_assert_uint_eq(admission_retry_ms(&admission, 13 * s), 10000);
    end_at(&admission, 12 * s + s / 4);
    ck_assert_double_eq(admission.ended_per_s, 1.25);
    ck_assert_uint_eq(admission.window_ns, 12 * s);
    ck_assert_uint_eq(admission_retry_ms(&admission, 12 * s + s / 2), 5500);
    ck_assert_uint_eq(admission_retry_ms(&admission, 13 * s), 9777);
    admission.queued = 0;
    ck_assert_uint_eq(admission_retry_ms(&admission, 12 * s + s / 2), 500);
}
END_TEST

START_TEST(what_was_asked_for_is_fixed_in_its_units)
{
    const uint64_t year_ms = (uint64_t)31536000 * 1000;
    const struct chat_message chat[] = {{.content = BYTES_LITERAL("12345")},
                                        {.content = BYTES_LITERAL("678")}};
    struct request request = {.deadline_ns = UINT64_MAX};
    struct generation generation;
    generation_defaults(&generation);
    generation.priority = -3;
    generation.on_disconnect = DISCONNECT_KEEP;
    generation.keep_s = 7;
    generation.deadline_ms = year_ms;
    generation.prompt.form = PROMPT_CHAT;
    generation.prompt.chat.items = chat;
    generation.prompt.chat.n = 2;
    admission_fix(&request, &generation, 0, 1000);
    ck_assert_int_eq(request.priority, -3);
    ck_assert_int_eq(request.on_disconnect, DISCONNECT_KEEP);
    ck_assert_uint_eq(request.keep_ns, 7 * CLOCK_NS_PER_S);
    ck_assert_uint_eq(request.arrived_ns, 1000);
    ck_assert_uint_eq(request.deadline_ns, UINT64_MAX);
    ck_assert_uint_eq(request.prompt_tokens, 3);
    generation.deadline_ms--;
    admission_fix(&request, &generation, 0, 1000);
    ck_assert_uint_eq(request.deadline_ns, 1000 + (year_ms - 1) * CLOCK_NS_PER_MS);
}
END_TEST

START_TEST(each_drawn_seed_is_another)
{
    struct admission admission = {.secret = 1}, same = {.secret = 1}, other = {.secret = 2};
    uint64_t first = admission_draw_seed(&admission);
    ck_assert_uint_eq(admission_draw_seed(&same), first);
    ck_assert_uint_ne(admission_draw_seed(&admission), first);
    ck_assert_uint_ne(admission_draw_seed(&other), first);
}
END_TEST

/* ---- tenants ---- */

/* A request of this session for this tenant. */
static struct request for_tenant(struct id128 session, const char *name, bool near)
{
    struct request request = make(session, 1, 1);
    request.tenancy = tenancy_of(bytes_of_string(name), &session, near, 7);
    return request;
}

/* The refusal of one more; "" when it may enter. */
static const char *refusal_of(const struct admission *admission, const struct request *request)
{
    static struct error reason;
    const struct party party = request_party(request);
    return admission_check_queue(admission, &party, 1, &reason) == PROTO_OK ? "" : reason.text;
}

/* Enters as many as may. */
static size_t fill(struct admission *admission, struct request *requests, const struct request *like)
{
    size_t n = 0;
    for (; refusal_of(admission, like)[0] == 0; n++) {
        requests[n] = *like;
        enter(admission, &requests[n]);
    }
    return n;
}

START_TEST(a_tenant_that_stands_alone_has_the_share_of_a_session)
{
    static struct request requests[64];
    struct admission admission = {.max_queued = 64, .max_queued_bytes = 1 << 20};
    const struct request x = for_tenant(ann, "x", true), y = for_tenant(ann, "y", true),
                         again = for_tenant(bob, "x", true), other = make(eve, 1, 1);
    size_t of_x = fill(&admission, requests, &x);
    ck_assert_uint_eq(of_x, 32);
    ck_assert_begins(refusal_of(&admission, &x),
                     "this tenant's share of the queue is full: 32 requests waiting");
    ck_assert_begins(refusal_of(&admission, &again), "this tenant's share"); /* from another session, too */
    size_t of_y = fill(&admission, requests + of_x, &y);
    ck_assert_uint_eq(of_y, 16);
    size_t of_other = fill(&admission, requests + of_x + of_y, &other);
    ck_assert_uint_eq(of_other, 8);
    for (size_t i = 0; i < of_x + of_y + of_other; i++)
        end(&admission, &requests[i]);
    ck_assert_ptr_null(admission.shares.by_id);
}
END_TEST

START_TEST(names_that_a_session_makes_up_leave_an_eighth_to_others)
{
    static struct request requests[64];
    struct admission admission = {.max_queued = 64, .max_queued_bytes = 1 << 20};
    const struct request other = make(eve, 1, 1);
    char name[16];
    size_t n = 0;
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "made up %u", i);
        struct request request = for_tenant(ann, name, true);
        if (refusal_of(&admission, &request)[0])
            continue;
        requests[n] = request;
        enter(&admission, &requests[n++]);
    }
    ck_assert_uint_eq(n, 56);
    const struct request one_more = for_tenant(ann, "one more", true);
    ck_assert_begins(refusal_of(&admission, &one_more), SHARE_FULL "56 requests wait");
    ck_assert_str_eq(refusal_of(&admission, &other), "");
    for (size_t i = 0; i < n; i++)
        end(&admission, &requests[i]);
    ck_assert_ptr_null(admission.shares.by_id);
}
END_TEST

START_TEST(other_tenants_divide_what_their_client_has)
{
    static struct request requests[64];
    struct admission admission = {.max_queued = 64, .max_queued_bytes = 1 << 20};
    const struct request x = for_tenant(ann, "x", false), y = for_tenant(ann, "y", false),
                         unnamed = make(ann, 1, 1), namesake = for_tenant(bob, "x", false);
    size_t n = fill(&admission, requests, &x);
    ck_assert_uint_ge(n, 15);
    ck_assert_uint_le(n, 17); /* half of the half that the client may have */
    ck_assert_begins(refusal_of(&admission, &x), "this tenant's share of the queue is full");
    size_t of_y = fill(&admission, requests + n, &y);
    ck_assert_uint_ge(of_y, 7);
    ck_assert_uint_le(of_y, 9);
    n += of_y;
    char name[16];
    for (unsigned i = 0; i < 1000; i++) { /* however many names: no more than the client's share */
        snprintf(name, sizeof name, "made up %u", i);
        struct request request = for_tenant(ann, name, false);
        if (refusal_of(&admission, &request)[0])
            continue;
        requests[n] = request;
        enter(&admission, &requests[n++]);
    }
    ck_assert_uint_eq(n, 31);
    ck_assert_str_eq(refusal_of(&admission, &unnamed), "");
    requests[n] = unnamed;
    enter(&admission, &requests[n++]);
    ck_assert_begins(refusal_of(&admission, &unnamed), SHARE_FULL "32 requests");
    ck_assert_str_eq(refusal_of(&admission, &namesake), ""); /* of another client is another */
    for (size_t i = 0; i < n; i++)
        end(&admission, &requests[i]);
    ck_assert_ptr_null(admission.shares.by_id);
}
END_TEST

START_TEST(of_little_every_tenant_may_have_something)
{
    struct admission admission = {.max_queued = 2, .max_queued_bytes = 2};
    struct request x = for_tenant(ann, "x", false), y = for_tenant(bob, "y", true);
    ck_assert_str_eq(refusal_of(&admission, &x), "");
    ck_assert_str_eq(refusal_of(&admission, &y), "");
    admission.max_client_requests = 2;
    admission.max_queued = admission.max_queued_bytes = 100;
    enter(&admission, &x);
    ck_assert_begins(refusal_of(&admission, &x),
                     "this tenant has 1 request unfinished, of its client's 1; the client may have 2");
    struct request z = for_tenant(ann, "z", false);
    ck_assert_str_eq(refusal_of(&admission, &z), "");
    enter(&admission, &z);
    ck_assert_begins(refusal_of(&admission, &z), "this client has 2 requests unfinished");
    end(&admission, &x);
    end(&admission, &z);
}
END_TEST

START_TEST(tenants_divide_the_journals_part_of_their_client)
{
    struct admission admission = {.max_queued = 100, .max_queued_bytes = 1000};
    struct journal journal = {.limit = 6400};
    struct request x = for_tenant(ann, "x", false);
    struct error reason;
    const struct party of_x = request_party(&x);
    x.log = (struct journal_log){0};
    ck_assert_int_eq(journal_reserve(&journal, &x.log, 200), 0);
    enter(&admission, &x);
    struct request z = for_tenant(ann, "z", false);
    const struct party of_z = request_party(&z);
    /* Its client may have 200 more; one that has nothing leaves an eighth of what that has in all. */
    ck_assert_int_eq(admission_check_journal(&admission, &of_z, 150, 0, &journal, &reason), PROTO_OK);
    ck_assert_int_eq(admission_check_journal(&admission, &of_z, 151, 0, &journal, &reason), PROTO_OVERLOADED);
    ck_assert_begins(reason.text,
                     "this tenant's share of the journal is full: its waiting requests have 0 bytes");
    ck_assert_int_eq(admission_check_journal(&admission, &of_x, 1, 0, &journal, &reason), PROTO_OVERLOADED);
    ck_assert_begins(reason.text,
                     "this tenant's share of the journal is full: its waiting requests have 200");
    end(&admission, &x);
    journal_release(&journal, &x.log);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, of_the_queue_a_session_has_as_much_as_it_leaves_free);
    tcase_add_test(tests, of_the_bytes_of_prompts_a_session_has_as_much_as_it_leaves_free);
    tcase_add_test(tests, of_the_journals_part_for_the_queue_a_session_has_as_much_as_it_leaves_free);
    tcase_add_test(tests, what_runs_and_unread_answers_may_leave_no_room_to_wait_in);
    tcase_add_test(tests, a_session_grows_as_far_as_it_leaves_as_much_free);
    tcase_add_test(tests, no_request_may_need_more_than_three_quarters_of_the_journal);
    tcase_add_test(tests, the_retry_time_follows_the_rate_of_ends_and_is_bounded);
    tcase_add_test(tests, the_retry_time_is_right_from_the_first_ends_on);
    tcase_add_test(tests, a_seed_is_drawn_only_for_those_who_chose_none);
    tcase_add_test(tests, a_deadline_counts_from_arrival_and_an_endless_one_is_none);
    tcase_add_test(tests, the_load_is_the_prompt_and_a_part_of_what_may_come);
    tcase_add_test(tests, a_session_of_bytes_that_fit_is_refused_for_its_share_and_not_for_the_queue);
    tcase_add_test(tests, a_client_may_have_so_many_requests_that_have_not_ended);
    tcase_add_test(tests, what_a_client_has_is_the_sum_of_its_requests);
    tcase_add_test(tests, the_rate_of_ends_is_halved_by_each_second);
    tcase_add_test(tests, what_was_asked_for_is_fixed_in_its_units);
    tcase_add_test(tests, each_drawn_seed_is_another);
    tcase_add_test(tests, a_tenant_that_stands_alone_has_the_share_of_a_session);
    tcase_add_test(tests, names_that_a_session_makes_up_leave_an_eighth_to_others);
    tcase_add_test(tests, other_tenants_divide_what_their_client_has);
    tcase_add_test(tests, of_little_every_tenant_may_have_something);
    tcase_add_test(tests, tenants_divide_the_journals_part_of_their_client);
}

int main(void)
{
    return run_tests("broker/admission", add);
}
