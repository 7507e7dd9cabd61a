/* SPDX-License-Identifier: MIT */
/* The golden vectors (proto/golden/messages.json, written by a codec that shares no code with ours) against
 * the codec. */

#include "proto/fields.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <msgpack.h>
#include <stdlib.h>

static json_t *vectors;
static struct message_decoder *decoder;

static void setup(void)
{
    json_error_t error;
    json_t *file = json_load_file(GOLDEN_FOLDER "/messages.json", JSON_ALLOW_NUL, &error);
    ck_assert_msg(file != NULL, "%s:%d: %s", error.source, error.line, error.text);
    vectors = json_incref(json_object_get(file, "vectors"));
    json_decref(file);
    ck_assert_uint_gt(json_array_size(vectors), 50);
    ck_assert_int_eq(message_decoder_new(&decoder), 0);
}

static void teardown(void)
{
    json_decref(vectors);
    decoder = message_decoder_free(decoder);
}

/* The bytes of a vector; exactly as large as they are, so that sanitizers see one byte too many. */
static uint8_t *bytes_of(const json_t *vector, size_t *ret_len)
{
    const char *hex = json_string_value(json_object_get(vector, "hex"));
    size_t len = strlen(hex) / 2;
    uint8_t *bytes = malloc(len + (len == 0));
    for (size_t i = 0; i < len; i++)
        ck_assert_int_eq(sscanf(hex + 2 * i, "%2hhx", &bytes[i]), 1);
    *ret_len = len;
    return bytes;
}

/* Any msgpack value as JSON, the way the vectors write it. */
static json_t *json_of(const msgpack_object *object)
{
    switch (object->type) {
    case MSGPACK_OBJECT_NIL:
        return json_null();
    case MSGPACK_OBJECT_BOOLEAN:
        return json_boolean(object->via.boolean);
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        if (object->via.u64 > 1ull << 53) {
            char digits[24];
            snprintf(digits, sizeof digits, "%" PRIu64, object->via.u64);
            return json_pack("{s:s}", "int", digits);
        }
        return json_integer((json_int_t)object->via.u64);
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        return json_integer(object->via.i64);
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        return json_real(object->via.f64);
    case MSGPACK_OBJECT_STR:
        return json_stringn(object->via.str.ptr, object->via.str.size);
    case MSGPACK_OBJECT_BIN: {
        char *hex = calloc(2 * (size_t)object->via.bin.size + 1, 1);
        ck_assert_ptr_nonnull(hex);
        for (uint32_t i = 0; i < object->via.bin.size; i++)
            sprintf(hex + 2 * i, "%02x", (uint8_t)object->via.bin.ptr[i]);
        json_t *value = json_pack("{s:s}", "hex", hex);
        free(hex);
        return value;
    }
    case MSGPACK_OBJECT_ARRAY: {
        json_t *array = json_array();
        for (uint32_t i = 0; i < object->via.array.size; i++)
            json_array_append_new(array, json_of(&object->via.array.ptr[i]));
        return array;
    }
    case MSGPACK_OBJECT_MAP: {
        json_t *map = json_object();
        for (uint32_t i = 0; i < object->via.map.size; i++) {
            const msgpack_object_kv *pair = &object->via.map.ptr[i];
            char *key = strndup(pair->key.via.str.ptr, pair->key.via.str.size);
            json_object_set_new(map, key, json_of(&pair->val));
            free(key);
        }
        return map;
    }
    default:
        ck_abort_msg("no JSON for msgpack type %d", object->type);
        return NULL;
    }
}

START_TEST(every_kind_has_a_vector)
{
    bool seen[MESSAGE_KIND_COUNT] = {false};
    size_t i;
    json_t *vector;
    json_array_foreach(vectors, i, vector)
    {
        const char *kind = json_string_value(json_object_get(json_object_get(vector, "message"), "k"));
        for (int k = 1; kind && k < MESSAGE_KIND_COUNT; k++)
            seen[k] |= strcmp(kind, message_kind_name((enum message_kind)k)) == 0;
    }
    for (int k = 1; k < MESSAGE_KIND_COUNT; k++)
        ck_assert_msg(seen[k], "%s", message_kind_name((enum message_kind)k));
}
END_TEST

START_TEST(the_bytes_of_each_vector_are_its_json)
{
    size_t i;
    json_t *vector;
    json_array_foreach(vectors, i, vector)
    {
        json_t *expected = json_object_get(vector, "message");
        if (!expected)
            continue;
        size_t len;
        uint8_t *bytes = bytes_of(vector, &len);
        msgpack_unpacked unpacked;
        msgpack_unpacked_init(&unpacked);
        ck_assert_int_eq(msgpack_unpack_next(&unpacked, (const char *)bytes, len, NULL),
                         MSGPACK_UNPACK_SUCCESS);
        json_t *got = json_of(&unpacked.data);
        char *a = json_dumps(got, JSON_SORT_KEYS), *b = json_dumps(expected, JSON_SORT_KEYS);
        ck_assert_str_eq(a, b);
        free(a);
        free(b);
        json_decref(got);
        msgpack_unpacked_destroy(&unpacked);
        free(bytes);
    }
}
END_TEST

START_TEST(each_good_vector_decodes_and_encodes_to_the_same_bytes)
{
    size_t i;
    json_t *vector;
    json_array_foreach(vectors, i, vector)
    {
        const char *name = json_string_value(json_object_get(vector, "name"));
        if (json_object_get(vector, "error"))
            continue;
        bool canonical = !json_is_false(json_object_get(vector, "canonical"));
        size_t len;
        uint8_t *bytes = bytes_of(vector, &len);
        struct message message;
        struct error err = {0};
        int r = message_decode(decoder, bytes, len, &message, &err);
        ck_assert_msg(r == 0, "%s: %s", name, err.text);
        struct buffer out = {0};
        ck_assert_msg(message_encode(&message, &out) == 0, "%s", name);
        bool same = out.len == len && memcmp(out.data, bytes, len) == 0;
        ck_assert_msg(same == canonical, "%s: %zu bytes became %zu", name, len, out.len);
        /* What is not canonical becomes so in one step. */
        struct buffer again = {0};
        ck_assert_int_eq(message_decode(decoder, out.data, out.len, &message, &err), 0);
        ck_assert_int_eq(message_encode(&message, &again), 0);
        ck_assert_uint_eq(again.len, out.len);
        ck_assert_mem_eq(again.data, out.data, out.len);
        buffer_deinit(&out);
        buffer_deinit(&again);
        free(bytes);
    }
}
END_TEST

START_TEST(each_bad_vector_is_refused_with_its_text)
{
    size_t i, bad = 0;
    json_t *vector;
    json_array_foreach(vectors, i, vector)
    {
        const char *expected = json_string_value(json_object_get(vector, "error"));
        if (!expected)
            continue;
        size_t len;
        uint8_t *bytes = bytes_of(vector, &len);
        struct message message;
        struct error err = {0};
        ck_assert_int_gt(message_decode(decoder, bytes, len, &message, &err), 0);
        ck_assert_str_eq(err.text, expected);
        free(bytes);
        bad++;
    }
    ck_assert_uint_gt(bad, 30);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, every_kind_has_a_vector);
    tcase_add_test(tests, the_bytes_of_each_vector_are_its_json);
    tcase_add_test(tests, each_good_vector_decodes_and_encodes_to_the_same_bytes);
    tcase_add_test(tests, each_bad_vector_is_refused_with_its_text);
}

int main(void)
{
    return run_tests("golden", add);
}
