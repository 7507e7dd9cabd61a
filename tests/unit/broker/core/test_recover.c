/* SPDX-License-Identifier: MIT */
/* A vault as a killed broker leaves it, and what the next one makes of it: without a socket, for nothing of
 * this concerns a request that runs. */

#include "broker/core/recover.h"
#include "broker/core/lifecycle.h"
#include "broker/books/record.h"
#include "tests/unit/broker/logged.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE 20000 /* bytes of a body whose record moves to a small block at its end; no brief one */

static int fd;
static struct board_slot turns;
static uint32_t n_workers; /* of the next broker */
static struct broker *broker;
static char model[8];             /* that requests name; "": none */
static struct bytes tenant;       /* that they name; "": none */
static bool near;                 /* by a socket of the run directory */
static const uint8_t *client_key; /* that requests are admitted with; NULL: none */
static struct client_key *known;  /* to the next broker; NULL: nobody */

/* A broker with nothing but its books. */
static struct broker *new_broker(void)
{
    struct broker *made = calloc(1, sizeof *made);
    ck_assert_ptr_nonnull(made);
    made->n_workers = n_workers;
    made->journal.limit = JOURNAL_LIMIT_BYTES;
    made->supervisor.boot = 2;
    made->supervisor.turns = &turns;
    made->now = 1000;
    made->admission.max_queued = ADMISSION_MAX_QUEUED;
    made->admission.max_queued_bytes = ADMISSION_MAX_QUEUED_BYTES;
    made->routing = (struct routing){.workers = made->workers};
    queue_init(&made->queue, 1);
    growth_init(&made->growth, &made->journal, &made->ledger, &made->admission);
    ck_assert_int_eq(message_decoder_new(&made->request_decoder), 0);
    ck_assert_int_eq(message_decoder_new(&made->frame_decoder), 0);
    ck_assert_int_eq(vault_open(fd, &made->journal.vault, NULL), 0);
    if (known) {
        HASH_ADD(by_bytes, made->client_keys.by_bytes, bytes, CLIENT_KEY_BYTES, known);
        HASH_ADD(by_number, made->client_keys.by_number, number, sizeof known->number, known);
    }
    return made;
}

/* As a kill does it: the vault stays as it is. */
static void free_books(struct broker *dead)
{
    struct request *request, *next;
    while ((request = queue_first(&dead->queue, QUEUE_ALL))) {
        queue_remove(&dead->queue, request);
        admission_dequeued(&dead->admission, request);
        admission_ended(&dead->admission, request, dead->now);
        session_unbind(&dead->sessions, request);
    }
    for (uint32_t i = 0; i < dead->n_workers; i++)
        while ((request = dead->workers[i].requests)) {
            worker_drop(&dead->workers[i], request);
            admission_ended(&dead->admission, request, dead->now);
            session_unbind(&dead->sessions, request);
        }
    HASH_ITER(by_home, dead->ledger.by_home, request, next)
    {
        request->record = NULL;
        request->log = (struct journal_log){.settled = request->log.settled, .unread = request->log.unread};
        ledger_remove(&dead->ledger, &(struct journal){0}, request);
    }
    HASH_CLEAR(by_bytes, dead->client_keys.by_bytes);
    HASH_CLEAR(by_number, dead->client_keys.by_number);
    queue_deinit(&dead->queue);
    growth_deinit(&dead->growth);
    message_decoder_free(dead->request_decoder);
    message_decoder_free(dead->frame_decoder);
    vault_close(dead->journal.vault);
    free(dead);
}

static void begin(void)
{
    model[0] = 0;
    tenant = (struct bytes){"", 0};
    near = false;
    client_key = NULL;
    known = NULL;
    n_workers = 0;
    ck_assert_int_eq(vault_create(VAULT_STEP_BYTES, &fd), 0);
    broker = new_broker();
}

static void end(void)
{
    free_books(broker);
    close(fd);
}

static void take_over(void)
{
    struct error err = {{0}};
    free_books(broker);
    broker = new_broker();
    ck_assert_msg(recover(broker, &err) == 0, "%s", err.text);
}

static struct buffer encoded(const struct message *message)
{
    struct buffer out = {0};
    struct error err = {{0}};
    ck_assert_msg(message_encode_or_say(message, &out, &err) == 0, "%s", err.text);
    return out;
}

static struct request_key key_of(uint8_t name)
{
    return (struct request_key){{{name}}, {{name}}};
}

/* Admits a request with a body of about `bytes`, and writes it down. */
static struct request *admit(uint8_t name, size_t bytes)
{
    struct message generate = {.kind = MESSAGE_GENERATE};
    struct request *request = ledger_add(&broker->ledger, key_of(name));
    char *prompt = malloc(bytes);
    memset(prompt, 'p', bytes);
    generate.generate.id = request->home.id;
    generation_defaults(&generate.generate.generation);
    generate.generate.generation.prompt.text = (struct bytes){prompt, bytes};
    generate.generate.generation.model = bytes_of_string(model);
    generate.generate.generation.tenant = tenant;
    request->tenancy = tenancy_of(tenant, &request->home.session, near, broker->secret);
    request->near = near;

    struct buffer body = encoded(&generate);
    ck_assert_int_eq(record_make(broker->journal.vault, request, body.data, body.len), 0);
    ck_assert_int_eq(journal_reserve(&broker->journal, &request->log, 5000), 0);
    if (model[0]) {
        const uint8_t *at = memmem(request->body.data, request->body.len, model, strlen(model));
        request->model = (struct bytes){at, strlen(model)};
    }
    request->prompt_tokens = 1;
    record_keep(broker->journal.vault, request, client_key);
    buffer_deinit(&body);
    free(prompt);
    return request;
}

static void append_frame(struct request *request, bool is_last)
{
    int32_t id = 7;
    struct message frame = {.kind = MESSAGE_FRAME};
    frame.frame.id = request->home.id;
    frame.frame.seq = frame.frame.off = request->log.count;
    frame.frame.ids = (struct id_list){&id, 1};
    frame.frame.text = (struct bytes){"x", 1};
    frame.frame.has_end = is_last;
    frame.frame.end.reason = END_LENGTH;
    struct buffer bytes = encoded(&frame);
    ck_assert_int_eq(journal_append(&broker->journal, &request->log, 1, 1, bytes.data, bytes.len), 0);
    buffer_deinit(&bytes);
}

static size_t n_records(void)
{
    size_t n = 0, size;
    uint64_t owner;
    for (void *block = NULL; (block = vault_next(broker->journal.vault, block, &size));)
        n += record_is_one(block, size, &owner);
    return n;
}

static const struct request *found(uint8_t name)
{
    struct request_key key = key_of(name);
    return ledger_find(&broker->ledger, &key);
}

static void expect_ended(uint8_t name, uint64_t ids)
{
    const struct request *request = found(name);
    ck_assert_ptr_nonnull(request);
    ck_assert_int_eq(request->state, REQUEST_ENDED);
    ck_assert_uint_eq(request->log.count, ids);
    ck_assert_uint_gt(request->end_message.len, 0);
}

/* The record of request `name` in its large block, and in the small one that it is moved to: a broker that is
 * killed between keeping the one and giving the other leaves both. */
static void leave_twins(uint8_t name)
{
    size_t before = n_records(), size;
    struct request *request = admit(name, LARGE);
    append_frame(request, false);
    append_frame(request, true);
    void *large = request->record;
    ledger_ended(&broker->ledger, &broker->journal, request, broker->now);
    ck_assert_ptr_ne(request->record, large);
    void *again = vault_take(broker->journal.vault, LARGE + 400, &size);
    ck_assert_ptr_eq(again, large); /* as it was: nobody has written to it */
    vault_keep(broker->journal.vault, again);
    ck_assert_uint_eq(n_records(), before + 2);
}

START_TEST(of_a_record_that_was_caught_on_its_move_one_is_left)
{
    struct logged logged;
    leave_twins(1);
    logged_begin(&logged);
    take_over();
    ck_assert_ptr_null(strstr(logged_end(&logged), "damaged"));
    ck_assert_uint_eq(broker->ledger.n, 1);
    ck_assert_uint_eq(n_records(), 1);
    expect_ended(1, 2);
    size_t used = vault_used(broker->journal.vault);
    take_over(); /* and nothing changes any more */
    ck_assert_uint_eq(n_records(), 1);
    ck_assert_uint_eq(vault_used(broker->journal.vault), used);
    expect_ended(1, 2);
}
END_TEST

START_TEST(twins_stand_in_nobodys_way)
{
    struct request *other = admit(2, 100);
    append_frame(other, false);
    leave_twins(1);
    struct request *third = admit(3, LARGE);
    append_frame(third, true);
    take_over();
    ck_assert_uint_eq(broker->ledger.n, 3);
    ck_assert_uint_eq(n_records(), 3);
    expect_ended(1, 2);
    expect_ended(3, 1);
    ck_assert_int_eq(found(2)->state, REQUEST_QUEUED); /* nobody has it: it goes on from its one id */
    ck_assert_uint_eq(found(2)->log.count, 1);
    ck_assert_uint_eq(found(2)->epoch.boot, 2);
}
END_TEST

START_TEST(whether_a_client_has_it_is_known_to_the_next)
{
    for (uint8_t name = 1; name <= 2; name++) {
        struct request *request = admit(name, 100);
        append_frame(request, true);
        ledger_ended(&broker->ledger, &broker->journal, request, broker->now);
        if (name == 2)
            ledger_taken(&broker->ledger, &broker->journal, request);
    }
    take_over();
    ck_assert(found(1)->log.unread);
    ck_assert(!found(2)->log.unread);
}
END_TEST

START_TEST(what_runs_takes_a_large_ones_place_only_if_it_is_large)
{
    for (uint8_t name = 1; name <= 2; name++)
        record_assigned(admit(name, name == 1 ? 100 : LARGE), (struct record_holder){0, 7});
    n_workers = 1;
    take_over();
    ck_assert_uint_eq(broker->workers[0].n_requests, 2);
    ck_assert_uint_eq(broker->workers[0].n_bulky, 1);
}
END_TEST

START_TEST(a_damaged_record_of_an_ended_request_is_dropped_and_told)
{
    struct logged logged;
    for (uint8_t name = 1; name <= 2; name++) {
        struct request *request = admit(name, 100);
        append_frame(request, true);
        ledger_ended(&broker->ledger, &broker->journal, request, broker->now);
        ((uint8_t *)request->record)[20] ^= name == 1; /* of its keys */
    }
    logged_begin(&logged);
    take_over();
    ck_assert_ptr_nonnull(strstr(logged_end(&logged), "1 part of its state was damaged and dropped"));
    ck_assert_uint_eq(broker->ledger.n, 1);
    expect_ended(2, 1);
}
END_TEST

/* Or one that has much to take over would be held for one that hangs. */
START_TEST(each_request_that_is_taken_over_counts_as_progress)
{
    enum { N = 50 };
    for (uint8_t name = 1; name <= N; name++)
        admit(name, 100);
    uint64_t before = atomic_load(&turns.steps);
    take_over();
    ck_assert_uint_ge(atomic_load(&turns.steps), before + 2 * N);
}
END_TEST

static struct client_key alice = {.bytes = {1, 2, [31] = 3}, .number = 5};

START_TEST(a_request_counts_for_its_clients_key_again)
{
    client_key = alice.bytes;
    admit(1, 100);
    client_key = NULL;
    admit(2, 100);
    known = &alice; /* under another number than before */
    take_over();
    const struct request *request = found(1);
    ck_assert_uint_eq(request->key, alice.number);
    ck_assert_mem_eq(request_client(request), alice.bytes, sizeof(struct id128));
    ck_assert_uint_eq(found(2)->key, 0);
    ck_assert_ptr_eq(request_client(found(2)), &found(2)->home.session);
    struct error reason;
    broker->admission.max_client_requests = 1;
    const struct party party = request_party(request);
    ck_assert_int_eq(admission_check_queue(&broker->admission, &party, 10, &reason), PROTO_OVERLOADED);
    broker->allowance.tokens = 100;
    alice.filled_ns = 0;
    lifecycle_charge(broker, request, 30);
    ck_assert_double_eq(alice.tokens, 70);
}
END_TEST

START_TEST(of_a_key_that_was_taken_away_a_request_counts_for_its_session)
{
    static const uint8_t gone[CLIENT_KEY_BYTES] = {9};
    client_key = gone;
    admit(1, 100);
    known = &alice;
    take_over();
    ck_assert_uint_eq(found(1)->key, 0);
    ck_assert_int_eq(found(1)->state, REQUEST_QUEUED);
}
END_TEST

/* The next broker knows no model before its workers have told it theirs. */
START_TEST(what_waits_for_a_real_model_is_told_from_made_up_names_once_a_worker_has_come)
{
    enum { MADE_UP = 2 * TARGETS_UNKNOWN_MAX, REAL = MADE_UP + 1 };
    for (uint8_t name = 1; name <= REAL; name++) {
        snprintf(model, sizeof model, name == REAL ? "real" : "no-%03u", name);
        admit(name, 100);
    }
    take_over();
    ck_assert_uint_ge(found(REAL)->queued_target, TARGETS_SHARED_UNKNOWN);
    queue_know(&broker->queue, bytes_of_string("real"));
    ck_assert_uint_lt(found(REAL)->queued_target, TARGETS_SHARED_UNKNOWN);
    ck_assert_ptr_eq(queue_first(&broker->queue, QUEUE_TARGET(found(REAL)->queued_target)), found(REAL));
    ck_assert_uint_eq(broker->queue.n, REAL);
}
END_TEST

START_TEST(a_request_keeps_whose_prefixes_it_shares)
{
    static const uint8_t key[CLIENT_KEY_BYTES] = {9, 8, 7};
    struct request *one = admit(1, 100);
    ck_assert(!one->near && !one->keyed);
    near = true;
    admit(2, 100);
    near = false;
    client_key = key; /* of a client that is gone: the next broker knows no such key */
    admit(3, 100);
    client_key = NULL;
    take_over();
    ck_assert(!found(1)->near && !found(1)->keyed);
    ck_assert(found(2)->near && !found(2)->keyed);
    ck_assert(!found(3)->near && found(3)->keyed && found(3)->key == 0);
    ck_assert_mem_eq(&found(3)->client, key, sizeof found(3)->client);
}
END_TEST

START_TEST(a_request_counts_for_its_tenant_again)
{
    const uint64_t secret = 77; /* of the next broker: each has its own */
    tenant = BYTES_LITERAL("ann");
    near = true;
    admit(1, 100);
    admit(2, 100);
    near = false;
    admit(3, 100);
    record_assigned(admit(4, 100), (struct record_holder){0, 7});
    tenant = (struct bytes){"", 0};
    admit(5, 100);
    n_workers = 1;
    free_books(broker);
    broker = new_broker();
    broker->secret = secret;
    ck_assert_int_eq(recover(broker, &(struct error){{0}}), 0);
    const struct tenancy stands_alone = tenancy_of(BYTES_LITERAL("ann"), NULL, true, secret);
    for (uint8_t name = 1; name <= 2; name++) {
        ck_assert(found(name)->tenancy.alone);
        ck_assert_mem_eq(&found(name)->tenancy.id, &stands_alone.id, sizeof stands_alone.id);
    }
    for (uint8_t name = 3; name <= 4; name++) {
        const struct tenancy own =
            tenancy_of(BYTES_LITERAL("ann"), &found(name)->home.session, false, secret);
        ck_assert(found(name)->tenancy.named && !found(name)->tenancy.alone);
        ck_assert_mem_eq(&found(name)->tenancy.id, &own.id, sizeof own.id);
    }
    ck_assert(!found(5)->tenancy.named);
    ck_assert_uint_eq(found(1)->tenant_share->queued, 2);
    ck_assert_uint_eq(found(3)->tenant_share->queued, 1);
    ck_assert_uint_eq(found(4)->tenant_share->queued, 0); /* it runs */
    ck_assert_uint_eq(found(4)->tenant_share->requests, 1);
    ck_assert_ptr_null(found(5)->tenant_share);
    ck_assert_ptr_eq(queue_first(&broker->queue, QUEUE_ALL), found(1));
}
END_TEST

/* The status lists them so. */
/* Until workers come, which say how large the journal may be: what is kept must not be dropped for want of
 * room. */
START_TEST(what_was_kept_has_the_room_that_the_vault_has)
{
    const uint64_t room = 4 * JOURNAL_LIMIT_BYTES;
    free_books(broker);
    close(fd);
    ck_assert_int_eq(vault_create(journal_vault_bytes(room), &fd),
                     0); /* pages are taken as they are needed */
    broker = new_broker();
    take_over();
    ck_assert_uint_eq(broker->journal.limit, JOURNAL_LIMIT_BYTES); /* nothing was there */
    admit(5, 100);
    take_over();
    ck_assert_uint_eq(broker->journal.limit, room);
}
END_TEST

START_TEST(the_oldest_stays_the_first)
{
    static const uint8_t names[] = {5, 3, 9, 1};
    for (size_t i = 0; i < sizeof names; i++)
        admit(names[i], i % 2 ? LARGE : 100); /* their blocks lie apart */
    take_over();
    const struct request *request = broker->ledger.by_home;
    for (size_t i = 0; i < sizeof names; i++, request = request->by_home.next)
        ck_assert_uint_eq(request->home.id.bytes[0], names[i]);
    ck_assert_ptr_null(request);
}
END_TEST

static uint64_t written_credit(const struct request *request)
{
    struct request scratch = {0};
    struct restored restored;
    record_restore(&scratch, request->record, &restored);
    return restored.credit;
}

/* Also where all that it had made was damaged: its log has a chunk then, and no frame. */
START_TEST(what_has_made_nothing_gives_its_credit_back_and_the_next_knows)
{
    for (uint8_t name = 1; name <= 3; name++) {
        struct request *request = admit(name, 100);
        growth_plan(request, 100, 192);
        request->growth.credit = 64;
        record_credited(request);
        if (name > 1)
            append_frame(request, false);
        if (name == 2)
            ((uint8_t *)journal_last(&request->log).data)[1] ^= 1;
    }
    take_over();
    for (uint8_t name = 1; name <= 3; name++) {
        struct request_key key = key_of(name);
        struct request *request = ledger_find(&broker->ledger, &key);
        ck_assert_int_eq(request->state, REQUEST_QUEUED);
        ck_assert_uint_eq(request->log.count, name == 3);
        ck_assert_uint_eq(request->growth.credit, name == 3 ? 64 : 0);
        ck_assert_uint_eq(written_credit(request), name == 3 ? 64 : 0);
        ck_assert_int_eq(growth_start(&broker->growth, request), 0);
        ck_assert_uint_ge(request->growth.credit, 64);
        lifecycle_stay(broker, request);
        ck_assert_int_eq(request->growth.credit > 0, name == 3);
        growth_left(&broker->growth, request);
    }
    const struct request_key damaged = key_of(2);
    ck_assert_ptr_nonnull(ledger_find(&broker->ledger, &damaged)->log.first);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, of_a_record_that_was_caught_on_its_move_one_is_left);
    tcase_add_test(tests, twins_stand_in_nobodys_way);
    tcase_add_test(tests, what_was_kept_has_the_room_that_the_vault_has);
    tcase_add_test(tests, the_oldest_stays_the_first);
    tcase_add_test(tests, what_has_made_nothing_gives_its_credit_back_and_the_next_knows);
    tcase_add_test(tests, a_request_counts_for_its_clients_key_again);
    tcase_add_test(tests, a_request_keeps_whose_prefixes_it_shares);
    tcase_add_test(tests, a_request_counts_for_its_tenant_again);
    tcase_add_test(tests, of_a_key_that_was_taken_away_a_request_counts_for_its_session);
    tcase_add_test(tests, what_waits_for_a_real_model_is_told_from_made_up_names_once_a_worker_has_come);
    tcase_add_test(tests, what_runs_takes_a_large_ones_place_only_if_it_is_large);
    tcase_add_test(tests, whether_a_client_has_it_is_known_to_the_next);
    tcase_add_test(tests, each_request_that_is_taken_over_counts_as_progress);
    tcase_add_test(tests, a_damaged_record_of_an_ended_request_is_dropped_and_told);
}

int main(void)
{
    return run_tests("broker/recover", add);
}
