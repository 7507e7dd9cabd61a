/* SPDX-License-Identifier: MIT */
/* What tells models apart: the digest of a file, and the key that stands for it while it is the same. */

#include "tests/unit/run.h"
#include "tests/unit/worker/gguf/small_gguf.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/rundir.h"

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

    struct buffer file = small_gguf(3);
    struct gguf *gguf = parse_gguf(&file);
    ck_assert(!gguf_file_key(gguf, key, &settled));
    gguf_free(gguf);
    buffer_deinit(&file);
    sleep(4);
    ck_assert(key_of(path, key));
    ck_assert_mem_eq(key, other, 16);
    rundir_remove(dir);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_digest_sees_metadata_names_and_data);
    tcase_add_test(tests, the_digest_sees_every_byte_of_a_tensor_whatever_the_threads);
    tcase_add_test(tests, the_key_of_a_file_changes_with_it_and_is_no_proof_while_it_is_new);
}

int main(void)
{
    return run_tests("gguf_digest", add);
}
