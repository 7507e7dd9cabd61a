/* SPDX-License-Identifier: MIT */
/* Which SIGBUS is a truncated model: each case in a child of its own, whose end and stderr are read. */

#include "gguf/truncation.h"
#include "tests/unit/child.h"
#include "tests/unit/run.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/files/rundir.h"

#define STATUS 42
#define SIZE   (1 << 20)

static char folder[RUNDIR_PATH_MAX + 1];

static void set_up(void)
{
    ck_assert_int_eq(rundir_temporary(folder, NULL), 0);
}

static void tear_down(void)
{
    rundir_remove(folder);
}

/* Maps a file of that name and empties it. */
static const char *map_and_truncate(const char *name)
{
    char path[RUNDIR_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w+e");
    if (!file || ftruncate(fileno(file), SIZE) < 0)
        _exit(1);
    const char *memory = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fileno(file), 0);
    if (memory == MAP_FAILED || ftruncate(fileno(file), 0) < 0)
        _exit(1);
    fclose(file);
    return memory;
}

static void touch(const char *byte)
{
    (void)*(const volatile char *)byte;
}

static void *touch_in_a_thread(void *arg)
{
    touch(arg);
    return NULL;
}

static void read_a_model(void)
{
    const char *other = map_and_truncate("other"), *model = map_and_truncate("model");
    (void)other;
    truncation_watch(model, SIZE, "model");
    touch(model + SIZE - 1);
}

static void read_a_model_in_two_threads(void)
{
    const char *model = map_and_truncate("model");
    pthread_t threads[2];
    truncation_watch(model, SIZE, "model");
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, touch_in_a_thread, (void *)(model + i * SIZE / 2));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void read_a_model_of_a_long_name(void)
{
    const char *model = map_and_truncate("model");
    char name[2000];
    memset(name, 'x', sizeof name);
    strcpy(name + sizeof name - 12, "/\x1b[31mmodel");
    truncation_watch(model, SIZE, name);
    touch(model);
}

static void read_another_file(void)
{
    const char *model = map_and_truncate("model"), *other = map_and_truncate("other");
    truncation_watch(model, SIZE, "model");
    touch(other);
}

static void read_a_model_that_was_let_go(void)
{
    const char *model = map_and_truncate("model"), *second = map_and_truncate("second");
    truncation_watch(model, SIZE, "model");
    truncation_forget(model);
    truncation_watch(second, SIZE, "second");
    touch(model);
}

static void be_sent_one(void)
{
    truncation_watch(map_and_truncate("model"), SIZE, "model");
    raise(SIGBUS);
}

/* Returns the exit status, or 1000 + the signal, and stderr. */
static int run(void (*act)(void), char ret_said[4096])
{
    struct child child;
    if (child_begin(&child)) {
        truncation_catch("child", STATUS);
        act();
        _exit(0);
    }
    const int status = child_end(&child, ret_said, 4096);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

START_TEST(a_truncated_model_is_one_line_and_the_status)
{
    char said[4096];
    ck_assert_int_eq(run(read_a_model, said), STATUS);
    ck_assert_str_eq(said, "child: model was truncated while being read\n");
    ck_assert_int_eq(run(read_a_model_in_two_threads, said), STATUS);
    ck_assert_str_eq(said, "child: model was truncated while being read\n");
    ck_assert_int_eq(run(read_a_model_of_a_long_name, said), STATUS);
    ck_assert_ptr_nonnull(strstr(said, "xxx/?[31mmodel was truncated while being read\n"));
}
END_TEST

START_TEST(any_other_bus_error_is_a_defect)
{
    /* A sanitizer has its own way of ending. */
    void (*const cases[])(void) = {read_another_file, read_a_model_that_was_let_go, be_sent_one};
    char said[4096];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = run(cases[i], said);
        ck_assert_msg(status != STATUS && status != 0, "case %zu: %d", i, status);
        ck_assert_ptr_null(strstr(said, "was truncated"));
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_truncated_model_is_one_line_and_the_status);
    tcase_add_test(tests, any_other_bus_error_is_a_defect);
}

int main(void)
{
    return run_tests("truncation", add);
}
