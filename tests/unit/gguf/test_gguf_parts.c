/* SPDX-License-Identifier: MIT */
#include "tests/unit/run.h"
#include "gguf/gguf.h"
#include "gguf/gguf_digest.h"
#include "gguf/gguf_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files/rundir.h"

struct part {
    const char *name; /* of the file */
    uint32_t no, count;
    uint32_t announced;    /* split.tensors.count; 0 leaves it out */
    const char *tensor[2]; /* names; NULL for none */
};

static char dir[RUNDIR_PATH_MAX + 1];
static char path[RUNDIR_PATH_MAX + 40];

static void set_up(void)
{
    ck_assert_int_eq(rundir_temporary(dir, NULL), 0);
}

static void tear_down(void)
{
    rundir_remove(dir);
}

static const char *in_dir(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

/* The tensor's first letter, all over. */
static int fill(void *arg, void *out, size_t size)
{
    memset(out, *(const char *)arg, size);
    return 0;
}

static void write_part(const struct part *part)
{
    struct gguf_writer *writer;
    struct error err;
    ck_assert_int_eq(gguf_writer_new(&writer), 0);
    ck_assert_int_eq(gguf_writer_u32(writer, "split.no", part->no), 0);
    ck_assert_int_eq(gguf_writer_u32(writer, "split.count", part->count), 0);
    if (part->announced)
        ck_assert_int_eq(gguf_writer_u32(writer, "split.tensors.count", part->announced), 0);
    if (part->no == 0)
        ck_assert_int_eq(gguf_writer_string(writer, "general.name", "parted"), 0);
    for (int i = 0; i < 2 && part->tensor[i]; i++)
        ck_assert_int_eq(gguf_writer_tensor(writer, part->tensor[i], 1, (uint64_t[]){8}, FORMAT_F32, fill,
                                            (void *)part->tensor[i]),
                         0);
    ck_assert_msg(gguf_writer_write(writer, in_dir(part->name), &err) == 0, "%s", err.text);
    gguf_writer_free(writer);
}

static void expect_refusal(const char *name, int code, const char *says)
{
    struct gguf *gguf = NULL;
    struct error err = {0};
    ck_assert_int_eq(gguf_open(in_dir(name), &gguf, &err), code);
    ck_assert_msg(strstr(err.text, says), "\"%s\" expected: %s", says, err.text);
    ck_assert_ptr_null(gguf);
}

START_TEST(all_parts_are_one_model)
{
    struct gguf *gguf;
    struct error err;
    write_part(&(struct part){"m-00001-of-00003.gguf", 0, 3, 4, {"a", "b"}});
    write_part(&(struct part){"m-00002-of-00003.gguf", 1, 3, 4, {"c"}});
    write_part(&(struct part){"m-00003-of-00003.gguf", 2, 3, 4, {"d"}});
    ck_assert_msg(gguf_open(in_dir("m-00001-of-00003.gguf"), &gguf, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(gguf_n_tensors(gguf), 4);
    ck_assert_ptr_nonnull(gguf_find(gguf, "general.name"));
    for (const char *name = "a\0b\0c\0d\0"; *name; name += 2) {
        const struct gguf_tensor *tensor = gguf_find_tensor(gguf, name);
        ck_assert_ptr_nonnull(tensor);
        ck_assert_int_eq(((const char *)tensor->data)[31], *name);
    }
    uint8_t digest[16], other[16];
    gguf_digest(gguf, 1, NULL, NULL, digest);
    gguf_free(gguf);
    write_part(&(struct part){"m-00003-of-00003.gguf", 2, 3, 4, {"e"}});
    ck_assert_int_eq(gguf_open(in_dir("m-00001-of-00003.gguf"), &gguf, &err), 0);
    gguf_digest(gguf, 1, NULL, NULL, other);
    ck_assert_mem_ne(digest, other, 16);
    gguf_free(gguf);
}
END_TEST

START_TEST(a_missing_part_is_named)
{
    write_part(&(struct part){"m-00001-of-00002.gguf", 0, 2, 2, {"a"}});
    expect_refusal("m-00001-of-00002.gguf", -ENOENT, "part 2 of 2");
    expect_refusal("m-00001-of-00002.gguf", -ENOENT, "m-00002-of-00002.gguf");
}
END_TEST

START_TEST(a_model_is_opened_by_its_first_part)
{
    write_part(&(struct part){"m-00001-of-00002.gguf", 0, 2, 2, {"a"}});
    write_part(&(struct part){"m-00002-of-00002.gguf", 1, 2, 2, {"b"}});
    expect_refusal("m-00002-of-00002.gguf", -EINVAL, "part 2 of 2: open the first part");
}
END_TEST

START_TEST(parts_that_do_not_belong_together_are_refused)
{
    write_part(&(struct part){"m-00001-of-00002.gguf", 0, 2, 2, {"a"}});
    write_part(&(struct part){"m-00002-of-00002.gguf", 0, 2, 2, {"b"}});
    expect_refusal("m-00001-of-00002.gguf", -EINVAL, "it is part 1 of 2; expected part 2 of 2");
    write_part(&(struct part){"m-00002-of-00002.gguf", 1, 3, 2, {"b"}});
    expect_refusal("m-00001-of-00002.gguf", -EINVAL, "it is part 2 of 3");
    write_part(&(struct part){"m-00002-of-00002.gguf", 1, 2, 2, {"a"}});
    expect_refusal("m-00001-of-00002.gguf", -EINVAL, "duplicate tensor a");
    write_part(&(struct part){"m-00002-of-00002.gguf", 1, 2, 2, {"b", "c"}});
    expect_refusal("m-00001-of-00002.gguf", -EINVAL,
                   "the parts hold 3 tensors, but split.tensors.count is 2");
}
END_TEST

START_TEST(a_first_part_needs_a_name_that_leads_to_the_others)
{
    write_part(&(struct part){"renamed.gguf", 0, 2, 2, {"a"}});
    expect_refusal("renamed.gguf", -EINVAL, "must end in -00001-of-00002.gguf");
    write_part(&(struct part){"m-00001-of-00002.gguf", 0, 60000, 2, {"a"}});
    expect_refusal("m-00001-of-00002.gguf", -EINVAL, "is invalid");
}
END_TEST

START_TEST(a_broken_part_is_named)
{
    write_part(&(struct part){"m-00001-of-00002.gguf", 0, 2, 2, {"a"}});
    write_part(&(struct part){"m-00002-of-00002.gguf", 1, 2, 2, {"b"}});
    ck_assert_int_eq(truncate(in_dir("m-00002-of-00002.gguf"), 100), 0);
    expect_refusal("m-00001-of-00002.gguf", -EINVAL, "m-00002-of-00002.gguf: truncated at byte 100");
    ck_assert_int_eq(truncate(in_dir("m-00002-of-00002.gguf"), 0), 0);
    expect_refusal("m-00001-of-00002.gguf", -EINVAL, "m-00002-of-00002.gguf: not a GGUF file (it is empty)");
}
END_TEST

START_TEST(a_model_need_not_say_how_many_parts_or_tensors_it_has)
{
    struct gguf *gguf;
    struct error err;
    write_part(&(struct part){"m-00001-of-00002.gguf", 0, 2, 0, {"a"}});
    write_part(&(struct part){"m-00002-of-00002.gguf", 1, 2, 0, {"b"}});
    ck_assert_msg(gguf_open(in_dir("m-00001-of-00002.gguf"), &gguf, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(gguf_n_tensors(gguf), 2);
    ck_assert_ptr_nonnull(gguf_find_tensor(gguf, "a"));
    ck_assert_ptr_nonnull(gguf_find_tensor(gguf, "b"));
    gguf_free(gguf);
    write_part(&(struct part){"whole.gguf", 0, 0, 0, {"a"}});
    ck_assert_msg(gguf_open(in_dir("whole.gguf"), &gguf, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(gguf_n_tensors(gguf), 1);
    gguf_free(gguf);
}
END_TEST

START_TEST(a_model_has_1024_parts_at_most)
{
    write_part(&(struct part){"m-00001-of-01024.gguf", 0, 1024, 0, {"a"}});
    expect_refusal("m-00001-of-01024.gguf", -ENOENT, "part 2 of 1024, ");
    write_part(&(struct part){"m-00001-of-01025.gguf", 0, 1025, 0, {"a"}});
    expect_refusal("m-00001-of-01025.gguf", -EINVAL, "split.no 0 of split.count 1025 is invalid");
    write_part(&(struct part){"m-00001-of-00002.gguf", 2, 2, 0, {"a"}});
    expect_refusal("m-00001-of-00002.gguf", -EINVAL, "split.no 2 of split.count 2 is invalid");
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
    expect_refusal("", -EISDIR, "directory");
    expect_refusal("absent", -ENOENT, "absent: No such file");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, all_parts_are_one_model);
    tcase_add_test(tests, a_missing_part_is_named);
    tcase_add_test(tests, a_model_is_opened_by_its_first_part);
    tcase_add_test(tests, parts_that_do_not_belong_together_are_refused);
    tcase_add_test(tests, a_first_part_needs_a_name_that_leads_to_the_others);
    tcase_add_test(tests, a_broken_part_is_named);
    tcase_add_test(tests, a_model_need_not_say_how_many_parts_or_tensors_it_has);
    tcase_add_test(tests, a_model_has_1024_parts_at_most);
    tcase_add_test(tests, what_is_no_file_is_refused);
}

int main(void)
{
    return run_tests("gguf_parts", add);
}
