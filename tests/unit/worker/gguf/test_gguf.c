/* SPDX-License-Identifier: MIT */
#include "worker/gguf/gguf.h"
#include "tests/unit/run.h"
#include "tests/unit/worker/gguf/raw_gguf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/rundir.h"

/* A valid file with every type of value, two tensors, and no padding behind the last byte. */
static struct buffer small_file(uint32_t version)
{
    struct buffer b = {0};
    uint64_t n = 3;
    raw_head(&b, version, 2, 15);
    raw_string(&b, "u8"), raw_u32(&b, GGUF_U8), raw(&b, "\xfe", 1);
    raw_string(&b, "i8"), raw_u32(&b, GGUF_I8), raw(&b, "\xfe", 1);
    raw_string(&b, "u16"), raw_u32(&b, GGUF_U16), raw(&b, "\xfe\xff", 2);
    raw_string(&b, "i16"), raw_u32(&b, GGUF_I16), raw(&b, "\xfe\xff", 2);
    raw_pair_u32(&b, "u32", 4000000000u);
    raw_string(&b, "i32"), raw_u32(&b, GGUF_I32), raw_u32(&b, (uint32_t)-2);
    raw_string(&b, "f32"), raw_u32(&b, GGUF_F32), raw(&b, &(float){1.5f}, 4);
    raw_string(&b, "bool"), raw_u32(&b, GGUF_BOOL), raw(&b, "\1", 1);
    raw_string(&b, "string"), raw_u32(&b, GGUF_STRING), raw_string(&b, "grind");
    raw_string(&b, "u64"), raw_u32(&b, GGUF_U64), raw_u64(&b, 1ull << 40);
    raw_string(&b, "i64"), raw_u32(&b, GGUF_I64), raw_u64(&b, (uint64_t)-5);
    raw_string(&b, "f64"), raw_u32(&b, GGUF_F64), raw(&b, &(double){0.1}, 8);
    raw_string(&b, "i16s"), raw_u32(&b, GGUF_ARRAY), raw_u32(&b, GGUF_I16), raw_u64(&b, n);
    raw(&b, (int16_t[]){-1, 2, -300}, 6);
    raw_string(&b, "strings"), raw_u32(&b, GGUF_ARRAY), raw_u32(&b, GGUF_STRING), raw_u64(&b, n);
    raw_string(&b, "a"), raw_string(&b, ""), raw_string(&b, "ccc");
    raw_string(&b, "f64s"), raw_u32(&b, GGUF_ARRAY), raw_u32(&b, GGUF_F64), raw_u64(&b, 1);
    raw(&b, &(double){2.5}, 8);
    raw_tensor(&b, "first", 2, (uint64_t[]){32, 2}, FORMAT_Q8_0, 0);
    raw_tensor(&b, "second", 1, (uint64_t[]){8}, FORMAT_F32, 96);
    raw_pad(&b, 32);
    raw_zeros(&b, 96);
    for (int i = 0; i < 8; i++)
        raw(&b, &(float){(float)i}, 4);
    return b;
}

static struct gguf *parse(const struct buffer *file)
{
    struct gguf *gguf = NULL;
    struct error err = {0};
    int r = gguf_parse(file->data, file->len, &gguf, &err);
    ck_assert_msg(r == 0, "%s", err.text);
    return gguf;
}

static void check_small_file(uint32_t version)
{
    struct buffer file = small_file(version);
    struct gguf *gguf = parse(&file);
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
    struct buffer file = small_file(3);
    struct gguf *gguf = parse(&file);
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
    struct buffer file = small_file(3);
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
    struct buffer file = small_file(3);
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
    expect_refusal(&b, "metadata maybe is the truth value 2");
    raw_head(&b, 3, 0, 1);
    raw_string(&b, ""), raw_u32(&b, GGUF_U32), raw_u32(&b, 1);
    expect_refusal(&b, "has 0 bytes");
    raw_head(&b, 3, 0, 2);
    raw_pair_u32(&b, "twin", 1), raw_pair_u32(&b, "twin", 1);
    expect_refusal(&b, "metadata twin comes twice");
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
                          "rows of 33 elements are no multiple of the Q8_0 block of 32");
    expect_tensor_refusal(1, one, FORMAT_F32, 8, "no multiple of the alignment");
    expect_tensor_refusal(1, one, FORMAT_F32, 32, "truncated");
    expect_tensor_refusal(1, one, FORMAT_F32, UINT64_MAX - 31, "truncated");
    struct buffer b = {0};
    raw_head(&b, 3, 2, 0);
    raw_tensor(&b, "t", 1, one, FORMAT_F32, 0), raw_tensor(&b, "t", 1, one, FORMAT_F32, 64);
    raw_pad(&b, 32), raw_zeros(&b, 128);
    expect_refusal(&b, "tensor t comes twice");
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
    gguf_free(parse(&b)); /* in any order, end to end */
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
    struct gguf *gguf = parse(&b);
    ck_assert(*(const float *)gguf_find_tensor(gguf, "a")->data == 3);
    ck_assert(*(const float *)gguf_find_tensor(gguf, "b")->data == 4);
    gguf_free(gguf);
    buffer_deinit(&b);
}
END_TEST

static int fill_from(void *arg, void *out, size_t size)
{
    memcpy(out, arg, size);
    return 0;
}

/* The file of a model of `n` floats that are zeros, but for the one at `i`. */
static struct gguf *open_zeros(const char *path, size_t n, size_t i)
{
    struct error err = {0};
    struct gguf *gguf = NULL;
    float *data = calloc(n, sizeof *data);
    data[i] = 1;
    struct gguf_writer *writer;
    ck_assert_int_eq(gguf_writer_new(&writer), 0);
    ck_assert_int_eq(gguf_writer_tensor(writer, "x", 1, (uint64_t[]){n}, FORMAT_F32, fill_from, data), 0);
    ck_assert_msg(gguf_writer_write(writer, path, &err) == 0, "%s", err.text);
    gguf_writer_free(writer);
    free(data);
    ck_assert_msg(gguf_open(path, &gguf, &err) == 0, "%s", err.text);
    return gguf;
}

static bool count(void *arg)
{
    return ++*(uint32_t *)arg > 0;
}

START_TEST(the_digest_sees_every_byte_of_a_tensor_whatever_the_threads)
{
    enum { N = 3 << 20 }; /* three pieces, and the beginning of a fourth */
    static const size_t deep[] = {0, N / 2, N / 2 + 1, N - 1};
    char dir[RUNDIR_PATH_MAX + 1], path[100];
    uint8_t digests[4][16], again[16];
    ck_assert_int_eq(rundir_temporary(dir, NULL), 0);
    snprintf(path, sizeof path, "%s/a.gguf", dir);
    for (int i = 0; i < 4; i++) {
        uint32_t progress = 0;
        struct gguf *gguf = open_zeros(path, N, deep[i]);
        ck_assert_int_eq(gguf_digest(gguf, 1, count, &progress, digests[i]), 0);
        ck_assert_uint_eq(progress, 4);
        for (uint32_t n_threads = 0; n_threads <= 40; n_threads += 8) {
            ck_assert_int_eq(gguf_digest(gguf, n_threads, NULL, NULL, again), 0);
            ck_assert_mem_eq(again, digests[i], 16);
        }
        for (int j = 0; j < i; j++)
            ck_assert_mem_ne(digests[i], digests[j], 16);
        gguf_free(gguf);
    }
    rundir_remove(dir);
}
END_TEST

static bool key_of(const char *path, uint8_t ret_key[16])
{
    bool settled;
    struct gguf *gguf = NULL;
    ck_assert_int_eq(gguf_open(path, &gguf, NULL), 0);
    ck_assert(gguf_file_key(gguf, ret_key, &settled));
    gguf_free(gguf);
    return settled;
}

START_TEST(the_key_of_a_file_changes_with_it_and_is_no_proof_while_it_is_new)
{
    char dir[RUNDIR_PATH_MAX + 1], path[100];
    uint8_t key[16], other[16];
    struct stat st;
    bool settled;
    ck_assert_int_eq(rundir_temporary(dir, NULL), 0);
    snprintf(path, sizeof path, "%s/a.gguf", dir);
    gguf_free(open_zeros(path, 64, 0));
    ck_assert(!key_of(path, key));
    ck_assert(!key_of(path, other));
    ck_assert_mem_eq(key, other, 16);
    ck_assert_int_eq(stat(path, &st), 0);

    /* Written to in place, and its time set back. */
    const struct timespec same[] = {st.st_atim, st.st_mtim}, changed = st.st_ctim;
    /* Within a tick of the file system's clock it does not show. */
    while (stat(path, &st) == 0 && memcmp(&st.st_ctim, &changed, sizeof changed) == 0) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        ck_assert_int_eq(pwrite(fd, "\1", 1, st.st_size - 1), 1);
        close(fd);
        utimensat(AT_FDCWD, path, same, 0);
    }
    ck_assert(!key_of(path, other));
    ck_assert_mem_ne(key, other, 16);

    struct buffer file = small_file(3);
    struct gguf *gguf = parse(&file);
    ck_assert(!gguf_file_key(gguf, key, &settled));
    gguf_free(gguf);
    buffer_deinit(&file);
    sleep(4);
    ck_assert(key_of(path, key));
    ck_assert_mem_eq(key, other, 16);
    rundir_remove(dir);
}
END_TEST

START_TEST(the_digest_sees_metadata_names_and_data)
{
    struct buffer file = small_file(3);
    uint8_t first[16], second[16];
    struct gguf *gguf = parse(&file);
    gguf_digest(gguf, 1, NULL, NULL, first);
    gguf_digest(gguf, 1, NULL, NULL, second);
    ck_assert_mem_eq(first, second, 16);
    gguf_free(gguf);
    const char *const changes[] = {"grind", "second"};
    for (int i = 0; i < 3; i++) {
        uint8_t *at = i < 2 ? memmem(file.data, file.len, changes[i], 5) : file.data + file.len - 1;
        *at ^= 1;
        gguf = parse(&file);
        gguf_digest(gguf, 1, NULL, NULL, second);
        gguf_free(gguf);
        *at ^= 1;
        ck_assert_mem_ne(first, second, 16);
    }
    buffer_deinit(&file);
}
END_TEST

static int fill_counting(void *arg, void *out, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)out)[i] = (uint8_t)(i + *(int *)arg);
    return 0;
}

static int fill_failing(void *arg, void *out, size_t size)
{
    return -EIO;
}

START_TEST(borrowed_bytes_are_not_given_back)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 8 * page;
    struct gguf *gguf = NULL;
    struct buffer file = small_file(3);
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

START_TEST(what_the_writer_writes_is_read_back)
{
    char dir[RUNDIR_PATH_MAX + 1], path[100], again[100];
    struct gguf_writer *writer;
    struct gguf *gguf, *copy;
    struct error err;
    int seven = 7, nine = 9;
    ck_assert_int_eq(rundir_temporary(dir, &err), 0);
    snprintf(path, sizeof path, "%s/a.gguf", dir);
    snprintf(again, sizeof again, "%s/b.gguf", dir);
    struct buffer raw_file = small_file(3);
    struct gguf *source = parse(&raw_file);
    ck_assert_int_eq(gguf_writer_new(&writer), 0);
    for (size_t i = 0; i < gguf_n_pairs(source); i++)
        ck_assert_int_eq(gguf_writer_pair(writer, gguf_pair_at(source, i)), 0);
    ck_assert_int_eq(gguf_writer_strings(writer, "s", (struct bytes[]){BYTES_LITERAL("x"), {0}}, 2), 0);
    ck_assert_int_eq(gguf_writer_f32s(writer, "f", (float[]){1, 2}, 2), 0);
    ck_assert_int_eq(gguf_writer_i32s(writer, "i", (int32_t[]){-1}, 1), 0);
    ck_assert_int_eq(gguf_writer_tensor(writer, "a", 1, (uint64_t[]){5}, FORMAT_F16, fill_counting, &seven),
                     0);
    ck_assert_int_eq(
        gguf_writer_tensor(writer, "b", 2, (uint64_t[]){256, 3}, FORMAT_Q4_K, fill_counting, &nine), 0);
    ck_assert_msg(gguf_writer_write(writer, path, &err) == 0, "%s", err.text);
    gguf_writer_free(writer);
    ck_assert_msg(gguf_open(path, &gguf, &err) == 0, "%s", err.text);
    for (size_t i = 0; i < gguf_n_pairs(source); i++) {
        const struct gguf_pair *a = gguf_pair_at(source, i), *b = gguf_pair_at(gguf, i);
        ck_assert(bytes_equal(a->key, b->key) && a->value.type == b->value.type);
        if (a->value.type == GGUF_ARRAY)
            ck_assert(bytes_equal(a->value.array.raw, b->value.array.raw));
        else if (a->value.type == GGUF_STRING)
            ck_assert(bytes_equal(a->value.string, b->value.string));
        else
            ck_assert_uint_eq(a->value.u, b->value.u);
    }
    ck_assert_uint_eq(gguf_find(gguf, "s")->array.n, 2);
    ck_assert_double_eq(gguf_array_real(gguf_find(gguf, "f"), 1), 2);
    const struct gguf_tensor *b = gguf_find_tensor(gguf, "b");
    ck_assert(b->dims[1] == 3 && b->size == 432 && ((const uint8_t *)b->data)[431] == (uint8_t)(431 + 9));
    ck_assert_int_eq(access(again, F_OK), -1);
    ck_assert_int_eq(gguf_open(again, &copy, &err), -ENOENT);
    gguf_free(gguf);
    gguf_free(source);
    buffer_deinit(&raw_file);
    rundir_remove(dir);
}
END_TEST

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void expect_text(const char *path, const char *text)
{
    char found[32] = "";
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(found, sizeof found, file));
    fclose(file);
    ck_assert_str_eq(found, text);
}

static int count_files(const char *dir)
{
    int n = 0;
    DIR *open = opendir(dir);
    for (struct dirent *entry; (entry = readdir(open));)
        n += entry->d_name[0] != '.';
    closedir(open);
    return n;
}

START_TEST(a_file_that_changes_is_noticed_and_one_that_is_replaced_is_not)
{
    char dir[RUNDIR_PATH_MAX + 1], path[100], other[100];
    struct error err;
    struct gguf *gguf;
    struct stat st;
    struct buffer file = small_file(3);
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
    ck_assert_ptr_nonnull(strstr(err.text, "a.gguf was written to while it was read"));
    utimensat(AT_FDCWD, path, same, 0);
    ck_assert_int_eq(gguf_check_unchanged(gguf, &err), -ESTALE); /* a time set back hides nothing */
    ck_assert_ptr_nonnull(strstr(err.text, "a.gguf was changed while it was read"));
    ck_assert_int_eq(truncate(path, st.st_size + 1), 0);
    ck_assert_int_eq(gguf_check_unchanged(gguf, &err), -ESTALE);
    ck_assert_ptr_nonnull(strstr(err.text, "a.gguf changed its size while it was read, from "));
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

START_TEST(a_failed_write_leaves_what_was_there)
{
    char dir[RUNDIR_PATH_MAX + 1], path[100], part[100];
    struct gguf_writer *writer;
    struct error err;
    ck_assert_int_eq(rundir_temporary(dir, &err), 0);
    snprintf(path, sizeof path, "%s/a.gguf", dir);
    snprintf(part, sizeof part, "%s/a.gguf.part", dir);
    write_text(path, "before");
    write_text(part, "a download");
    ck_assert_int_eq(gguf_writer_new(&writer), 0);
    ck_assert_int_eq(gguf_writer_tensor(writer, "x", 1, (uint64_t[]){5}, FORMAT_F16, fill_failing, NULL), 0);
    ck_assert_int_eq(gguf_writer_write(writer, path, &err), -EIO);
    ck_assert_ptr_nonnull(strstr(err.text, "tensor x"));
    expect_text(path, "before");
    expect_text(part, "a download");
    ck_assert_int_eq(count_files(dir), 2);
    ck_assert_int_eq(gguf_writer_write(writer, "/nowhere/at/all.gguf", &err), -ENOENT);
    gguf_writer_free(writer);

    ck_assert_int_eq(gguf_writer_new(&writer), 0);
    ck_assert_int_eq(gguf_writer_write(writer, path, &err), 0);
    gguf_writer_free(writer);
    expect_text(part, "a download");
    ck_assert_int_eq(count_files(dir), 2);
    rundir_remove(dir);
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
    tcase_add_test(tests, the_digest_sees_metadata_names_and_data);
    tcase_add_test(tests, the_digest_sees_every_byte_of_a_tensor_whatever_the_threads);
    tcase_add_test(tests, the_key_of_a_file_changes_with_it_and_is_no_proof_while_it_is_new);
    tcase_add_test(tests, borrowed_bytes_are_not_given_back);
    tcase_add_test(tests, what_the_writer_writes_is_read_back);
    tcase_add_test(tests, a_file_that_changes_is_noticed_and_one_that_is_replaced_is_not);
    tcase_add_test(tests, a_failed_write_leaves_what_was_there);
}

int main(void)
{
    return run_tests("gguf", add);
}
