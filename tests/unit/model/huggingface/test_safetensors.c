/* SPDX-License-Identifier: MIT */
/* Bytes of SafeTensors files: what is found where, and every limit just met and just passed. */

#include "model/huggingface/safetensors.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_HEADER (16u << 20)

/* A length, the header, as many bytes as it is said. To be freed. */
static struct bytes file_of(const char *header, size_t n_data)
{
    const uint64_t len = strlen(header);
    uint8_t *file = calloc(1, 8 + len + n_data);
    ck_assert_ptr_nonnull(file);
    memcpy(file, &len, 8);
    memcpy(file + 8, header, len);
    return (struct bytes){file, 8 + len + n_data};
}

static void expect_refusal(const char *header, size_t n_data, const char *says)
{
    struct bytes bytes = file_of(header, n_data);
    struct safetensors file = {.n = 77};
    struct error err = {0};
    ck_assert_int_eq(safetensors_parse(bytes, &file, &err), -EINVAL);
    ck_assert_str_eq(err.text, says);
    ck_assert_uint_eq(file.n, 77); /* untouched */
    free((void *)bytes.data);
}

START_TEST(tensors_are_in_the_order_of_their_places)
{
    struct bytes bytes = file_of("{\"__metadata__\":{\"format\":\"pt\"},"
                                 "\"last\":{\"dtype\":\"BF16\",\"shape\":[3,1],\"data_offsets\":[9,15]},"
                                 "\"none\":{\"dtype\":\"I64\",\"shape\":[4,0],\"data_offsets\":[9,9]},"
                                 "\"first\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]}}",
                                 15);
    struct safetensors file;
    ck_assert_int_eq(safetensors_parse(bytes, &file, NULL), 0);
    ck_assert_uint_eq(file.n, 3);
    const struct safetensor *first = &file.tensors[0], *none = &file.tensors[1], *last = &file.tensors[2];
    const uint8_t *data = (const uint8_t *)bytes.data + bytes.len - 15;
    ck_assert_str_eq(first->name, "first");
    ck_assert(first->n_dims == 0 && first->size == 8 && first->data == data); /* a single number */
    ck_assert_str_eq(none->name, "none"); /* before what begins where it lies */
    ck_assert(none->n_dims == 2 && none->size == 0 && none->data == data + 9);
    ck_assert_str_eq(last->name, "last");
    ck_assert_str_eq(last->dtype, "BF16");
    ck_assert(last->element_size == 2 && last->n_dims == 2 && last->dims[0] == 3 && last->dims[1] == 1);
    ck_assert(last->size == 6 && last->data == data + 9);
    safetensors_deinit(&file);
    free((void *)bytes.data);
}
END_TEST

/* The names are those of the format's own list. */
START_TEST(elements_have_the_size_of_their_dtype)
{
    static const struct {
        const char *dtype;
        int size;
    } cases[] = {{"F64", 8},  {"I64", 8},     {"U64", 8},     {"F32", 4},    {"I32", 4}, {"U32", 4},
                 {"F16", 2},  {"BF16", 2},    {"I16", 2},     {"U16", 2},    {"I8", 1},  {"U8", 1},
                 {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char header[160];
        struct safetensors file;
        struct error err = {0};
        snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"%s\",\"shape\":[5],\"data_offsets\":[0,%d]}}",
                 cases[i].dtype, 5 * cases[i].size);
        struct bytes bytes = file_of(header, (size_t)(5 * cases[i].size));
        ck_assert_msg(safetensors_parse(bytes, &file, &err) == 0, "%s", err.text);
        ck_assert_str_eq(file.tensors[0].dtype, cases[i].dtype);
        ck_assert_uint_eq(file.tensors[0].element_size, (uint32_t)cases[i].size);
        safetensors_deinit(&file);
        free((void *)bytes.data);
    }
}
END_TEST

START_TEST(a_tensor_that_cannot_be_is_named)
{
    static const struct {
        const char *entry, *says;
    } cases[] = {
        {"\"dtype\":7,\"shape\":[2],\"data_offsets\":[0,8]", "dtype is not a string"},
        {"\"dtype\":\"f32\",\"shape\":[2],\"data_offsets\":[0,8]", "unknown dtype \"f32\""},
        {"\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]",
         "shape is not an array of at most 8 numbers"},
        {"\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]",
         "shape is not an array of at most 8 numbers"},
        {"\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]",
         "shape has an invalid number of elements"},
        {"\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]",
         "shape has too many elements"},
        {"\"dtype\":\"F32\",\"shape\":[2]", "data_offsets are not two integers"},
        {"\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]", "data_offsets are not two integers"},
        {"\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]", "data_offsets are not two integers"},
        {"\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8.0]", "data_offsets are not two integers"},
        {"\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[null,8]", "data_offsets are not two integers"},
        {"\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-1,7]",
         "data_offsets -1 to 7 lie outside of the file's 8 bytes of data"},
        {"\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[1,9]",
         "data_offsets 1 to 9 lie outside of the file's 8 bytes of data"},
        {"\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[1,0]",
         "data_offsets 1 to 0 lie outside of the file's 8 bytes of data"},
        {"\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,7]",
         "data_offsets hold 7 bytes, its shape and dtype 8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char header[256], says[256];
        snprintf(header, sizeof header, "{\"a.b\":{%s}}", cases[i].entry);
        snprintf(says, sizeof says, "tensor a.b: %s", cases[i].says);
        expect_refusal(header, 8, says);
    }
    expect_refusal("{\"a\":[]}", 0, "tensor a: its entry in the header is not an object");
    expect_refusal("{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
                   "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
                   4, "tensor b: it overlaps tensor a");
}
END_TEST

START_TEST(eight_dimensions_are_the_most)
{
    struct bytes bytes =
        file_of("{\"t\":{\"dtype\":\"U8\",\"shape\":[1,1,2,1,1,1,1,3],\"data_offsets\":[0,6]}}", 6);
    struct safetensors file;
    ck_assert_int_eq(safetensors_parse(bytes, &file, NULL), 0);
    ck_assert_uint_eq(file.tensors[0].n_dims, 8);
    ck_assert_uint_eq(file.tensors[0].dims[7], 3);
    safetensors_deinit(&file);
    free((void *)bytes.data);
}
END_TEST

/* Spaces behind the object are JSON, and what writers align with. */
START_TEST(a_header_has_sixteen_mebibytes_at_most)
{
    uint8_t *bytes = malloc(8 + MOST_HEADER + 1);
    uint64_t len = MOST_HEADER;
    struct safetensors file = {0};
    struct error err = {0};
    ck_assert_ptr_nonnull(bytes);
    memset(bytes + 8, ' ', MOST_HEADER + 1);
    memcpy(bytes + 8, "{}", 2);
    memcpy(bytes, &len, 8);
    ck_assert_msg(safetensors_parse((struct bytes){bytes, 8 + len}, &file, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(file.n, 0);
    safetensors_deinit(&file);
    len++;
    memcpy(bytes, &len, 8);
    ck_assert_int_eq(safetensors_parse((struct bytes){bytes, 8 + len}, &file, &err), -EINVAL);
    ck_assert_str_eq(err.text,
                     "not a SafeTensors file, or truncated: a header of 16777217 bytes in a file of "
                     "16777225 (at most 16777216 are read)");
    free(bytes);
}
END_TEST

START_TEST(a_header_lies_within_the_file)
{
    struct bytes bytes = file_of("{}", 0);
    struct safetensors file = {0};
    struct error err = {0};
    ck_assert_int_eq(safetensors_parse(bytes, &file, &err), 0);
    safetensors_deinit(&file);
    ck_assert_int_eq(safetensors_parse((struct bytes){bytes.data, bytes.len - 1}, &file, &err), -EINVAL);
    ck_assert_str_eq(err.text, "not a SafeTensors file, or truncated: a header of 2 bytes in a file of 9 (at "
                               "most 16777216 are read)");
    ck_assert_int_eq(safetensors_parse((struct bytes){bytes.data, 7}, &file, &err), -EINVAL);
    ck_assert_str_eq(err.text, "not a SafeTensors file: it has 7 bytes");
    free((void *)bytes.data);
    expect_refusal("", 0, "header: line 1: invalid JSON: '[' or '{' expected near end of file");
    expect_refusal("[]", 0, "header: the JSON is not an object");
    expect_refusal("{\"a\":{},\"a\":{}}", 0,
                   "header: line 1: invalid JSON: duplicate object key near '\"a\"'");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, tensors_are_in_the_order_of_their_places);
    tcase_add_test(tests, elements_have_the_size_of_their_dtype);
    tcase_add_test(tests, a_tensor_that_cannot_be_is_named);
    tcase_add_test(tests, eight_dimensions_are_the_most);
    tcase_add_test(tests, a_header_has_sixteen_mebibytes_at_most);
    tcase_add_test(tests, a_header_lies_within_the_file);
}

int main(void)
{
    return run_tests("safetensors", add);
}
