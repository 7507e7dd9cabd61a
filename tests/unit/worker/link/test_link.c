/* SPDX-License-Identifier: MIT */
/* The worker's end of the link and of the stream, with a broker that the tests play. The clock is the tests'
 * own; sockets are of one process. */

#include "worker/link/link.h"
#include "tests/unit/run.h"

#include <poll.h>
#include <string.h>

#include "common/clock.h"

#define MS CLOCK_NS_PER_MS

static void *zmq, *broker, *subscriber;
static struct stream stream;
static struct link worker;
static struct message_decoder *decoder;
static uint8_t routing_id[64];
static size_t routing_id_len;

static const struct listener at_link = {-1, "inproc://link"}, at_stream = {-1, "inproc://stream"};

static void open_link(void)
{
    struct message self = {.kind = MESSAGE_REGISTER};
    self.register_.proto = (struct version_range){1, 1};
    self.register_.name = BYTES_LITERAL("w0");
    self.register_.incarnation = 7;
    self.register_.pid = 1;
    self.register_.slots = 4;
    self.register_.stream = bytes_of_string(stream.endpoint);
    self.register_.model = BYTES_LITERAL("tiny");
    self.register_.digest = BYTES_LITERAL("0123456789abcdef");
    self.register_.context = 100;
    ck_assert_int_eq(link_open(&worker, zmq, &at_link, &stream, &self, NULL), 0);
}

static void set_up(void)
{
    const int wait_ms = 20000;
    zmq = zmq_ctx_new();
    broker = zmq_socket(zmq, ZMQ_ROUTER);
    subscriber = zmq_socket(zmq, ZMQ_SUB);
    zmq_setsockopt(broker, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    zmq_setsockopt(subscriber, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    ck_assert_int_eq(stream_open(&stream, zmq, &at_stream, NULL), 0);
    ck_assert_str_eq(stream.endpoint, "inproc://stream");
    ck_assert_int_eq(zmq_connect(subscriber, "inproc://stream"), 0);
    ck_assert_int_eq(message_decoder_new(&decoder), 0);
    open_link();
    ck_assert_int_eq(zmq_connect(broker, "inproc://link"), 0);
}

static void tear_down(void)
{
    const int linger = 0;
    link_close(&worker);
    stream_close(&stream);
    zmq_setsockopt(broker, ZMQ_LINGER, &linger, sizeof linger);
    zmq_close(broker);
    zmq_close(subscriber);
    zmq_ctx_term(zmq);
    decoder = message_decoder_free(decoder);
}

/* What the worker says next. */
static struct message heard(void)
{
    static uint8_t bytes[4096];
    struct message message;
    struct error err = {0};
    int n = zmq_recv(broker, routing_id, sizeof routing_id, 0);
    ck_assert_int_gt(n, 0);
    routing_id_len = (size_t)n;
    n = zmq_recv(broker, bytes, sizeof bytes, 0);
    ck_assert_int_ge(n, 0);
    ck_assert_msg(message_decode(decoder, bytes, (size_t)n, &message, &err) == 0, "%s", err.text);
    return message;
}

static void heard_nothing(void)
{
    uint8_t byte;
    ck_assert_int_lt(zmq_recv(broker, &byte, 1, ZMQ_DONTWAIT), 0);
}

static void say_bytes(struct bytes bytes)
{
    ck_assert_int_ge(zmq_send(broker, routing_id, routing_id_len, ZMQ_SNDMORE), 0);
    ck_assert_int_ge(zmq_send(broker, bytes.data, bytes.len, 0), 0);
}

static void say(const struct message *message)
{
    struct buffer bytes = {0};
    struct error err = {0};
    ck_assert_msg(message_encode_or_say(message, &bytes, &err) == 0, "%s", err.text);
    say_bytes((struct bytes){bytes.data, bytes.len});
    buffer_deinit(&bytes);
}

/* As the worker's loop does. */
static void wait_for_news(struct socket_news *news)
{
    struct pollfd item = socket_news_item(news);
    poll(&item, 1, news->look ? 0 : 1);
    socket_news_polled(news, &item);
}

/* The link takes all that was said, of which nothing is its owner's; a cancel behind it tells the end. */
static void link_takes(void)
{
    const struct message end = {.kind = MESSAGE_CANCEL}, *found = NULL;
    say(&end);
    for (int i = 0; i < 20000 && !(found = link_receive(&worker)); i++)
        wait_for_news(&worker.news);
    ck_assert(found && found->kind == MESSAGE_CANCEL);
}

static bool tend(uint64_t now)
{
    const struct link_load load = {
        .active = 2, .waiting = 3, .kv_free = 5, .waiting_tokens = 8, .draining = true};
    return link_tend(&worker, &load, now);
}

static void say_registered(uint64_t boot, uint32_t heartbeat_ms)
{
    struct message message = {.kind = MESSAGE_REGISTER_OK};
    message.register_ok.boot = boot;
    memset(&message.register_ok.subscription, 'm', sizeof message.register_ok.subscription);
    message.register_ok.heartbeat_ms = heartbeat_ms;
    say(&message);
    link_takes();
}

/* Until the stream knows of so many subscriptions, to everything or with a mark. */
static void stream_knows(int everything, uint32_t marks)
{
    for (int i = 0; i < 20000 && (stream.n_everything != everything || stream.n_marks != marks); i++) {
        stream_read(&stream);
        wait_for_news(&stream.news);
    }
    ck_assert_int_eq(stream.n_everything, everything);
    ck_assert_uint_eq(stream.n_marks, marks);
}

static void subscribe(const char *prefix, size_t len)
{
    ck_assert_int_eq(zmq_setsockopt(subscriber, ZMQ_SUBSCRIBE, prefix, len), 0);
}

static const char mark[] = "mmmmmmmmmmmmmmmm"; /* what say_registered says */

/* Registered, heard and ready at `now`; the next heartbeat is due then. */
static void become_ready(uint64_t now, uint32_t heartbeat_ms)
{
    ck_assert(!tend(now));
    ck_assert_int_eq(heard().kind, MESSAGE_REGISTER);
    say_registered(1, heartbeat_ms);
    subscribe(mark, 16);
    stream_knows(0, 1);
    ck_assert(tend(now));
    const struct message ready = heard();
    ck_assert_int_eq(ready.kind, MESSAGE_READY);
    ck_assert_uint_eq(ready.ready.incarnation, 7);
    ck_assert_int_eq(heard().kind, MESSAGE_HEARTBEAT);
}

static int publish(uint8_t topic)
{
    uint8_t whole[PROTO_TOPIC_BYTES];
    struct message frame = {.kind = MESSAGE_FRAME};
    memset(whole, topic, sizeof whole);
    frame.frame.text = BYTES_LITERAL("text");
    return stream_publish(&stream, whole, &frame);
}

/* ---- registering ---- */

START_TEST(a_registration_is_repeated_until_it_is_answered)
{
    publish('a'); /* frames that the broker has not seen are told */
    publish('a');
    window_ack(&stream.window, 1);
    ck_assert(link_is_due(&worker, 0));
    uint64_t now = 1000 * MS;
    tend(now);
    const struct message message = heard();
    ck_assert_int_eq(message.kind, MESSAGE_REGISTER);
    ck_assert(bytes_equal(message.register_.name, BYTES_LITERAL("w0")));
    ck_assert(message.register_.incarnation == 7 && message.register_.slots == 4);
    ck_assert(message.register_.wseq == 2 && message.register_.acked == 1);
    for (int i = 0; i < 4; i++) { /* every second at most */
        const uint64_t due = link_due_ns(&worker);
        ck_assert_uint_gt(due, now);
        ck_assert_uint_le(due - now, 1000 * MS);
        ck_assert(!link_is_due(&worker, due - 1) && link_is_due(&worker, due));
        tend(due - 1);
        heard_nothing();
        tend(due);
        ck_assert_int_eq(heard().kind, MESSAGE_REGISTER);
        now = due;
    }
    ck_assert_uint_eq(link_due_ns(&worker) - now, 1000 * MS);
}
END_TEST

START_TEST(a_worker_is_ready_when_its_stream_is_heard)
{
    tend(1000 * MS);
    heard();
    say_registered(1, 100);
    ck_assert(worker.registered);
    ck_assert(!tend(1000 * MS)); /* nobody listens */
    ck_assert_int_eq(heard().kind, MESSAGE_HEARTBEAT);
    subscribe("nnnnnnnnnnnnnnnn", 16);
    stream_knows(0, 1);
    ck_assert(!link_is_due(&worker, 1001 * MS));
    ck_assert(!tend(1001 * MS)); /* who does is another */
    subscribe(mark, 16);
    stream_knows(0, 2);
    ck_assert(link_is_due(&worker, 1001 * MS));
    ck_assert(tend(1001 * MS));
    ck_assert_int_eq(heard().kind, MESSAGE_READY);
    ck_assert(!tend(1002 * MS)); /* once */
    heard_nothing();
}
END_TEST

START_TEST(a_broker_that_knows_the_worker_not_is_told_again_soon)
{
    become_ready(1000 * MS, 100);
    struct message message = {.kind = MESSAGE_ERROR};
    message.error.error = PROTO_BAD_REQUEST;
    say(&message);
    link_takes();
    ck_assert(worker.registered && worker.ready); /* any other error is only logged */
    message.error.error = PROTO_HELLO_REQUIRED;
    say(&message);
    link_takes();
    ck_assert(!worker.registered && !worker.ready);
    uint64_t now = 1010 * MS, wait = 50 * MS;
    for (int i = 0; i < 8; i++) {
        ck_assert(!tend(now));
        ck_assert_int_eq(heard().kind, MESSAGE_REGISTER);
        say(&message); /* says nothing new */
        link_takes();
        ck_assert_uint_eq(link_due_ns(&worker) - now, wait);
        now += wait;
        wait = 2 * wait < 1000 * MS ? 2 * wait : 1000 * MS;
    }
    say_registered(2, 100);
    ck_assert(tend(now)); /* the mark is heard still */
    ck_assert_int_eq(heard().kind, MESSAGE_READY);
}
END_TEST

START_TEST(a_pool_that_takes_no_worker_of_this_model_says_why)
{
    become_ready(1000 * MS, 100);
    struct message message = {.kind = MESSAGE_ERROR};
    message.error.error = PROTO_CONFLICT;
    message.error.text = BYTES_LITERAL("model \"m\": this name is an alias");
    say(&message);
    link_takes();
    ck_assert_str_eq(worker.refusal.text, ""); /* it has been taken already */
    message.error.error = PROTO_HELLO_REQUIRED;
    say(&message);
    link_takes();
    message.error.error = PROTO_CONFLICT;
    say(&message);
    link_takes();
    ck_assert_str_eq(worker.refusal.text, "model \"m\": this name is an alias");
}
END_TEST

START_TEST(a_listener_to_everything_that_goes_is_noticed)
{
    tend(1000 * MS);
    heard();
    say_registered(1, 100);
    subscribe("", 0);
    stream_knows(1, 0);
    ck_assert(tend(1000 * MS));
    ck_assert_int_eq(heard().kind, MESSAGE_READY);
    ck_assert_int_eq(heard().kind, MESSAGE_HEARTBEAT);
    ck_assert(!link_is_due(&worker, 1001 * MS));
    ck_assert_int_eq(zmq_setsockopt(subscriber, ZMQ_UNSUBSCRIBE, "", 0), 0);
    stream_knows(0, 0);
    ck_assert(link_is_due(&worker, 1001 * MS));
    ck_assert(!tend(1001 * MS));
    ck_assert_int_eq(heard().kind, MESSAGE_REGISTER);
}
END_TEST

START_TEST(without_a_broker_nothing_waits_and_nothing_ends)
{
    struct link lonely;
    const struct message pong = {.kind = MESSAGE_PONG};
    const struct link_load load = {0};
    const struct listener place = {-1, "inproc://lonely"};
    ck_assert_int_eq(link_open(&lonely, zmq, &place, &stream, &worker.introduction, NULL), 0);
    ck_assert(!link_tend(&lonely, &load, 1000 * MS));
    ck_assert_ptr_null(link_receive(&lonely));
    ck_assert(!lonely.news.look);
    ck_assert(!link_is_due(&lonely, 1001 * MS));
    ck_assert(!link_send(&lonely, &pong));
    link_must_send(&lonely, &pong); /* and the process goes on */
    void *late = zmq_socket(zmq, ZMQ_DEALER);
    const int wait_ms = 20000;
    zmq_setsockopt(late, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    ck_assert_int_eq(zmq_connect(late, "inproc://lonely"), 0);
    wait_for_news(&lonely.news);
    ck_assert(lonely.news.look);                /* the loop is woken */
    ck_assert(link_is_due(&lonely, 1001 * MS)); /* at once, not when it would have tried again */
    ck_assert(!link_tend(&lonely, &load, 1001 * MS));
    uint8_t bytes[4096];
    struct message message;
    int n = zmq_recv(late, bytes, sizeof bytes, 0);
    ck_assert_int_gt(n, 0);
    ck_assert_int_eq(message_decode(decoder, bytes, (size_t)n, &message, NULL), 0);
    ck_assert_int_eq(message.kind, MESSAGE_REGISTER); /* the first that it hears: nothing had piled up */
    ck_assert(!link_is_due(&lonely, 1002 * MS));
    zmq_close(late);
    link_close(&lonely);
}
END_TEST

/* ---- what is said and heard ---- */

START_TEST(heartbeats_tell_of_the_work_in_hand)
{
    become_ready(1000 * MS, 100);
    publish('a');
    ck_assert_uint_eq(link_due_ns(&worker), 1100 * MS);
    ck_assert(!tend(1100 * MS - 1));
    heard_nothing();
    ck_assert(!tend(1100 * MS));
    const struct message message = heard();
    ck_assert_int_eq(message.kind, MESSAGE_HEARTBEAT);
    ck_assert(message.heartbeat.ref == 2 && message.heartbeat.wseq == 1);
    ck_assert(message.heartbeat.active == 2 && message.heartbeat.waiting == 3);
    ck_assert(message.heartbeat.kv_free == 5 && message.heartbeat.waiting_tokens == 8);
    ck_assert(message.heartbeat.draining);
    link_hurry(&worker);
    ck_assert(link_is_due(&worker, 1101 * MS));
    tend(1101 * MS);
    ck_assert_uint_eq(heard().heartbeat.ref, 3);
    ck_assert_uint_eq(link_due_ns(&worker), 1201 * MS);
}
END_TEST

START_TEST(a_heartbeat_every_ten_milliseconds_is_the_most)
{
    become_ready(1000 * MS, 10);
    ck_assert_uint_eq(link_due_ns(&worker), 1010 * MS);
    say_registered(1, 9);
    ck_assert_uint_eq(worker.heartbeat_ns, 10 * MS);
    say_registered(1, 11);
    ck_assert_uint_eq(worker.heartbeat_ns, 11 * MS);
}
END_TEST

START_TEST(pings_are_answered_and_count_as_hearing)
{
    become_ready(1000 * MS, 100);
    struct message message = {.kind = MESSAGE_PING};
    message.ping.ref = 99;
    worker.heard_ns = 0;
    say(&message);
    link_takes();
    ck_assert_uint_gt(worker.heard_ns, 0);
    const struct message pong = heard();
    ck_assert_int_eq(pong.kind, MESSAGE_PONG);
    ck_assert_uint_eq(pong.pong.ref, 99);
    message = (struct message){.kind = MESSAGE_PONG};
    say(&message);
    message = (struct message){.kind = MESSAGE_CANCEL_OK}; /* no business of a worker */
    say(&message);
    link_takes();
    heard_nothing();
}
END_TEST

START_TEST(an_assignment_that_cannot_be_read_is_answered)
{
    become_ready(1000 * MS, 100);
    say_bytes(BYTES_LITERAL("noise"));
    link_takes();
    heard_nothing();
    struct message message = {.kind = MESSAGE_CANCEL};
    struct buffer bytes = {0};
    memset(&message.cancel.id, 'i', sizeof message.cancel.id);
    ck_assert_int_eq(message_encode(&message, &bytes), 0);
    char *kind = memmem(bytes.data, bytes.len, "cancel", 6);
    ck_assert_ptr_nonnull(kind);
    memcpy(kind, "assign", 6); /* which needs more than an id */
    say_bytes((struct bytes){bytes.data, bytes.len});
    buffer_deinit(&bytes);
    link_takes();
    const struct message answer = heard();
    ck_assert_int_eq(answer.kind, MESSAGE_ERROR);
    ck_assert(answer.error.has_id && answer.error.error == PROTO_BAD_REQUEST);
    ck_assert_mem_eq(&answer.error.id, &message.cancel.id, sizeof message.cancel.id);
    ck_assert_uint_gt(answer.error.text.len, 0);
}
END_TEST

START_TEST(messages_of_several_parts_are_dropped_whole)
{
    become_ready(1000 * MS, 100);
    struct message message = {.kind = MESSAGE_PING};
    struct buffer bytes = {0};
    ck_assert_int_eq(message_encode(&message, &bytes), 0);
    ck_assert_int_ge(zmq_send(broker, routing_id, routing_id_len, ZMQ_SNDMORE), 0);
    ck_assert_int_ge(zmq_send(broker, bytes.data, bytes.len, ZMQ_SNDMORE), 0);
    ck_assert_int_ge(zmq_send(broker, bytes.data, bytes.len, 0), 0);
    buffer_deinit(&bytes);
    link_takes();
    heard_nothing();
}
END_TEST

START_TEST(a_kept_message_outlives_the_next)
{
    become_ready(1000 * MS, 100);
    struct message message = {.kind = MESSAGE_TOKENIZE};
    message.tokenize.ref = 5;
    message.tokenize.has_text = true;
    message.tokenize.text = BYTES_LITERAL("the text");
    say(&message);
    const struct message *found = NULL;
    for (int i = 0; i < 20000 && !(found = link_receive(&worker)); i++)
        wait_for_news(&worker.news);
    ck_assert(found && found->kind == MESSAGE_TOKENIZE);
    struct received *kept = link_keep(&worker);
    ck_assert_ptr_eq(&kept->message, found);
    link_takes();
    ck_assert_uint_eq(kept->message.tokenize.ref, 5);
    ck_assert(bytes_equal(kept->message.tokenize.text, BYTES_LITERAL("the text")));
    ck_assert_ptr_null(received_free(kept));
    ck_assert_ptr_null(received_free(NULL));
    const struct message *const none = link_receive(&worker);
    ck_assert_ptr_null(none);
}
END_TEST

/* ---- the stream ---- */

/* The number of the next frame that the subscriber gets; 0: there is none. */
static uint64_t received_wseq(bool wait)
{
    static uint8_t topic[64], bytes[512];
    struct message message;
    int n = zmq_recv(subscriber, topic, sizeof topic, wait ? 0 : ZMQ_DONTWAIT);
    if (n < 0)
        return 0;
    ck_assert_int_eq(n, PROTO_TOPIC_BYTES);
    n = zmq_recv(subscriber, bytes, sizeof bytes, 0);
    ck_assert_int_gt(n, 0);
    ck_assert_int_eq(message_decode(decoder, bytes, (size_t)n, &message, NULL), 0);
    ck_assert(bytes_equal(message.frame.text, BYTES_LITERAL("text")));
    return message.frame.wseq;
}

START_TEST(frames_are_sent_and_sent_again)
{
    subscribe("b", 1);
    subscribe("c", 1);
    subscribe(mark, 16);
    stream_knows(0, 1);
    publish('a'); /* to nobody */
    publish('b');
    publish('c');
    publish('b');
    for (uint64_t wseq = 2; wseq <= 4; wseq++)
        ck_assert_uint_eq(received_wseq(true), wseq);
    stream_resend(&stream, 3);
    ck_assert_uint_eq(received_wseq(true), 3);
    ck_assert_uint_eq(received_wseq(true), 4);
    window_ack(&stream.window, 3);
    stream_resend(&stream, 0); /* what was acknowledged is gone */
    ck_assert_uint_eq(received_wseq(true), 4);
    stream_resend(&stream, 3);
    ck_assert_uint_eq(received_wseq(true), 4);
    stream_resend(&stream, 5);
    publish('b');
    ck_assert_uint_eq(received_wseq(true), 5);
    ck_assert_uint_eq(received_wseq(false), 0);
}
END_TEST

/* Of marks the last sixteen are known; names shorter than one are none. */
START_TEST(a_stream_knows_who_hears_it)
{
    char name[17] = "0123456789abcdef";
    struct id128 id;
    ck_assert(!stream_has_listener(&stream));
    subscribe(name, 15);
    for (char i = 0; i < 17; i++) {
        name[0] = (char)('A' + i);
        subscribe(name, 16);
    }
    stream_knows(0, 17);
    memcpy(&id, name, sizeof id);
    ck_assert(stream_is_heard(&stream, &id));
    ((char *)&id)[0] = 'B';
    ck_assert(stream_is_heard(&stream, &id));
    ((char *)&id)[0] = 'A'; /* the seventeenth came in its place */
    ck_assert(!stream_is_heard(&stream, &id));
    ck_assert(!stream_has_listener(&stream));
    subscribe("", 0);
    stream_knows(1, 17);
    ck_assert(stream_is_heard(&stream, &id) && stream_has_listener(&stream));
}
END_TEST

START_TEST(an_endpoint_that_cannot_be_is_named)
{
    struct stream other;
    struct link link;
    struct message self = {.kind = MESSAGE_REGISTER};
    struct error err = {0};
    ck_assert_int_lt(stream_open(&other, zmq, &at_stream, &err), 0); /* taken */
    ck_assert_ptr_nonnull(strstr(err.text, "inproc://stream: "));
    ck_assert_ptr_null(other.socket);
    ck_assert_int_lt(link_open(&link, zmq, &(struct listener){-1, "nowhere"}, &stream, &self, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.text, "nowhere: "));
    link_close(&link);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_registration_is_repeated_until_it_is_answered);
    tcase_add_test(tests, a_worker_is_ready_when_its_stream_is_heard);
    tcase_add_test(tests, a_broker_that_knows_the_worker_not_is_told_again_soon);
    tcase_add_test(tests, a_pool_that_takes_no_worker_of_this_model_says_why);
    tcase_add_test(tests, a_listener_to_everything_that_goes_is_noticed);
    tcase_add_test(tests, without_a_broker_nothing_waits_and_nothing_ends);
    tcase_add_test(tests, heartbeats_tell_of_the_work_in_hand);
    tcase_add_test(tests, a_heartbeat_every_ten_milliseconds_is_the_most);
    tcase_add_test(tests, pings_are_answered_and_count_as_hearing);
    tcase_add_test(tests, an_assignment_that_cannot_be_read_is_answered);
    tcase_add_test(tests, messages_of_several_parts_are_dropped_whole);
    tcase_add_test(tests, a_kept_message_outlives_the_next);
    tcase_add_test(tests, frames_are_sent_and_sent_again);
    tcase_add_test(tests, a_stream_knows_who_hears_it);
    tcase_add_test(tests, an_endpoint_that_cannot_be_is_named);
}

int main(void)
{
    return run_tests("link", add);
}
