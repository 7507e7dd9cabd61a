/* SPDX-License-Identifier: MIT */
/* What a device says of itself, and the version in what Linux says of NVIDIA's driver. */

#include "cuda/device/describe.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdlib.h>

START_TEST(an_emulated_device_is_described_by_its_number)
{
    struct device_description first, second;
    struct error err;
    setenv("QUERN_EMU_DEVICES", "2", 1);
    setenv("QUERN_EMU_BYTES", "5000000", 1);
    ck_assert_int_eq(device_describe(0, &first, &err), 0);
    ck_assert_int_eq(device_describe(1, &second, &err), 0);
    ck_assert_str_eq(first.name, "emulated");
    ck_assert_str_eq(first.uuid, "GPU-00000000-0000-0000-0000-000000000000");
    ck_assert_str_eq(second.uuid, "GPU-00000000-0000-0000-0000-000000000001");
    ck_assert_str_eq(first.driver, "none, emulated");
    ck_assert_uint_eq(first.capability, 90);
    ck_assert_uint_eq(first.memory_total, 5000000);
    ck_assert_uint_eq(first.memory_free, 5000000);
    ck_assert_uint_eq(first.bandwidth, 0);
    ck_assert_int_eq(device_describe(2, &second, &err), -ENODEV);
    ck_assert_str_eq(err.text, "there is no emulated device 2: there are 2");
    unsetenv("QUERN_EMU_DEVICES");
    unsetenv("QUERN_EMU_BYTES");
}
END_TEST

START_TEST(the_drivers_version_is_found_in_either_of_its_lines)
{
    static const struct {
        const char *text, *version;
    } cases[] = {
        {"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC "
         "12.2.0\n",
         "535.104.05"},
        {"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n", "580.65.06"},
        {"NVRM version: 2023 x86_64\nGCC version: 12.2.0\n", ""}, /* a year; the line of the compiler */
        {"12345678.90", "12345678.90"},
        {"", ""},
        {"   \t ", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char version[24] = "?";
        device_driver_version(cases[i].text, version, sizeof version);
        ck_assert_str_eq(version, cases[i].version);
    }
    char few[4];
    device_driver_version("580.65.06", few, sizeof few);
    ck_assert_str_eq(few, "580");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, an_emulated_device_is_described_by_its_number);
    tcase_add_test(tests, the_drivers_version_is_found_in_either_of_its_lines);
}

int main(void)
{
    return run_tests("cuda describe", add);
}
