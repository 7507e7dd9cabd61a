/* SPDX-License-Identifier: MIT */
#include "common/system/shm.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(what_one_mapping_writes_another_reads)
{
    int fd;
    void *memory;
    const void *view;
    ck_assert_int_eq(shm_create("test", 8192, &fd), 0);
    ck_assert_int_eq(shm_map(fd, 8192, &memory), 0);
    ck_assert_int_eq(shm_map_readonly(fd, 8192, &view), 0);
    strcpy(memory, "grind");
    ck_assert_str_eq(view, "grind");
    ck_assert_int_eq(shm_map_readonly(fd, 8193, &view), -EINVAL);
    munmap(memory, 8192);
    munmap((void *)view, 8192);
    close(fd);
}
END_TEST

static long pages_of(int fd)
{
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    return (long)st.st_blocks * 512 / 4096;
}

START_TEST(a_segment_is_extended_without_memory_and_committed_in_parts)
{
    enum { PAGES = 1000 };
    int fd;
    void *memory;
    ck_assert_int_eq(shm_create("test", 4096, &fd), 0);
    ck_assert_int_eq(shm_map(fd, 4096, &memory), 0);
    strcpy(memory, "grind");
    ck_assert_int_eq(shm_extend(fd, PAGES * 4096), 0);
    ck_assert_int_lt(pages_of(fd), PAGES);
    ck_assert_int_eq(shm_commit(fd, 500 * 4096, 500 * 4096), 0);
    ck_assert_int_lt(pages_of(fd), PAGES);
    ck_assert_int_eq(shm_commit(fd, 0, 500 * 4096), 0);
    ck_assert_int_eq(pages_of(fd), PAGES);
    ck_assert_str_eq(memory, "grind");
    munmap(memory, 4096);
    close(fd);
}
END_TEST

START_TEST(sealing_content_needs_every_writer_gone)
{
    int fd;
    void *memory;
    ck_assert_int_eq(shm_create("test", 4096, &fd), 0);
    ck_assert_int_eq(shm_map(fd, 4096, &memory), 0);
    ck_assert_int_eq(shm_seal_content(fd), -EBUSY);
    munmap(memory, 4096);
    ck_assert_int_eq(shm_seal_content(fd), 0);
    ck_assert_int_eq(shm_map(fd, 4096, &memory), -EPERM);
    close(fd);
}
END_TEST

START_TEST(a_sealed_size_stays_and_so_does_the_right_to_write)
{
    int fd;
    void *memory;
    ck_assert_int_eq(shm_create("test", 4096, &fd), 0);
    ck_assert_int_eq(shm_seal_size(fd), 0);
    ck_assert_int_eq(ftruncate(fd, 0), -1);
    ck_assert_int_eq(shm_seal_content(fd), -EPERM);
    ck_assert_int_eq(shm_map(fd, 4096, &memory), 0);
    munmap(memory, 4096);
    close(fd);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, what_one_mapping_writes_another_reads);
    tcase_add_test(tests, a_segment_is_extended_without_memory_and_committed_in_parts);
    tcase_add_test(tests, sealing_content_needs_every_writer_gone);
    tcase_add_test(tests, a_sealed_size_stays_and_so_does_the_right_to_write);
}

int main(void)
{
    return run_tests("shm", add);
}
