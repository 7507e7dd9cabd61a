/* SPDX-License-Identifier: MIT */
/* Which backend is chosen, from which plugins. Each test has a folder of its own with one plugin in it, made
 * by meson from plugin_for_tests.c. */

#include "tests/unit/run.h"
#include "engine/backend/backends.h"
#include "model/model.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/quern-plugins-XXXXXX", plugin[PATH_MAX];
static struct backend_choice choice;
static struct error err;

/* quern-cuda.so is PLUGIN_KIND `kind`. */
static void put(const char *kind)
{
    char from[PATH_MAX];
    snprintf(from, sizeof from, "%s/quern-%s.so", PLUGINS, kind);
    ck_assert_int_eq(symlink(from, plugin), 0);
}

static void open_folder(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(plugin, sizeof plugin, "%s/quern-cuda.so", folder);
    setenv("QUERN_PLUGINS", folder, 1);
    choice = (struct backend_choice){0};
    err.text[0] = 0;
}

static void close_folder(void)
{
    unlink(plugin);
    rmdir(folder);
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
}

static int choose(const char *device, const char *model_name)
{
    struct model model = {0};
    snprintf(model.params.name, sizeof model.params.name, "%s", model_name);
    return backend_choose(device, &model, &choice, &err);
}

/* Linked in the place of readlink(2), which tells where the program is. */
static bool readlink_fails;
ssize_t __real_readlink(const char *path, char *target, size_t size);
ssize_t __wrap_readlink(const char *path, char *target, size_t size);
ssize_t __wrap_readlink(const char *path, char *target, size_t size)
{
    errno = EACCES;
    return readlink_fails ? -1 : __real_readlink(path, target, size);
}

static void check_refusal(const char *expected_format)
{
    char expected[PATH_MAX + 512];
    snprintf(expected, sizeof expected, expected_format, plugin);
    ck_assert_int_eq(choose("cuda", "any"), -ENODEV);
    ck_assert_msg(strncmp(err.text, expected, strlen(expected)) == 0, "%s", err.text);
    ck_assert_ptr_null(choice.ops);
}

START_TEST(a_plugin_is_loaded_when_it_is_asked_for)
{
    put("sound");
    ck_assert_msg(choose("cuda", "any") == 0, "%s", err.text);
    ck_assert_str_eq(choice.ops->name, "plugin");
    ck_assert_uint_eq(choice.n_devices, 1);
    ck_assert_str_eq(choice.note.text, "");
}
END_TEST

START_TEST(devices_of_a_plugin_are_selected_before_they_are_counted)
{
    put("sound");
    ck_assert_msg(choose("cuda:some", "any") == 0, "%s", err.text);
    ck_assert_uint_eq(choice.n_devices, 2);
    ck_assert_int_eq(choose("cuda:bad", "any"), -ENODEV);
    ck_assert_str_eq(err.text, "no device \"cuda:bad\": no device is bad");
}
END_TEST

START_TEST(what_every_build_has_needs_no_plugin)
{
    ck_assert_int_eq(choose("cpu", "any"), 0);
    ck_assert_ptr_eq(choice.ops, &backend_cpu);
    ck_assert_int_eq(choose("null", "any"), 0);
    ck_assert_ptr_eq(choice.ops, &backend_null);
}
END_TEST

START_TEST(a_device_that_is_not_to_be_had_is_refused_with_the_reason)
{
    ck_assert_int_eq(choose("gpu", "any"), -EINVAL);
    ck_assert_str_eq(err.text, "unknown device \"gpu\"; available: " QUERN_DEVICES);
    static const char *const no_lists[] = {"cpu:0", "auto:1", "null:0", ":0", "cudacudacudacuda:0"};
    for (size_t i = 0; i < sizeof no_lists / sizeof *no_lists; i++)
        ck_assert_int_eq(choose(no_lists[i], "any"), -EINVAL);

    ck_assert_int_eq(choose("cuda", "any"), -ENODEV);
    char expected[PATH_MAX];
    snprintf(expected, sizeof expected, "no device \"cuda\": quern-cuda.so not found in %s", folder);
    ck_assert_str_eq(err.text, expected);

    put("none");
    check_refusal("no device \"cuda\": there is no driver");
}
END_TEST

START_TEST(a_plugin_of_another_build_is_refused_by_name)
{
    put("stale");
    check_refusal("no device \"cuda\": %s is from a different build than this program: version " QUERN_VERSION
                  " and interface 0000000000001234, not " QUERN_VERSION " and ");
}
END_TEST

START_TEST(what_is_no_plugin_is_refused_by_name)
{
    put("bare");
    check_refusal("no device \"cuda\": %s is not a Quern plugin: ");
    unlink(plugin);
    close(open(plugin, O_CREAT | O_WRONLY, 0600));
    check_refusal("no device \"cuda\": %s cannot be loaded: ");
}
END_TEST

START_TEST(auto_is_the_gpu_where_it_executes_the_model)
{
    put("sound");
    ck_assert_int_eq(choose("auto", "any"), 0);
    ck_assert_str_eq(choice.ops->name, "plugin");
    ck_assert_str_eq(choice.note.text, "");
    ck_assert_int_eq(choose("auto", "unrunnable"), 0);
    ck_assert_ptr_eq(choice.ops, &backend_cpu);
    ck_assert_str_eq(choice.note.text,
                     "using the CPU instead of the GPU: the device cannot compute mixtures of experts");
    ck_assert_int_eq(backend_choose("auto", NULL, &choice, &err), 0);
    ck_assert_str_eq(choice.ops->name, "plugin");
}
END_TEST

START_TEST(auto_falls_back_on_the_cpu_and_nothing_else_does)
{
    const struct error why = {"it computes wrong results: kernel norm"};
    put("sound");
    ck_assert_int_eq(choose("auto", "any"), 0);
    ck_assert(backend_fall_back(&choice, &why));
    ck_assert_ptr_eq(choice.ops, &backend_cpu);
    ck_assert_uint_eq(choice.n_devices, 0);
    ck_assert_str_eq(choice.note.text,
                     "using the CPU instead of the GPU: it computes wrong results: kernel norm");
    ck_assert(!backend_fall_back(&choice, &why)); /* once */
    ck_assert_int_eq(choose("cuda", "any"), 0);
    ck_assert(!backend_fall_back(&choice, &why));
    ck_assert_str_eq(choice.ops->name, "plugin");
}
END_TEST

START_TEST(auto_is_the_cpu_without_a_word_where_there_is_no_gpu)
{
    ck_assert_int_eq(choose("auto", "any"), 0);
    ck_assert_ptr_eq(choice.ops, &backend_cpu);
    ck_assert_str_eq(choice.note.text, "");
    put("none");
    ck_assert_int_eq(choose("auto", "any"), 0);
    ck_assert_ptr_eq(choice.ops, &backend_cpu);
    ck_assert_str_eq(choice.note.text, "");
}
END_TEST

START_TEST(auto_says_that_it_passes_over_a_stale_plugin)
{
    put("stale");
    ck_assert_int_eq(choose("auto", "any"), 0);
    ck_assert_ptr_eq(choice.ops, &backend_cpu);
    ck_assert_msg(strncmp(choice.note.text, "using the CPU instead of the GPU: ", 33) == 0, "%s",
                  choice.note.text);
    ck_assert_ptr_nonnull(strstr(choice.note.text, "is from a different build"));
}
END_TEST

START_TEST(workers_take_devices_in_turn)
{
    static const struct {
        uint32_t n_devices, worker, n_workers, device, n_sharers;
    } cases[] = {{0, 0, 1, 0, 1}, {0, 3, 4, 0, 4}, {1, 1, 2, 0, 2}, {2, 0, 3, 0, 2}, {2, 1, 3, 1, 1},
                 {2, 2, 3, 0, 2}, {8, 7, 8, 7, 1}, {8, 1, 2, 1, 1}, {2, 0, 0, 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t n_sharers;
        choice.n_devices = cases[i].n_devices;
        ck_assert_uint_eq(backend_share(&choice, cases[i].worker, cases[i].n_workers, &n_sharers),
                          cases[i].device);
        ck_assert_uint_eq(n_sharers, cases[i].n_sharers);
    }
}
END_TEST

START_TEST(a_program_that_cannot_find_itself_says_so)
{
    readlink_fails = true;
    check_refusal("no device \"cuda\": /proc/self/exe: Permission denied");
    readlink_fails = false;
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, workers_take_devices_in_turn);
    tcase_add_checked_fixture(tests, open_folder, close_folder);
    tcase_add_test(tests, a_plugin_is_loaded_when_it_is_asked_for);
    tcase_add_test(tests, a_program_that_cannot_find_itself_says_so);
    tcase_add_test(tests, devices_of_a_plugin_are_selected_before_they_are_counted);
    tcase_add_test(tests, what_every_build_has_needs_no_plugin);
    tcase_add_test(tests, a_device_that_is_not_to_be_had_is_refused_with_the_reason);
    tcase_add_test(tests, a_plugin_of_another_build_is_refused_by_name);
    tcase_add_test(tests, what_is_no_plugin_is_refused_by_name);
    tcase_add_test(tests, auto_is_the_gpu_where_it_executes_the_model);
    tcase_add_test(tests, auto_falls_back_on_the_cpu_and_nothing_else_does);
    tcase_add_test(tests, auto_is_the_cpu_without_a_word_where_there_is_no_gpu);
    tcase_add_test(tests, auto_says_that_it_passes_over_a_stale_plugin);
}

int main(void)
{
    return run_tests("backends", add);
}
