/* SPDX-License-Identifier: MIT */
/* Files that are read: their values and tensors, what is refused and how, and files that change meanwhile. */

#include "tests/unit/run.h"
#include "tests/unit/gguf/small_gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files/rundir.h"
#include "gguf/gguf_digest.h"
#include "gguf/gguf_values.h"

static void check_small_file(uint32_t version)
{
    struct buffer file = small_gguf(version);
    struct gguf *gguf = parse_gguf(&file);
    uint32_t u;
    float f;
    bool truth;
    struct bytes text;
    ck_assert_uint_eq(gguf_version(gguf), version);
    ck_assert_uint_eq(gguf_n_pairs(gguf), 15);
    ck_assert(gguf_u32(gguf, "u8", &u, NULL) == 0 && u == 254);
    ck_assert(gguf_u32(gguf, "u16", &u, NULL) == 0 && u == 65534);
    ck_assert(gguf_u32(gguf, "u32", &u, NULL) == 0 && u == 4000000000u);
    ck_assert_int_eq(gguf_find(gguf, "i8")->i, -2);
    ck_assert_int_eq(gguf_find(gguf, "i16")->i, -2);
    ck_assert_int_eq(gguf_find(gguf, "i32")->i, -2);
    ck_assert_int_eq(gguf_find(gguf, "i64")->i, -5);
    ck_assert_uint_eq(gguf_find(gguf, "u64")->u, 1ull << 40);
    ck_assert_double_eq(gguf_find(gguf, "f64")->f, 0.1);
    ck_assert(gguf_f32(gguf, "f32", &f, NULL) == 0 && f == 1.5f);
    ck_assert(gguf_f32(gguf, "f64", &f, NULL) == 0 && f == 0.1f);
    ck_assert(gguf_f32(gguf, "i8", &f, NULL) == 0 && f == -2);
    ck_assert(gguf_bool(gguf, "bool", &truth, NULL) == 0 && truth);
    ck_assert(gguf_string(gguf, "string", &text, NULL) == 0 && bytes_equal(text, BYTES_LITERAL("grind")));
    const struct gguf_value *array = gguf_find(gguf, "i16s");
    ck_assert(gguf_array_int(array, 0) == -1 && gguf_array_int(array, 2) == -300);
    ck_assert_double_eq(gguf_array_real(array, 1), 2);
    ck_assert_double_eq(gguf_array_real(gguf_find(gguf, "f64s"), 0), 2.5);
    size_t cursor = 0;
    array = gguf_find(gguf, "strings");
    ck_assert(bytes_equal(gguf_array_next_string(array, &cursor), BYTES_LITERAL("a")));
    ck_assert_uint_eq(gguf_array_next_string(array, &cursor).len, 0);
    ck_assert(bytes_equal(gguf_array_next_string(array, &cursor), BYTES_LITERAL("ccc")));
    ck_assert_uint_eq(cursor, array->array.raw.len);
    const struct gguf_tensor *tensor = gguf_find_tensor(gguf, "second");
    ck_assert(tensor->n_dims == 1 && tensor->dims[0] == 8 && tensor->dims[1] == 1 && tensor->size == 32);
    ck_assert(((const float *)tensor->data)[7] == 7);
    ck_assert_ptr_eq(gguf_find_tensor(gguf, "first"), gguf_tensor_at(gguf, 0));
    ck_assert_uint_eq(gguf_tensor_at(gguf, 0)->size, 68);
    ck_assert_ptr_null(gguf_find_tensor(gguf, "third"));
    gguf_free(gguf);
    buffer_deinit(&file);
}

START_TEST(every_type_is_read_in_both_versions)
{
    check_small_file(2);
    check_small_file(3);
}
END_TEST

START_TEST(a_typed_read_says_what_is_wrong_and_leaves_its_output)
{
    struct buffer file = small_gguf(3);
    struct gguf *gguf = parse_gguf(&file);
    struct error err;
    uint32_t u = 77;
    ck_assert_int_eq(gguf_u32(gguf, "absent", &u, &err), GGUF_E_MISSING);
    static const struct {
        const char *key, *says;
    } cases[] = {
        {"i8", "negative"}, {"u64", "too large"}, {"f32", "f32"}, {"strings", "array"}, {"bool", "bool"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(gguf_u32(gguf, cases[i].key, &u, &err), -EINVAL);
        ck_assert_ptr_nonnull(strstr(err.text, cases[i].key));
        ck_assert_ptr_nonnull(strstr(err.text, cases[i].says));
    }
    ck_assert_uint_eq(u, 77);
    ck_assert_int_eq(gguf_string(gguf, "u8", &(struct bytes){0}, &err), -EINVAL);
    ck_assert_int_eq(gguf_bool(gguf, "u8", &(bool){0}, &err), -EINVAL);
    ck_assert_int_eq(gguf_f32(gguf, "string", &(float){0}, &err), -EINVAL);
    gguf_free(gguf);
    buffer_deinit(&file);
}
END_TEST

START_TEST(a_file_cut_at_any_byte_is_refused)
{
    struct buffer file = small_gguf(3);
    for (size_t len = 0; len < file.len; len++) {
        struct gguf *gguf = NULL;
        struct error err = {0};
        uint8_t *cut = malloc(len + 1); /* of its own, so that a sanitizer sees one byte too many */
        memcpy(cut, file.data, len);
        ck_assert_msg(gguf_parse(cut, len, &gguf, &err) == -EINVAL, "%zu bytes", len);
        ck_assert_msg(strstr(err.text, "truncated"), "%zu bytes: %s", len, err.text);
        ck_assert_ptr_null(gguf);
        free(cut);
    }
    buffer_deinit(&file);
}
END_TEST

START_TEST(a_changed_byte_never_does_worse_than_an_error)
{
    struct buffer file = small_gguf(3);
    for (size_t i = 0; i < file.len; i++) {
        for (int bit = 0; bit < 9; bit++) {
            uint8_t old = file.data[i];
            file.data[i] = bit == 8 ? 0xff : (uint8_t)(old ^ 1 << bit);
            struct gguf *gguf = NULL;
            struct error err = {0};
            uint8_t digest[16];
            int r = gguf_parse(file.data, file.len, &gguf, &err);
            ck_assert(r == 0 || (r == -EINVAL && err.text[0]));
            if (r == 0)
                gguf_digest(gguf, 1, NULL, NULL, digest);
            gguf_free(gguf);
            file.data[i] = old;
        }
    }
    buffer_deinit(&file);
}
END_TEST

static void expect_refusal(struct buffer *file, const char *says)
{
    struct gguf *gguf = NULL;
    struct error err = {0};
    int r = gguf_parse(file->data, file->len, &gguf, &err);
    ck_assert_msg(r == -EINVAL, "\"%s\" expected", says);
    ck_assert_msg(strstr(err.text, says), "\"%s\" expected: %s", says, err.text);
    buffer_deinit(file);
}

START_TEST(what_is_no_gguf_file_is_told_so)
{
    struct buffer b = {0};
    raw(&b, "PK\3\4 and so on, and so on", 24);
    expect_refusal(&b, "not a GGUF file (it begins with 50 4b 03 04)");
    raw_head(&b, 1, 0, 0);
    expect_refusal(&b, "version 1 is not supported");
    raw_head(&b, 4, 0, 0);
    expect_refusal(&b, "version 4 is not supported");
    raw_head(&b, 3u << 24, 0, 0);
    expect_refusal(&b, "big-endian");
}
END_TEST

START_TEST(absurd_counts_are_refused_before_any_work)
{
    struct buffer b = {0};
    raw_head(&b, 3, UINT64_MAX, 0);
    expect_refusal(&b, "18446744073709551615 tensors");
    raw_head(&b, 3, 0, UINT64_MAX / 2);
    expect_refusal(&b, "metadata pairs");
    raw_head(&b, 3, 60000, 60000);
    expect_refusal(&b, "do not fit");
    raw_head(&b, 3, 0, 1);
    raw_string(&b, "k"), raw_u32(&b, GGUF_ARRAY), raw_u32(&b, GGUF_U64), raw_u64(&b, UINT64_MAX / 4);
    expect_refusal(&b, "metadata k needs");
    raw_head(&b, 3, 0, 1);
    raw_string(&b, "k"), raw_u32(&b, GGUF_ARRAY), raw_u32(&b, GGUF_STRING), raw_u64(&b, UINT64_MAX);
    expect_refusal(&b, "truncated");
    raw_head(&b, 3, 0, 1);
    raw_u64(&b, UINT64_MAX), raw_zeros(&b, 16);
    expect_refusal(&b, "the name of metadata pair 0");
}
END_TEST

START_TEST(bad_metadata_is_named)
{
    struct buffer b = {0};
    raw_head(&b, 3, 0, 1);
    raw_string(&b, "odd"), raw_u32(&b, 13), raw_zeros(&b, 8);
    expect_refusal(&b, "metadata odd has unknown type 13");
    raw_head(&b, 3, 0, 1);
    raw_string(&b, "nest"), raw_u32(&b, GGUF_ARRAY), raw_u32(&b, GGUF_ARRAY), raw_u64(&b, 1),
        raw_zeros(&b, 16);
    expect_refusal(&b, "metadata nest is an array of type 9");
    raw_head(&b, 3, 0, 1);
    raw_string(&b, "maybe"), raw_u32(&b, GGUF_BOOL), raw(&b, "\2", 1);
    expect_refusal(&b, "metadata maybe has the invalid boolean value 2");
    raw_head(&b, 3, 0, 1);
    raw_string(&b, ""), raw_u32(&b, GGUF_U32), raw_u32(&b, 1);
    expect_refusal(&b, "has 0 bytes");
    raw_head(&b, 3, 0, 2);
    raw_pair_u32(&b, "twin", 1), raw_pair_u32(&b, "twin", 1);
    expect_refusal(&b, "duplicate metadata twin");
    static const uint32_t alignments[] = {0, 4, 12, 48};
    for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; i++) {
        raw_head(&b, 3, 0, 1);
        raw_pair_u32(&b, "general.alignment", alignments[i]);
        expect_refusal(&b, "general.alignment must be a power of two");
    }
    raw_head(&b, 3, 0, 1);
    raw_string(&b, "bad\nkey\033[2J"), raw_u32(&b, 99);
    expect_refusal(&b, "metadata bad?key?[2J has unknown type 99");
}
END_TEST

/* One tensor over 64 bytes of data. */
static void expect_tensor_refusal(uint32_t n_dims, const uint64_t *dims, uint32_t format, uint64_t offset,
                                  const char *says)
{
    struct buffer b = {0};
    raw_head(&b, 3, 1, 0);
    raw_tensor(&b, "t", n_dims, dims, format, offset);
    raw_pad(&b, 32);
    raw_zeros(&b, 64);
    expect_refusal(&b, says);
}

START_TEST(bad_tensors_are_named)
{
    const uint64_t one[4] = {16}, five[5] = {1, 1, 1, 1, 1}, zero[2] = {0, 4};
    const uint64_t huge[3] = {1ull << 32, 1ull << 31, 2}, large[4] = {1ull << 40, 1ull << 22};
    const uint64_t wraps[4] = {1ull << 32, 1ull << 32, 1, 1}, ragged[1] = {33};
    expect_tensor_refusal(0, one, FORMAT_F32, 0, "tensor t has 0 dimensions");
    expect_tensor_refusal(5, five, FORMAT_F32, 0, "tensor t has 5 dimensions");
    expect_tensor_refusal(2, zero, FORMAT_F32, 0, "tensor t: dimension 0 is 0");
    expect_tensor_refusal(1, one, 4, 0, "tensor t has unknown format 4");
    expect_tensor_refusal(1, one, 4000000000u, 0, "tensor t has unknown format 4000000000");
    expect_tensor_refusal(3, huge, FORMAT_F32, 0, "overflow");
    expect_tensor_refusal(2, wraps, FORMAT_F32, 0, "overflow");
    expect_tensor_refusal(2, large, FORMAT_F32, 0, "overflows");
    expect_tensor_refusal(1, ragged, FORMAT_Q8_0, 0,
                          "rows of 33 elements are not a multiple of the Q8_0 block size 32");
    expect_tensor_refusal(1, one, FORMAT_F32, 8, "not a multiple of the alignment");
    expect_tensor_refusal(1, one, FORMAT_F32, 32, "truncated");
    expect_tensor_refusal(1, one, FORMAT_F32, UINT64_MAX - 31, "truncated");
    struct buffer b = {0};
    raw_head(&b, 3, 2, 0);
    raw_tensor(&b, "t", 1, one, FORMAT_F32, 0), raw_tensor(&b, "t", 1, one, FORMAT_F32, 64);
    raw_pad(&b, 32), raw_zeros(&b, 128);
    expect_refusal(&b, "duplicate tensor t");
}
END_TEST

/* Over 160 bytes: "a" and "b" of 64 at these offsets, "c" of 32 at the front. */
static struct buffer three_tensors(uint64_t at_a, uint64_t at_b)
{
    struct buffer b = {0};
    raw_head(&b, 3, 3, 0);
    raw_tensor(&b, "a", 1, (uint64_t[]){16}, FORMAT_F32, at_a);
    raw_tensor(&b, "b", 1, (uint64_t[]){16}, FORMAT_F32, at_b);
    raw_tensor(&b, "c", 1, (uint64_t[]){8}, FORMAT_F32, 0);
    raw_pad(&b, 32), raw_zeros(&b, 160);
    return b;
}

START_TEST(no_byte_belongs_to_two_tensors)
{
    struct buffer b = three_tensors(96, 32);
    gguf_free(parse_gguf(&b)); /* in any order, end to end */
    buffer_deinit(&b);
    b = three_tensors(96, 64);
    expect_refusal(&b, "tensors b and a overlap");
    b = three_tensors(64, 64);
    expect_refusal(&b, "overlap");
    b = three_tensors(96, 0);
    expect_refusal(&b, "overlap");
}
END_TEST

START_TEST(an_alignment_of_its_own_is_honoured)
{
    struct buffer b = {0};
    raw_head(&b, 3, 2, 1);
    raw_pair_u32(&b, "general.alignment", 256);
    raw_tensor(&b, "a", 1, (uint64_t[]){1}, FORMAT_F32, 0);
    raw_tensor(&b, "b", 1, (uint64_t[]){1}, FORMAT_F32, 256);
    raw_pad(&b, 256);
    raw(&b, &(float){3}, 4);
    raw_pad(&b, 256);
    raw(&b, &(float){4}, 4);
    struct gguf *gguf = parse_gguf(&b);
    ck_assert(*(const float *)gguf_find_tensor(gguf, "a")->data == 3);
    ck_assert(*(const float *)gguf_find_tensor(gguf, "b")->data == 4);
    gguf_free(gguf);
    buffer_deinit(&b);
}
END_TEST

START_TEST(borrowed_bytes_are_not_given_back)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 8 * page;
    struct gguf *gguf = NULL;
    struct buffer file = small_gguf(3);
    uint8_t *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(bytes, MAP_FAILED);
    memset(bytes, 0x5a, size);
    memcpy(bytes, file.data, file.len);
    ck_assert_int_eq(gguf_parse(bytes, size, &gguf, NULL), 0);
    gguf_give_back(gguf, bytes, size);
    for (size_t i = file.len; i < size; i++)
        ck_assert_uint_eq(bytes[i], 0x5a);
    gguf_free(gguf);
    munmap(bytes, size);
    buffer_deinit(&file);
}
END_TEST

START_TEST(a_file_that_changes_is_noticed_and_one_that_is_replaced_is_not)
{
    char dir[RUNDIR_PATH_MAX + 1], path[100], other[100];
    struct error err;
    struct gguf *gguf;
    struct stat st;
    struct buffer file = small_gguf(3);
    ck_assert_int_eq(rundir_temporary(dir, &err), 0);
    snprintf(path, sizeof path, "%s/a.gguf", dir);
    snprintf(other, sizeof other, "%s/b.gguf", dir);
    for (int i = 0; i < 2; i++) {
        FILE *out = fopen(i ? path : other, "we");
        ck_assert_uint_eq(fwrite(file.data, 1, file.len, out), file.len);
        fclose(out);
    }
    ck_assert_msg(gguf_open(path, &gguf, &err) == 0, "%s", err.text);
    ck_assert_int_eq(gguf_check_unchanged(gguf, &err), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    const struct timespec later[] = {st.st_atim, {st.st_mtim.tv_sec, (st.st_mtim.tv_nsec + 1) % 1000000000}};
    const struct timespec same[] = {st.st_atim, st.st_mtim};
    utimensat(AT_FDCWD, path, later, 0);
    ck_assert_int_eq(gguf_check_unchanged(gguf, &err), -ESTALE);
    ck_assert_ptr_nonnull(strstr(err.text, "a.gguf was written to while being read"));
    utimensat(AT_FDCWD, path, same, 0);
    ck_assert_int_eq(gguf_check_unchanged(gguf, &err), -ESTALE); /* a time set back hides nothing */
    ck_assert_ptr_nonnull(strstr(err.text, "a.gguf was changed while being read"));
    ck_assert_int_eq(truncate(path, st.st_size + 1), 0);
    ck_assert_int_eq(gguf_check_unchanged(gguf, &err), -ESTALE);
    ck_assert_ptr_nonnull(strstr(err.text, "a.gguf changed size while being read, from "));
    ck_assert_int_eq(rename(other, path), 0);
    ck_assert_int_eq(gguf_check_unchanged(gguf, &err), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(gguf_check_unchanged(gguf, &err), 0);
    ck_assert_ptr_nonnull(gguf_find(gguf, "string"));
    gguf_free(gguf);
    rundir_remove(dir);
    buffer_deinit(&file);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, every_type_is_read_in_both_versions);
    tcase_add_test(tests, a_typed_read_says_what_is_wrong_and_leaves_its_output);
    tcase_add_test(tests, a_file_cut_at_any_byte_is_refused);
    tcase_add_test(tests, a_changed_byte_never_does_worse_than_an_error);
    tcase_add_test(tests, what_is_no_gguf_file_is_told_so);
    tcase_add_test(tests, absurd_counts_are_refused_before_any_work);
    tcase_add_test(tests, bad_metadata_is_named);
    tcase_add_test(tests, bad_tensors_are_named);
    tcase_add_test(tests, no_byte_belongs_to_two_tensors);
    tcase_add_test(tests, an_alignment_of_its_own_is_honoured);
    tcase_add_test(tests, borrowed_bytes_are_not_given_back);
    tcase_add_test(tests, a_file_that_changes_is_noticed_and_one_that_is_replaced_is_not);
}

int main(void)
{
    return run_tests("gguf", add);
}
