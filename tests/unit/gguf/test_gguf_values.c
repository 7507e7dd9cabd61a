/* SPDX-License-Identifier: MIT */
/* Values of every type as they are asked for, and the bounds of what a file may say. */

#include "tests/unit/run.h"
#include "tests/unit/gguf/raw_gguf.h"
#include "gguf/gguf_values.h"

#include <errno.h>
#include <stdlib.h>

static struct buffer file;

static void tear_down(void)
{
    buffer_deinit(&file);
}

/* A file of one pair, of this type. */
static struct gguf *open_pair(enum gguf_type type, const void *value, size_t size)
{
    struct gguf *gguf = NULL;
    struct error err = {0};
    file.len = 0;
    raw_head(&file, 3, 0, 1);
    raw_string(&file, "k"), raw_u32(&file, type), raw(&file, value, size);
    ck_assert_msg(gguf_parse(file.data, file.len, &gguf, &err) == 0, "%s", err.text);
    return gguf;
}

/* The same, an array of n. */
static struct gguf *open_array(enum gguf_type type, const void *items, size_t size, uint64_t n)
{
    struct buffer value = {0};
    raw_u32(&value, type), raw_u64(&value, n), raw(&value, items, size);
    struct gguf *gguf = open_pair(GGUF_ARRAY, value.data, value.len);
    buffer_deinit(&value);
    return gguf;
}

#define check_array(of, real, ...)                                                                           \
    do {                                                                                                     \
        const real items[] = {__VA_ARGS__};                                                                  \
        struct gguf *gguf = open_array(of, items, sizeof items, sizeof items / sizeof *items);               \
        const struct gguf_value *array = gguf_find(gguf, "k");                                               \
        ck_assert_int_eq(array->array.type, of);                                                             \
        ck_assert_uint_eq(array->array.n, sizeof items / sizeof *items);                                     \
        for (size_t i = 0; i < sizeof items / sizeof *items; i++) {                                          \
            if (of != GGUF_F32 && of != GGUF_F64)                                                            \
                ck_assert_int_eq(gguf_array_int(array, i), (int64_t)items[i]);                               \
            ck_assert_double_eq(gguf_array_real(array, i), (double)items[i]);                                \
        }                                                                                                    \
        gguf_free(gguf);                                                                                     \
    } while (0)

START_TEST(items_of_every_type_have_their_value)
{
    check_array(GGUF_U8, uint8_t, 7, 0, 255, 128);
    check_array(GGUF_I8, int8_t, -128, 127, -1);
    check_array(GGUF_U16, uint16_t, 65535, 1, 32768);
    check_array(GGUF_I16, int16_t, -32768, 32767, -2);
    check_array(GGUF_U32, uint32_t, UINT32_MAX, 1u << 31, 3);
    check_array(GGUF_I32, int32_t, INT32_MIN, INT32_MAX, -3);
    check_array(GGUF_U64, uint64_t, 1ull << 62, 9);
    check_array(GGUF_I64, int64_t, INT64_MIN, -4, 1ll << 62);
    check_array(GGUF_BOOL, uint8_t, 1, 0);
    check_array(GGUF_F32, float, -2.25f, 1e30f, 0.1f);
    check_array(GGUF_F64, double, -2.25, 1e300, 0.1);
}
END_TEST

/* The number under k; -1 when it is refused, which leaves 77. */
static double as_real(struct gguf *gguf)
{
    float value = 77;
    int r = gguf_f32(gguf, "k", &value, NULL);
    gguf_free(gguf);
    ck_assert(r == 0 || value == 77);
    return r == 0 ? (double)value : -1;
}

static double as_u32(struct gguf *gguf)
{
    uint32_t value = 77;
    int r = gguf_u32(gguf, "k", &value, NULL);
    gguf_free(gguf);
    ck_assert(r == 0 || value == 77);
    return r == 0 ? (double)value : -1;
}

#define NUMBER(type, real, value) open_pair(type, &(real){value}, sizeof(real))

START_TEST(a_number_is_taken_by_its_value_whatever_its_type)
{
    ck_assert_double_eq(as_u32(NUMBER(GGUF_U8, uint8_t, 255)), 255);
    ck_assert_double_eq(as_u32(NUMBER(GGUF_I8, int8_t, 127)), 127);
    ck_assert_double_eq(as_u32(NUMBER(GGUF_I8, int8_t, -1)), -1);
    ck_assert_double_eq(as_u32(NUMBER(GGUF_U16, uint16_t, 65535)), 65535);
    ck_assert_double_eq(as_u32(NUMBER(GGUF_I16, int16_t, 0)), 0);
    ck_assert_double_eq(as_u32(NUMBER(GGUF_I32, int32_t, INT32_MAX)), INT32_MAX);
    ck_assert_double_eq(as_u32(NUMBER(GGUF_U64, uint64_t, UINT32_MAX)), UINT32_MAX);
    ck_assert_double_eq(as_u32(NUMBER(GGUF_U64, uint64_t, UINT32_MAX + 1ull)), -1);
    ck_assert_double_eq(as_u32(NUMBER(GGUF_I64, int64_t, UINT32_MAX)), UINT32_MAX);
    ck_assert_double_eq(as_u32(NUMBER(GGUF_I64, int64_t, UINT32_MAX + 1ll)), -1);
    ck_assert_double_eq(as_u32(NUMBER(GGUF_I64, int64_t, INT64_MIN)), -1);
    ck_assert_double_eq(as_u32(NUMBER(GGUF_F32, float, 5)), -1);
    ck_assert_double_eq(as_real(NUMBER(GGUF_U8, uint8_t, 200)), 200);
    ck_assert_double_eq(as_real(NUMBER(GGUF_U16, uint16_t, 65535)), 65535);
    ck_assert_double_eq(as_real(NUMBER(GGUF_U64, uint64_t, 1ull << 63)), 0x1p63);
    ck_assert_double_eq(as_real(NUMBER(GGUF_I16, int16_t, -3)), -3);
    ck_assert_double_eq(as_real(NUMBER(GGUF_I64, int64_t, -(1ll << 40))), -0x1p40);
    ck_assert_double_eq(as_real(NUMBER(GGUF_F64, double, 0.25)), 0.25);
    ck_assert_double_eq(as_real(NUMBER(GGUF_BOOL, uint8_t, 1)), -1);
}
END_TEST

START_TEST(what_a_value_is_not_is_told_with_what_it_is)
{
    struct error err;
    struct gguf *gguf = NUMBER(GGUF_I64, int64_t, -5);
    ck_assert_int_eq(gguf_u32(gguf, "k", &(uint32_t){0}, &err), -EINVAL);
    ck_assert_str_eq(err.text, "metadata k is negative (-5)");
    ck_assert_int_eq(gguf_bool(gguf, "k", &(bool){0}, &err), -EINVAL);
    ck_assert_str_eq(err.text, "metadata k has type i64, expected bool");
    ck_assert_int_eq(gguf_string(gguf, "k", &(struct bytes){0}, &err), -EINVAL);
    ck_assert_str_eq(err.text, "metadata k has type i64, expected string");
    ck_assert_int_eq(gguf_f32(gguf, "kk", &(float){0}, &err), GGUF_E_MISSING);
    ck_assert_int_eq(gguf_bool(gguf, "", &(bool){0}, &err), GGUF_E_MISSING);
    ck_assert_int_eq(gguf_string(gguf, "j", &(struct bytes){0}, &err), GGUF_E_MISSING);
    gguf_free(gguf);
    gguf = NUMBER(GGUF_U64, uint64_t, 1ull << 33);
    ck_assert_int_eq(gguf_u32(gguf, "k", &(uint32_t){0}, &err), -EINVAL);
    ck_assert_str_eq(err.text, "metadata k is too large (8589934592)");
    gguf_free(gguf);
    gguf = open_array(GGUF_U8, "", 1, 1);
    ck_assert_int_eq(gguf_f32(gguf, "k", &(float){0}, &err), -EINVAL);
    ck_assert_str_eq(err.text, "metadata k has type array, expected a number");
    ck_assert_int_eq(gguf_u32(gguf, "k", &(uint32_t){0}, &err), -EINVAL);
    ck_assert_str_eq(err.text, "metadata k has type array, expected an integer");
    gguf_free(gguf);
}
END_TEST

/* ---- bounds ---- */

/* What is said of the file as it was spelled out; "" when it is read. */
static const char *refusal(void)
{
    static struct error err;
    struct gguf *gguf = NULL;
    int r = gguf_parse(file.data, file.len, &gguf, &err);
    ck_assert(r == 0 || r == -EINVAL);
    gguf_free(gguf);
    return r == 0 ? "" : err.text;
}

START_TEST(a_name_has_65535_bytes_at_most)
{
    char *name = malloc(65537);
    memset(name, 'n', 65536);
    for (int len = 65536; len >= 65535; len--) {
        name[len] = '\0';
        file.len = 0;
        raw_head(&file, 3, 0, 1);
        raw_pair_u32(&file, name, 5);
        ck_assert_str_eq(
            refusal(),
            len == 65535 ? "" : "the name of metadata pair 0 has 65536 bytes; 1 to 65535 are allowed");
    }
    free(name);
}
END_TEST

START_TEST(a_file_has_65536_pairs_and_tensors_at_most)
{
    raw_head(&file, 3, 65536, 65536);
    ck_assert_str_eq(refusal(), "truncated at byte 24: 65536 metadata pairs and 65536 tensors do not fit");
    file.len = 0;
    raw_head(&file, 3, 65537, 0);
    ck_assert_str_eq(refusal(), "0 metadata pairs and 65537 tensors: at most 65536 and 65536 are supported");
    file.len = 0;
    raw_head(&file, 3, 0, 65537);
    ck_assert_str_eq(refusal(), "65537 metadata pairs and 0 tensors: at most 65536 and 65536 are supported");
}
END_TEST

START_TEST(an_alignment_is_a_power_of_two_from_8_on)
{
    file.len = 0;
    raw_head(&file, 3, 1, 1);
    raw_pair_u32(&file, "general.alignment", 8);
    raw_tensor(&file, "t", 1, (uint64_t[]){1}, FORMAT_F32, 8);
    raw_pad(&file, 8), raw_zeros(&file, 12);
    ck_assert_str_eq(refusal(), "");
    file.len--;
    ck_assert_ptr_nonnull(strstr(refusal(), "tensor t lies at "));
    file.len = 0;
    raw_head(&file, 3, 0, 1);
    raw_string(&file, "general.alignment"), raw_u32(&file, GGUF_U64), raw_u64(&file, 64);
    ck_assert_str_eq(refusal(), "general.alignment must be a power of two of at least 8");
}
END_TEST

START_TEST(a_tensor_has_fewer_than_2_63_elements)
{
    file.len = 0;
    raw_head(&file, 3, 1, 0);
    raw_tensor(&file, "t", 2, (uint64_t[]){1ull << 32, 1ull << 31}, FORMAT_F16, 0);
    raw_pad(&file, 32);
    ck_assert_str_eq(refusal(), "tensor t: its dimensions overflow");
    file.len = 0;
    raw_head(&file, 3, 1, 0);
    raw_tensor(&file, "t", 2, (uint64_t[]){1ull << 32, (1ull << 31) - 1}, FORMAT_F16, 0);
    raw_pad(&file, 32);
    ck_assert_msg(strncmp(refusal(), "truncated at byte ", 18) == 0, "%s", refusal());
    file.len = 0;
    raw_head(&file, 3, 1, 0);
    raw_tensor(&file, "t", 4, (uint64_t[]){1, 2, 3, 0}, FORMAT_F16, 0);
    raw_pad(&file, 32);
    ck_assert_str_eq(refusal(), "tensor t: dimension 3 is 0");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, items_of_every_type_have_their_value);
    tcase_add_test(tests, a_number_is_taken_by_its_value_whatever_its_type);
    tcase_add_test(tests, what_a_value_is_not_is_told_with_what_it_is);
    tcase_add_test(tests, a_name_has_65535_bytes_at_most);
    tcase_add_test(tests, a_file_has_65536_pairs_and_tensors_at_most);
    tcase_add_test(tests, an_alignment_is_a_power_of_two_from_8_on);
    tcase_add_test(tests, a_tensor_has_fewer_than_2_63_elements);
}

int main(void)
{
    return run_tests("gguf_values", add);
}
