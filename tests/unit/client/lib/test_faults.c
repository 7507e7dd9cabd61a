/* SPDX-License-Identifier: MIT */
/* One call of libquern's fails, at one place after the other, while a program uses all that it offers: what
 * the program asked for comes whole, or a word says why not, and what it asks for next comes whole.
 *
 * The client's clock runs fast, so that what is lost on the way is asked for again within milliseconds. A few
 * places of each kind are tried, spread over all of them; with $QUERN_FAULTS_ALL each. */

#include <quern.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/files/certificate.h"
#include "common/files/rundir.h"
#include "tests/unit/client/lib/fake_broker.h"
#include "tests/processes/faults/fault.h"
#include "tests/unit/run.h"

#define CLOCK_SPEED 50
#define LONG_MS     (20000 * CLOCK_SPEED) /* by the client's clock */
#define FRAMES      5
#define EACH        UINT_MAX /* of its calls fails */

int __real_clock_gettime(clockid_t which, struct timespec *ret);
int __wrap_clock_gettime(clockid_t which, struct timespec *ret);
int __wrap_clock_gettime(clockid_t which, struct timespec *ret)
{
    static _Thread_local int64_t zero;
    int r = __real_clock_gettime(which, ret);
    int64_t ns = ret->tv_sec * 1000000000ll + ret->tv_nsec;
    if (which != CLOCK_MONOTONIC || r < 0)
        return r;
    zero = zero ? zero : ns;
    ns = zero + (ns - zero) * CLOCK_SPEED;
    *ret = (struct timespec){ns / 1000000000ll, ns % 1000000000ll};
    return 0;
}

/* What was seen to be wrong. Checked once nothing is armed any more: Check allocates too. */
static char wrong[1024];
static bool had_failed; /* when what is being asked for was asked for */

#define EXPECT(condition, ...)                                                                               \
    do {                                                                                                     \
        if (!(condition) && !wrong[0])                                                                       \
            snprintf(wrong, sizeof wrong, __VA_ARGS__);                                                      \
    } while (0)

static void expect_told(int r, const struct quern_error *err, const char *what)
{
    EXPECT(r >= 0 || err->text[0], "%s: %d without a word", what, r);
    EXPECT(r >= 0 || !had_failed, "%s after the fault: %s", what, err->text);
}

static void begin(struct quern_error *err)
{
    had_failed = fault_fired() != NULL;
    err->text[0] = 0;
}

/* ---- requests ---- */

struct answer {
    int ids, ends;
    size_t text_len;
    char text[64];
    enum quern_reason reason;
    char error[32], error_text[256];
};

static void gather(void *arg, const struct quern_output *output)
{
    struct answer *a = arg;
    EXPECT(a->ends == 0, "something comes after the end");
    EXPECT(output->index == (uint64_t)a->ids, "index %d of %d ids", (int)output->index, a->ids);
    for (size_t i = 0; i < output->n_ids; i++)
        EXPECT(output->ids[i] == a->ids++, "id %d is %d", a->ids - 1, output->ids[i]);
    EXPECT(a->text_len + output->text_len < sizeof a->text, "too much text");
    if (a->text_len + output->text_len < sizeof a->text)
        memcpy(a->text + a->text_len, output->text, output->text_len);
    a->text_len += output->text_len;
    if (!output->end)
        return;
    a->ends++;
    a->reason = output->end->reason;
    snprintf(a->error, sizeof a->error, "%s", output->end->error);
    snprintf(a->error_text, sizeof a->error_text, "%s", output->end->text);
}

static void await_answer(struct quern *client, struct answer *a, const char *what)
{
    struct quern_error err = {0};
    for (int i = 0; i < 2000 && a->ends == 0 && !wrong[0]; i++) {
        int r = quern_dispatch(client, 20, &err);
        EXPECT(r >= 0 || err.text[0], "%s: dispatch: %d without a word", what, r);
        if (r < 0)
            break;
    }
    EXPECT(a->ends == 1, "%s: no end came (%s)", what, err.text);
    if (a->ends == 1 && a->reason == QUERN_ERROR) {
        EXPECT(a->error[0] && a->error_text[0], "%s: an error without a word", what);
        EXPECT(!had_failed, "%s after the fault: %s: %s", what, a->error, a->error_text);
    } else if (a->ends == 1 && !(a->reason == QUERN_CANCELLED && a->ids == 0)) { /* it was sent */
        EXPECT(a->ids == 2 * FRAMES && a->text_len == strlen("<0><1><2><3><4>"), "%s: %d ids, %d bytes", what,
               a->ids, (int)a->text_len);
    }
}

/* Sends a request with all that can be copied into one. `text`: its prompt; NULL: messages of a chat. */
static void generate(struct quern *client, const char *text, bool cancel, struct quern_id *ret_id,
                     const char *what)
{
    static const char *const stop[] = {"a", "b"};
    static const struct quern_logit_bias bias = {1, 1};
    static const struct quern_message messages[] = {{.role = "system", .content = "Be brief."},
                                                    {.role = "user", .content = "Hi"}};
    struct answer a = {0};
    struct quern_request request;
    struct quern_error err;
    quern_request_init(&request);
    request.text = text;
    request.messages = text ? NULL : messages;
    request.n_messages = text ? 0 : 2;
    request.stop = stop;
    request.n_stop = 2;
    request.logit_bias = &bias;
    request.n_logit_bias = 1;
    begin(&err);
    int r = quern_generate(client, &request, gather, &a, ret_id, &err);
    expect_told(r, &err, what);
    if (r < 0)
        return;
    if (cancel) {
        r = quern_cancel(client, *ret_id, &err);
        expect_told(r, &err, "cancel");
    }
    await_answer(client, &a, what);
}

static void attach(struct quern *client, struct quern_id id)
{
    struct answer a = {0};
    struct quern_error err;
    begin(&err);
    int r = quern_attach(client, quern_session(client), id, gather, &a, &err);
    expect_told(r, &err, "attach");
    if (r == 0)
        await_answer(client, &a, "attach");
}

/* ---- questions ---- */

static void ask(struct quern *client)
{
    const struct quern_status *status;
    const int32_t *ids;
    size_t n;
    struct quern_error err;
    begin(&err);
    int r = quern_status(client, LONG_MS, &status, &err);
    expect_told(r, &err, "status");
    EXPECT(r < 0 || (status->n_workers == 1 && strcmp(status->workers[0].name, "worker-0") == 0 &&
                     strcmp(status->version, "1.2.3") == 0),
           "status: not what was said");
    begin(&err);
    r = quern_tokenize(client, &(struct quern_text){.text = "abc", .len = 3}, LONG_MS, &ids, &n, &err);
    expect_told(r, &err, "tokenize");
    EXPECT(r < 0 || (n == 3 && ids[0] == 4 && ids[2] == 6), "tokenize: not what was said");
}

/* ---- the whole ---- */

static struct quern *connect_to(const char *folder)
{
    struct quern *client = NULL;
    struct quern_error err;
    size_t n = 0;
    for (int tries = 0; !client && tries < 2; tries++) {
        begin(&err);
        int r = quern_connect(folder, LONG_MS, &client, &err);
        expect_told(r, &err, "connect");
        EXPECT(r == 0 || !client, "connect: a client and an error");
    }
    EXPECT(client, "connect: not even again: %s", err.text);
    const struct quern_model *models = client ? quern_models(client, &n) : NULL;
    EXPECT(!client || (n == 1 && strcmp(models[0].name, "fake") == 0), "%zu models", n);
    return client;
}

/* Its first request goes through a restart of the broker. */
static void use_all(const char *folder)
{
    struct quern *client = connect_to(folder);
    struct quern_id id = {{0}}, other;
    if (!client)
        return;
    quern_set_patience(client, LONG_MS);
    generate(client, "Hi", false, &id, "a request over a restart");
    generate(client, NULL, true, &other, "a chat that is cancelled");
    if (id.bytes[0] | id.bytes[1] | id.bytes[2])
        attach(client, id);
    ask(client);
    generate(client, "Hi", false, &other, "one more request");
    quern_free(client);
}

static void use_keys(const char *folder)
{
    char key[RUNDIR_PATH_MAX + 16];
    struct quern *client = NULL;
    struct quern_error err;
    snprintf(key, sizeof key, "%s/key", folder);
    for (int made = 0, tries = 0; made < 2 && tries < 3; tries++) {
        begin(&err);
        int r = quern_connect_begin("tcp://127.0.0.1:1", key, made ? key : NULL, &client, &err);
        expect_told(r, &err, "connect with keys");
        EXPECT(r == 0 || !client, "connect with keys: a client and an error");
        made += r == 0;
        client = quern_free(client);
    }
}

/* What comes first of all comes in a page. */
static void use_replay(const char *folder)
{
    struct quern *client = connect_to(folder);
    struct quern_id id;
    if (client)
        generate(client, "Hi", false, &id, "a request that is all replayed");
    quern_free(client);
}

static void use_parts(const char *folder)
{
    static char text[3 * 4096];
    struct quern *client = connect_to(folder);
    struct quern_id id;
    memset(text, 'a', sizeof text - 1);
    if (client)
        generate(client, text, false, &id, "a request in parts");
    quern_free(client);
}

static void make_keys(const char *folder)
{
    struct certificate pair = {
        /* of the manual of zmq_curve */
        .public_key = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID",
        .secret_key = "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs",
    };
    ck_assert_int_eq(certificate_write(folder, "key", &pair, NULL), 0);
}

/* True when the n-th call of the kind was made. */
static bool run_with(enum fault_kind kind, unsigned n, void (*use)(const char *folder))
{
    static const int over_a_restart[] = {0, 2, STEP_FORGET, 3, STEP_END, STEP_STOP};
    static const int nothing_live[] = {STEP_END, STEP_STOP};
    static const int with_a_gap[] = {0, 2, 1, 4, STEP_END, STEP_STOP};
    char folder[RUNDIR_PATH_MAX + 1];
    const struct fake_config config = {.n_frames = FRAMES,
                                       .script = use == use_replay ? nothing_live : over_a_restart,
                                       .next_script = with_a_gap,
                                       .page_frames = 2,
                                       .cancels_lost = 1,
                                       .takes_parts = use == use_parts,
                                       .says_of = true};
    struct fake_broker *broker = fake_broker_new(&config, folder);
    if (use == use_keys)
        make_keys(folder);
    wrong[0] = 0;
    fault_arm(kind, n, false);
    use(folder);
    fault_disarm();
    fake_broker_free(broker);
    if (getenv("QUERN_FAULTS_TOLD"))
        fprintf(stderr, "%s %u: %s\n", fault_kind_name(kind), n, fault_fired() ? fault_fired() : "none");
    ck_assert_msg(!wrong[0], "%s %u (%s): %s", fault_kind_name(kind), n,
                  fault_fired() ? fault_fired() : "nothing failed", wrong);
    return fault_fired() != NULL;
}

static void run_kind(enum fault_kind kind, unsigned few, void (*use)(const char *folder))
{
    unsigned step = 1, n = 0;
    bool all = getenv("QUERN_FAULTS_ALL") != NULL;
    for (unsigned k = 1; run_with(kind, k, use); k += step, n++)
        if (!all && n > 0 && n % few == 0)
            step *= 2;
    ck_assert_uint_gt(n, 0);
}

START_TEST(a_client_lacks_memory)
{
    run_kind(FAULT_MEMORY, 10, use_all);
    run_kind(FAULT_MEMORY, 4, use_keys);
    run_kind(FAULT_MEMORY, 10, use_replay);
    run_kind(FAULT_MEMORY, EACH, use_parts);
}
END_TEST

/* The table of requests grows now and then: the second piece of memory that such a request asks for. */
START_TEST(a_request_that_finds_no_place_is_refused_and_the_others_stay)
{
    struct quern *client;
    struct quern_error err;
    struct quern_request request;
    enum { MANY = 1000 };
    int refused = 0;
    ck_assert_int_eq(quern_connect_begin("ipc:///nobody/is/here", NULL, NULL, &client, &err), 0);
    quern_request_init(&request);
    request.text = "Hi";
    for (int i = 0; i < MANY; i++) {
        err.text[0] = 0;
        fault_arm(FAULT_MEMORY, 2, false);
        int r = quern_generate(client, &request, NULL, NULL, NULL, &err);
        fault_disarm();
        ck_assert_uint_eq(quern_active(client), (size_t)(r == 0 ? i + 1 : i));
        ck_assert(r == 0 || err.text[0]);
        refused += r < 0;
        if (r < 0)
            ck_assert_int_eq(quern_generate(client, &request, NULL, NULL, NULL, &err), 0);
    }
    ck_assert_int_gt(refused, 0);
    ck_assert_uint_eq(quern_active(client), MANY);
    quern_free(client);
}
END_TEST

START_TEST(a_client_lacks_sockets_and_descriptors)
{
    run_kind(FAULT_SOCKETS, 6, use_all);
    run_kind(FAULT_SOCKETS, 4, use_keys);
    run_kind(FAULT_DESCRIPTORS, 4, use_keys);
}
END_TEST

START_TEST(what_a_client_says_does_not_go_out)
{
    run_kind(FAULT_SENDING, 20, use_all);
}
END_TEST

START_TEST(a_clients_waits_and_receipts_are_cut_short)
{
    run_kind(FAULT_RECEIVING, 3, use_all);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 600);
    tcase_add_test(tests, a_client_lacks_memory);
    tcase_add_test(tests, a_request_that_finds_no_place_is_refused_and_the_others_stay);
    tcase_add_test(tests, a_client_lacks_sockets_and_descriptors);
    tcase_add_test(tests, what_a_client_says_does_not_go_out);
    tcase_add_test(tests, a_clients_waits_and_receipts_are_cut_short);
}

int main(void)
{
    return run_tests("faults", add);
}
