/* SPDX-License-Identifier: MIT */
/* What tells models apart: the digest of a file. */

#include "tests/unit/run.h"
#include "tests/unit/gguf/small_gguf.h"

#include <stdlib.h>

#include "common/files/rundir.h"
#include "gguf/gguf_digest.h"
#include "gguf/gguf_writer.h"

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

START_TEST(the_digest_sees_metadata_names_and_data)
{
    struct buffer file = small_gguf(3);
    uint8_t first[16], second[16];
    struct gguf *gguf = parse_gguf(&file);
    gguf_digest(gguf, 1, NULL, NULL, first);
    gguf_digest(gguf, 1, NULL, NULL, second);
    ck_assert_mem_eq(first, second, 16);
    gguf_free(gguf);
    const char *const changes[] = {"grind", "second"};
    for (int i = 0; i < 3; i++) {
        uint8_t *at = i < 2 ? memmem(file.data, file.len, changes[i], 5) : file.data + file.len - 1;
        *at ^= 1;
        gguf = parse_gguf(&file);
        gguf_digest(gguf, 1, NULL, NULL, second);
        gguf_free(gguf);
        *at ^= 1;
        ck_assert_mem_ne(first, second, 16);
    }
    buffer_deinit(&file);
}
END_TEST

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

static void add(TCase *tests)
{
    tcase_add_test(tests, the_digest_sees_metadata_names_and_data);
    tcase_add_test(tests, the_digest_sees_every_byte_of_a_tensor_whatever_the_threads);
}

int main(void)
{
    return run_tests("gguf_digest", add);
}
