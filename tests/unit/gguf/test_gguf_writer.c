/* SPDX-License-Identifier: MIT */
/* Files that are written: what is read back, and what a failed write leaves. */

#include "tests/unit/run.h"
#include "tests/unit/gguf/small_gguf.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files/rundir.h"
#include "gguf/gguf_values.h"
#include "gguf/gguf_writer.h"

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
    struct buffer raw_file = small_gguf(3);
    struct gguf *source = parse_gguf(&raw_file);
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
    struct stat file;
    ck_assert_int_eq(stat(path, &file), 0);
    ck_assert_int_eq(file.st_size % 32, 0); /* the alignment, on which the last tensor ends */
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
    tcase_add_test(tests, what_the_writer_writes_is_read_back);
    tcase_add_test(tests, a_failed_write_leaves_what_was_there);
}

int main(void)
{
    return run_tests("gguf_writer", add);
}
