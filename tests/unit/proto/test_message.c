/* SPDX-License-Identifier: MIT */
#include "proto/message.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <math.h>
#include <msgpack.h>
#include <stdlib.h>

static struct message_decoder *decoder;
static struct buffer wire;

static void setup(void)
{
    ck_assert_int_eq(message_decoder_new(&decoder), 0);
}

static void teardown(void)
{
    decoder = message_decoder_free(decoder);
    buffer_deinit(&wire);
}

static struct message decoded(const void *data, size_t len)
{
    struct message message;
    struct error err = {0};
    int r = message_decode(decoder, data, len, &message, &err);
    ck_assert_msg(r == 0, "%d: %s", r, err.text);
    return message;
}

static struct message sent_and_received(const struct message *message)
{
    wire.len = 0;
    ck_assert_int_eq(message_encode(message, &wire), 0);
    return decoded(wire.data, wire.len);
}

static void check_refused(const void *data, size_t len, const char *reason)
{
    struct message message = {.kind = MESSAGE_BYE};
    struct error err = {0};
    ck_assert_int_eq(message_decode(decoder, data, len, &message, &err), MESSAGE_E_MALFORMED);
    ck_assert_str_eq(err.text, reason);
    ck_assert_int_eq(message.kind, MESSAGE_BYE);
}

#define CHECK_REFUSED(literal, reason) check_refused(literal, sizeof(literal) - 1, reason)

static struct message a_generate(void)
{
    struct message message = {.kind = MESSAGE_GENERATE};
    message.generate.id.bytes[0] = 9;
    generation_defaults(&message.generate.generation);
    message.generate.generation.prompt.text = BYTES_LITERAL("Once");
    return message;
}

START_TEST(a_frame_comes_back_as_it_was_sent)
{
    int32_t ids[] = {0, 127, 128, 65536, INT32_MAX};
    struct token_logprob logprobs[10];
    for (int i = 0; i < 10; i++)
        logprobs[i] = (struct token_logprob){i, -0.5f * (float)i};
    struct message sent = {.kind = MESSAGE_FRAME};
    sent.frame = (struct frame){.id = {{1, 2, 3}},
                                .epoch = {UINT64_MAX, 3},
                                .seq = 1ull << 40,
                                .off = 17,
                                .ids = {ids, 5},
                                .text = BYTES_LITERAL("größe \xf0\x9f\x8c\xbe"),
                                .logprobs = {2, logprobs},
                                .wseq = 12,
                                .has_end = true};
    sent.frame.end = (struct ending){.reason = END_ERROR,
                                     .error = PROTO_MODEL_ERROR,
                                     .text = BYTES_LITERAL("no finite logit"),
                                     .usage = {5, 4, 3, 2, 1},
                                     .timing = {1.5, 2, 0.25, 0.5, 0.75, 0.125}};
    struct message got = sent_and_received(&sent);
    ck_assert_int_eq(got.kind, MESSAGE_FRAME);
    ck_assert_mem_eq(got.frame.id.bytes, sent.frame.id.bytes, 16);
    ck_assert_int_eq(epoch_compare(got.frame.epoch, sent.frame.epoch), 0);
    ck_assert_uint_eq(got.frame.seq, 1ull << 40);
    ck_assert_uint_eq(got.frame.off, 17);
    ck_assert_uint_eq(got.frame.ids.n, 5);
    ck_assert_mem_eq(got.frame.ids.items, ids, sizeof ids);
    ck_assert(bytes_equal(got.frame.text, sent.frame.text));
    ck_assert_uint_eq(got.frame.logprobs.width, 2);
    ck_assert_mem_eq(got.frame.logprobs.items, logprobs, sizeof logprobs);
    ck_assert_uint_eq(got.frame.wseq, 12);
    ck_assert(got.frame.has_end);
    ck_assert_int_eq(got.frame.end.error, PROTO_MODEL_ERROR);
    ck_assert(bytes_equal(got.frame.end.text, sent.frame.end.text));
    ck_assert_uint_eq(got.frame.end.usage.output_tokens, 3);
    ck_assert_uint_eq(got.frame.end.usage.drafted_tokens, 2);
    ck_assert_uint_eq(got.frame.end.usage.accepted_tokens, 1);
    ck_assert_double_eq(got.frame.end.timing.decode_ms, 0.25);
    ck_assert_double_eq(got.frame.end.timing.prepare_ms, 0.5);
    ck_assert_double_eq(got.frame.end.timing.wait_ms, 0.75);
    ck_assert_double_eq(got.frame.end.timing.lookup_ms, 0.125);
}
END_TEST

START_TEST(an_id_takes_the_shortest_form_there_is)
{
    static const struct {
        int32_t id;
        const char *bytes;
        size_t len;
    } cases[] = {{0, "\x00", 1},
                 {127, "\x7f", 1},
                 {128, "\xcc\x80", 2},
                 {255, "\xcc\xff", 2},
                 {256, "\xcd\x01\x00", 3},
                 {65535, "\xcd\xff\xff", 3},
                 {65536, "\xce\x00\x01\x00\x00", 5},
                 {INT32_MAX, "\xce\x7f\xff\xff\xff", 5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct message sent = {.kind = MESSAGE_FRAME};
        struct buffer bytes = {0}, part = {0};
        sent.frame.ids = (struct id_list){&cases[i].id, 1};
        ck_assert_int_eq(message_encode(&sent, &bytes), 0);
        buffer_append(&part, "\xa3ids\x91", 5);
        buffer_append(&part, cases[i].bytes, cases[i].len);
        ck_assert_ptr_nonnull(memmem(bytes.data, bytes.len, part.data, part.len));
        ck_assert_int_eq(sent_and_received(&sent).frame.ids.items[0], cases[i].id);
        buffer_deinit(&bytes);
        buffer_deinit(&part);
    }
}
END_TEST

START_TEST(each_form_of_an_id_is_read)
{
    static const char minimal[] = "\x83\xa1k\xa8generate\xa2id\xc4\x10"
                                  "0123456789abcdef\xa6prompt\x96"
                                  "\x07\xcc\x07\xcd\x00\x07\xce\x00\x00\x00\x07\xd1\x00\x07"
                                  "\xcf\x00\x00\x00\x00\x00\x00\x00\x07";
    struct id_list ids = decoded(minimal, sizeof minimal - 1).generate.generation.prompt.ids;
    ck_assert_uint_eq(ids.n, 6);
    for (size_t i = 0; i < ids.n; i++)
        ck_assert_int_eq(ids.items[i], 7);
}
END_TEST

START_TEST(each_form_of_a_prompt_comes_back)
{
    struct message sent = a_generate(), got;
    struct prompt *prompt = &sent.generate.generation.prompt;
    prompt->special = true;
    got = sent_and_received(&sent);
    ck_assert_int_eq(got.generate.generation.prompt.form, PROMPT_TEXT);
    ck_assert(got.generate.generation.prompt.special);
    ck_assert(bytes_equal(got.generate.generation.prompt.text, prompt->text));

    int32_t ids[] = {5, 6};
    *prompt = (struct prompt){.form = PROMPT_IDS, .ids = {ids, 2}};
    got = sent_and_received(&sent);
    ck_assert_int_eq(got.generate.generation.prompt.form, PROMPT_IDS);
    ck_assert_uint_eq(got.generate.generation.prompt.ids.n, 2);
    ck_assert_int_eq(got.generate.generation.prompt.ids.items[1], 6);

    struct chat_message turns[] = {{.role = BYTES_LITERAL("system"), .content = BYTES_LITERAL("")},
                                   {.role = BYTES_LITERAL("user"), .content = BYTES_LITERAL("Hello")}};
    *prompt = (struct prompt){.form = PROMPT_CHAT};
    prompt->chat.items = turns;
    prompt->chat.n = 2;
    got = sent_and_received(&sent);
    ck_assert_int_eq(got.generate.generation.prompt.form, PROMPT_CHAT);
    ck_assert_uint_eq(got.generate.generation.prompt.chat.n, 2);
    ck_assert(bytes_equal(got.generate.generation.prompt.chat.items[1].content, turns[1].content));
}
END_TEST

START_TEST(what_a_generate_leaves_out_becomes_the_default)
{
    static const char minimal[] = "\x83\xa6prompt\xa2Hi\xa1k\xa8generate\xa2id\xc4\x10"
                                  "0123456789abcdef";
    struct generation expected;
    generation_defaults(&expected);
    struct generation got = decoded(minimal, sizeof minimal - 1).generate.generation;
    ck_assert_uint_eq(got.max_tokens, 0);
    ck_assert_uint_eq(got.max_tokens, expected.max_tokens);
    /* Those of sampling stay left out, until somebody knows the model. */
    ck_assert_double_nan(got.sampling.temperature);
    ck_assert_uint_eq(got.sampling.top_k, SAMPLING_LEFT_COUNT);
    ck_assert_double_nan(got.sampling.repetition_penalty);
    struct message again = {.kind = MESSAGE_GENERATE};
    again.generate.generation = got;
    got = sent_and_received(&again).generate.generation;
    ck_assert_double_nan(got.sampling.min_p);
    ck_assert_uint_eq(got.sampling.top_k, SAMPLING_LEFT_COUNT);
    ck_assert(!got.has_seed);
    ck_assert_int_eq(got.on_disconnect, DISCONNECT_CANCEL);
}
END_TEST

START_TEST(an_explicit_zero_is_not_replaced_by_a_default)
{
    struct message sent = a_generate();
    sent.generate.generation.sampling.temperature = 0;
    sent.generate.generation.sampling.top_k = 0;
    sent.generate.generation.sampling.min_p = 0;
    sent.generate.generation.has_seed = true;
    struct generation got = sent_and_received(&sent).generate.generation;
    ck_assert_double_eq(got.sampling.temperature, 0);
    ck_assert_uint_eq(got.sampling.top_k, 0);
    ck_assert_double_eq(got.sampling.min_p, 0);
    ck_assert(got.has_seed);
    ck_assert_uint_eq(got.sampling.seed, 0);
}
END_TEST

START_TEST(an_integer_is_a_real_too)
{
    static const char wired[] = "\x84\xa1k\xa8generate\xa2id\xc4\x10"
                                "0123456789abcdef\xa6prompt\xa2Hi\xabtemperature\x01";
    ck_assert_double_eq(decoded(wired, sizeof wired - 1).generate.generation.sampling.temperature, 1);
}
END_TEST

START_TEST(unknown_keys_are_skipped_whatever_they_hold)
{
    static const char wired[] = "\x84\xa1x\x93\xc0\x81\x01\xcb\0\0\0\0\0\0\0\0\xc7\x02\x05zz\xa1k\xa4join"
                                "\xa2xx\xd9\x01w\xa5nonce\x07";
    ck_assert_uint_eq(decoded(wired, sizeof wired - 1).join.nonce, 7);
}
END_TEST

START_TEST(every_refusal_names_its_key)
{
    CHECK_REFUSED("\x81\xa1k\xa4join", "join: nonce: missing");
    CHECK_REFUSED("\x82\xa1k\xa4join\xa5nonce\xa1x", "join: nonce: expected an integer");
    CHECK_REFUSED("\x82\xa1k\xa4join\xa5nonce\xff",
                  "join: nonce: -1 is out of range 0..18446744073709551615");
    CHECK_REFUSED("\x83\xa1k\xa4join\xa5nonce\x01\xa5nonce\x01", "join: nonce: duplicate key");
    CHECK_REFUSED("\x83\xa1k\xa4join\xa1k\xa4join\xa5nonce\x01", "join: k: duplicate key");
    CHECK_REFUSED("\x82\xa1k\xa4join\xa5nonce\x01\x00", "join: 1 bytes follow the message");
    CHECK_REFUSED("\x81\xa5nonce\x01", "k: missing");
    CHECK_REFUSED("\x81\xa1k\x01", "k: expected a text");
    CHECK_REFUSED("\x91\x01", "not a msgpack map");
    CHECK_REFUSED("", "an empty message");
    CHECK_REFUSED("\x82\xa1k\xa6"
                  "cancel\xa2id\xc4\x02zz",
                  "cancel: id: expected a byte string of 16 bytes");
    CHECK_REFUSED("\x82\xa1k\xa6"
                  "cancel\xa2id",
                  "cancel: id: truncated, or not msgpack");
    CHECK_REFUSED("\x82\xa1k\xa4join\x05\x01", "join: a key is not a string");
    CHECK_REFUSED("\x83\xa1k\xa8tokenize\xa4text\xa2\xc3\x28\xa3ref\x01",
                  "tokenize: text: not UTF-8 at byte 0");
    CHECK_REFUSED("\x83\xa1k\xa8tokenize\xa4text\xa1x\xa5model\xa2\x1b[",
                  "tokenize: model: control character at byte 0");
    CHECK_REFUSED("\x83\xa1k\xa8generate\xa2id\xc4\x10"
                  "0123456789abcdef\xa6prompt\xa0",
                  "generate: prompt: is empty");
    CHECK_REFUSED("\x84\xa1k\xa8generate\xa2id\xc4\x10"
                  "0123456789abcdef\xa6prompt\xa1x\xa4stop\x92\xa1y\xa0",
                  "generate: stop: item 1: is empty");
}
END_TEST

START_TEST(sampling_values_out_of_range_are_refused)
{
    struct {
        const char *key;
        double value;
    } cases[] = {{"temperature", NAN},
                 {"temperature", -0.1},
                 {"temperature", INFINITY},
                 {"top_p", -0.01},
                 {"top_p", 1.01},
                 {"top_p", NAN},
                 {"min_p", -1},
                 {"min_p", 2},
                 {"repetition_penalty", 0},
                 {"repetition_penalty", 1e-38},
                 {"repetition_penalty", 101},
                 {"presence_penalty", -2.1},
                 {"presence_penalty", 2.1},
                 {"frequency_penalty", -2.1},
                 {"frequency_penalty", 2.1},
                 {"frequency_penalty", NAN},
                 {"repetition_penalty", NAN}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        msgpack_sbuffer out;
        msgpack_packer packer;
        msgpack_sbuffer_init(&out);
        msgpack_packer_init(&packer, &out, msgpack_sbuffer_write);
        msgpack_pack_map(&packer, 4);
        msgpack_pack_str_with_body(&packer, "k", 1);
        msgpack_pack_str_with_body(&packer, "generate", 8);
        msgpack_pack_str_with_body(&packer, "id", 2);
        msgpack_pack_bin_with_body(&packer, "0123456789abcdef", 16);
        msgpack_pack_str_with_body(&packer, "prompt", 6);
        msgpack_pack_str_with_body(&packer, "x", 1);
        msgpack_pack_str_with_body(&packer, cases[i].key, strlen(cases[i].key));
        msgpack_pack_double(&packer, cases[i].value);
        struct message message;
        struct error err = {0};
        ck_assert_int_eq(message_decode(decoder, out.data, out.size, &message, &err), MESSAGE_E_MALFORMED);
        char prefix[64];
        snprintf(prefix, sizeof prefix, "generate: %s: ", cases[i].key);
        ck_assert_msg(strncmp(err.text, prefix, strlen(prefix)) == 0, "%s", err.text);
        struct id128 id;
        ck_assert(message_decoder_failed_id(decoder, &id));
        ck_assert_mem_eq(id.bytes, "0123456789abcdef", 16);
        msgpack_sbuffer_destroy(&out);
    }
}
END_TEST

START_TEST(an_unknown_kind_has_its_own_code)
{
    static const char wired[] = "\x82\xa1k\xa5quern\xa2id\xc4\x10"
                                "0123456789abcdef";
    struct message message;
    struct error err = {0};
    struct id128 id;
    ck_assert_int_eq(message_decode(decoder, wired, sizeof wired - 1, &message, &err),
                     MESSAGE_E_UNKNOWN_KIND);
    ck_assert_str_eq(err.text, "unknown kind \"quern\"");
    ck_assert(message_decoder_failed_id(decoder, &id));
    static const char without[] = "\x81\xa1k\xa5quern";
    ck_assert_int_eq(message_decode(decoder, without, sizeof without - 1, &message, &err),
                     MESSAGE_E_UNKNOWN_KIND);
    ck_assert(!message_decoder_failed_id(decoder, &id));
}
END_TEST

START_TEST(hostile_counts_cost_nothing)
{
    CHECK_REFUSED("\xdf\xff\xff\xff\xff", "not a msgpack map");
    CHECK_REFUSED("\x83\xa1k\xabtokenize_ok\xa3ids\xdd\xff\xff\xff\xff\x01\x01",
                  "tokenize_ok: ids: truncated, or not msgpack");
    CHECK_REFUSED("\x82\xa1k\xa4join\xa1x\xdb\xff\xff\xff\xff",
                  "join: x: truncated, too deep, or not msgpack");
    CHECK_REFUSED("\x82\xa1k\xa4join\xa1x\x91\x91\x91\x91\x91\x91\x91\x91\x01",
                  "join: x: truncated, too deep, or not msgpack");
    /* 97 keys are one too many, whatever they are. */
    char many[8 + 97 * 2] = "\xde\x00\x61";
    for (int i = 0; i < 97; i++)
        memcpy(many + 3 + 2 * i, "\xa0\x01", 2);
    check_refused(many, 3 + 97 * 2, "97 keys; at most 96 are allowed");
}
END_TEST

START_TEST(what_would_not_decode_is_not_encoded)
{
    struct message message = {.kind = MESSAGE_NONE};
    wire.len = 0;
    ck_assert_int_eq(buffer_append(&wire, "kept", 4), 0);
    ck_assert_int_eq(message_encode(&message, &wire), -EINVAL);
    message = a_generate();
    message.generate.generation.sampling.top_p = 1.5;
    ck_assert_int_eq(message_encode(&message, &wire), -EINVAL);
    struct error err = {0};
    ck_assert_int_eq(message_encode_or_say(&message, &wire, &err), -EINVAL);
    ck_assert_str_eq(err.text, "generate: top_p: 1.5 is out of range 0..1");
    message = a_generate();
    message.generate.generation.max_tokens = UINT32_MAX;
    ck_assert_int_eq(message_encode(&message, &wire), -EINVAL);
    message = a_generate();
    message.generate.generation.prompt.text = BYTES_LITERAL("\xff");
    ck_assert_int_eq(message_encode(&message, &wire), -EINVAL);
    message = (struct message){.kind = MESSAGE_END};
    message.end.end.reason = END_ERROR;
    ck_assert_int_eq(message_encode(&message, &wire), -EINVAL);
    message = (struct message){.kind = MESSAGE_ERROR};
    ck_assert_int_eq(message_encode(&message, &wire), -EINVAL);
    ck_assert_uint_eq(wire.len, 4);
    ck_assert_mem_eq(wire.data, "kept", 4);
}
END_TEST

START_TEST(a_frame_above_its_bound_is_refused_both_ways)
{
    char *text = calloc(1, PROTO_MAX_FRAME_BYTES);
    memset(text, 'a', PROTO_MAX_FRAME_BYTES);
    struct message message = {.kind = MESSAGE_FRAME};
    message.frame.text = (struct bytes){text, PROTO_MAX_FRAME_BYTES};
    wire.len = 0;
    ck_assert_int_eq(message_encode(&message, &wire), -EINVAL);
    message.frame.text.len -= 200;
    ck_assert_int_eq(message_encode(&message, &wire), 0);
    ck_assert_uint_eq(decoded(wire.data, wire.len).frame.text.len, PROTO_MAX_FRAME_BYTES - 200);
    free(text);
}
END_TEST

START_TEST(every_truncation_of_a_message_is_refused)
{
    struct message sent = a_generate();
    sent.generate.generation.has_seed = true;
    sent_and_received(&sent);
    for (size_t len = 0; len < wire.len; len++) {
        /* An exact copy, so that a sanitizer sees one byte too many. */
        uint8_t *copy = malloc(len + (len == 0));
        memcpy(copy, wire.data, len);
        struct message message;
        ck_assert_int_eq(message_decode(decoder, copy, len, &message, NULL), MESSAGE_E_MALFORMED);
        free(copy);
    }
}
END_TEST

START_TEST(the_value_of_a_key_is_found_where_it_stands)
{
    struct message sent = a_generate();
    static const char *const keys[] = {"seed", "stop", "id", "prompt"};
    struct bytes values[4];
    sent.generate.generation.has_seed = true;
    sent.generate.generation.sampling.seed = UINT64_MAX;
    /* A text that looks like the key with its value is none. */
    sent.generate.generation.prompt.text = BYTES_LITERAL("¤seed\xcf\xbf");
    sent_and_received(&sent);
    const struct bytes all = {wire.data, wire.len};
    ck_assert_uint_eq(message_find(all, keys, 4, values), 3);
    ck_assert(bytes_equal(values[0], BYTES_LITERAL("\xcf\xff\xff\xff\xff\xff\xff\xff\xff")));
    ck_assert_ptr_null(values[1].data);
    ck_assert_uint_eq(values[2].len, 18);
    ck_assert_mem_eq((const uint8_t *)values[2].data + 2, &sent.generate.id, 16);
    ck_assert_uint_eq(values[3].len, 1 + sent.generate.generation.prompt.text.len);
    for (size_t len = 0; len < wire.len; len++) {
        size_t found = message_find((struct bytes){wire.data, len}, keys, 4, values);
        for (size_t k = 0; k < 4; k++)
            if (values[k].data) {
                ck_assert((const uint8_t *)values[k].data + values[k].len <= wire.data + len);
                found--;
            }
        ck_assert_uint_eq(found, 0);
    }
    ck_assert_uint_eq(message_find(BYTES_LITERAL("\x01"), keys, 4, values), 0);
}
END_TEST

START_TEST(epochs_are_ordered_by_boot_then_move)
{
    ck_assert_int_lt(epoch_compare((struct epoch){1, 9}, (struct epoch){2, 0}), 0);
    ck_assert_int_lt(epoch_compare((struct epoch){2, 0}, (struct epoch){2, 1}), 0);
    ck_assert_int_eq(epoch_compare((struct epoch){2, 1}, (struct epoch){2, 1}), 0);
    ck_assert_int_gt(epoch_compare((struct epoch){3, 0}, (struct epoch){2, 1}), 0);
}
END_TEST

START_TEST(lists_of_maps_come_back)
{
    uint8_t digest[16] = {1};
    struct bytes stream[] = {BYTES_LITERAL("ipc:///run/stream")};
    struct model_info models[] = {
        {.name = BYTES_LITERAL("m"), .digest = {digest, 16}, .context = 4096, .chat = true}};
    struct message sent = {.kind = MESSAGE_HELLO_OK};
    sent.hello_ok.proto = (struct version_range){1, 1};
    sent.hello_ok.boot = 3;
    sent.hello_ok.stream = (struct text_list){stream, 1};
    sent.hello_ok.models.items = models;
    sent.hello_ok.models.n = 1;
    struct message got = sent_and_received(&sent);
    ck_assert_uint_eq(got.hello_ok.models.n, 1);
    ck_assert(got.hello_ok.models.items[0].chat);
    ck_assert_mem_eq(got.hello_ok.models.items[0].digest.data, digest, 16);
    ck_assert(bytes_equal(got.hello_ok.stream.items[0], stream[0]));

    struct worker_status workers[2] = {
        {.name = BYTES_LITERAL("worker-0"), .state = WORKER_READY, .tokens_per_s = 12.5},
        {.name = BYTES_LITERAL("worker-1"), .state = WORKER_FAILED, .reason = BYTES_LITERAL("no such file")}};
    sent = (struct message){.kind = MESSAGE_STATUS_OK};
    sent.status_ok.workers.items = workers;
    sent.status_ok.workers.n = 2;
    got = sent_and_received(&sent);
    ck_assert_uint_eq(got.status_ok.workers.n, 2);
    ck_assert_int_eq(got.status_ok.workers.items[1].state, WORKER_FAILED);
    ck_assert_double_eq(got.status_ok.workers.items[0].tokens_per_s, 12.5);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_frame_comes_back_as_it_was_sent);
    tcase_add_test(tests, an_id_takes_the_shortest_form_there_is);
    tcase_add_test(tests, each_form_of_an_id_is_read);
    tcase_add_test(tests, each_form_of_a_prompt_comes_back);
    tcase_add_test(tests, what_a_generate_leaves_out_becomes_the_default);
    tcase_add_test(tests, an_explicit_zero_is_not_replaced_by_a_default);
    tcase_add_test(tests, an_integer_is_a_real_too);
    tcase_add_test(tests, unknown_keys_are_skipped_whatever_they_hold);
    tcase_add_test(tests, every_refusal_names_its_key);
    tcase_add_test(tests, sampling_values_out_of_range_are_refused);
    tcase_add_test(tests, an_unknown_kind_has_its_own_code);
    tcase_add_test(tests, hostile_counts_cost_nothing);
    tcase_add_test(tests, what_would_not_decode_is_not_encoded);
    tcase_add_test(tests, a_frame_above_its_bound_is_refused_both_ways);
    tcase_add_test(tests, every_truncation_of_a_message_is_refused);
    tcase_add_test(tests, the_value_of_a_key_is_found_where_it_stands);
    tcase_add_test(tests, epochs_are_ordered_by_boot_then_move);
    tcase_add_test(tests, lists_of_maps_come_back);
}

int main(void)
{
    return run_tests("message", add);
}
