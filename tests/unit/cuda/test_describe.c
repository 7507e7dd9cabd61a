/* SPDX-License-Identifier: MIT */
/* What a device says of itself, and the version in what Linux says of NVIDIA's driver. */

#include "cuda/device/describe.h"
#include "cuda/device/device.h"
#include "cuda/device/selection.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

START_TEST(devices_are_named_by_number_uuid_or_its_beginning)
{
    struct selection selection;
    struct error err;
    ck_assert_int_eq(selection_parse("2,GPU-8f3a,MIG-00-ab", &selection, &err), 0);
    ck_assert_uint_eq(selection.n, 3);
    ck_assert_str_eq(selection.items[1], "GPU-8f3a");
    ck_assert(selection_means("2", 2, "GPU-2"));
    ck_assert(!selection_means("2", 12, "GPU-2"));
    ck_assert(selection_means("gpu-8F3a", 0, "GPU-8f3a11"));
    ck_assert(!selection_means("GPU-8f3a11", 0, "GPU-8f3a"));
    ck_assert(!selection_means("GPU-8f3a", 0, "MIG-8f3a"));
    static const struct {
        const char *list, *named;
    } bad[] = {{"", "\"\" is not a device"},
               {"0,", "\"\" is not a device"},
               {",0", "\"\" is not a device"},
               {"0,,1", "\"\" is not a device"},
               {"-1", "\"-1\" is not a device"},
               {"1 ", "\"1 \" is not a device"},
               {"GPU-", "\"GPU-\" is not a device"},
               {"GPU-xyz", "\"GPU-xyz\" is not a device"},
               {"12345678901", "\"12345678901\" is not a device"},
               {"1,GPU-ab,1", "device 1 is named twice"},
               {"GPU-ab,GPU-AB", "device GPU-AB is named twice"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(selection_parse(bad[i].list, &selection, &err), -EINVAL);
        ck_assert_msg(strncmp(err.text, bad[i].named, strlen(bad[i].named)) == 0, "%s", err.text);
        ck_assert_uint_eq(selection.n, 3); /* as it was */
    }
    char many[65 * 4] = "0";
    for (int i = 1; i < 65; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), ",%d", i);
    ck_assert_int_eq(selection_parse(many, &selection, &err), -EINVAL);
    ck_assert_str_eq(err.text, "more than 64 devices");
}
END_TEST

START_TEST(a_uuid_is_written_as_nvidias_programs_do)
{
    uint8_t uuid[16];
    char text[UUID_BYTES];
    for (uint8_t i = 0; i < 16; i++)
        uuid[i] = (uint8_t)(0x0f + 0x10 * i);
    uuid_text(uuid, false, text);
    ck_assert_str_eq(text, "GPU-0f1f2f3f-4f5f-6f7f-8f9f-afbfcfdfefff");
    uuid_text(uuid, true, text);
    ck_assert_str_eq(text, "MIG-0f1f2f3f-4f5f-6f7f-8f9f-afbfcfdfefff");
    ck_assert(is_slice_name("NVIDIA H200 MIG 1g.18gb"));
    ck_assert(!is_slice_name("NVIDIA H200"));
}
END_TEST

static void put_gpu(const char *folder, const char *place, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, place);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/%s/information", folder, place);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void remove_gpu(const char *folder, const char *place)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s/information", folder, place);
    unlink(path);
    snprintf(path, sizeof path, "%s/%s", folder, place);
    rmdir(path);
}

START_TEST(the_drivers_list_of_gpus_is_read_in_the_order_of_the_bus)
{
    char folder[] = "/tmp/quern-test-XXXXXX", list[512], few[8];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    selection_list_gpus(folder, list, sizeof list);
    ck_assert_str_eq(list, "");
    put_gpu(folder, "0000:c4:00.0", "Model: \t\t NVIDIA H200\nIRQ:   \t\t 1\nGPU UUID: \t GPU-c4\n");
    put_gpu(folder, "0000:04:00.0", "Model: \t\t Tesla T4\nGPU UUID: \t GPU-04\nBus Type: \t PCIe\n");
    put_gpu(folder, "0000:05:00.0", "");
    selection_list_gpus(folder, list, sizeof list);
    ck_assert_str_eq(list, "0 GPU-04 (Tesla T4), 1  (), 2 GPU-c4 (NVIDIA H200)");
    selection_list_gpus(folder, few, sizeof few);
    ck_assert_str_eq(few, "0 GPU-0");
    remove_gpu(folder, "0000:c4:00.0");
    remove_gpu(folder, "0000:04:00.0");
    remove_gpu(folder, "0000:05:00.0");
    rmdir(folder);
    selection_list_gpus(folder, list, sizeof list);
    ck_assert_str_eq(list, "");
}
END_TEST

#define EMU "GPU-00000000-0000-0000-0000-00000000000"

START_TEST(selected_devices_are_the_only_ones)
{
    struct device_description described;
    struct device *device;
    struct error err;
    uint32_t n;
    setenv("QUERN_EMU_DEVICES", "3", 1);
    ck_assert_msg(device_select("2," EMU "0", &err) == 0, "%s", err.text);
    ck_assert_int_eq(device_count(&n, &err), 0);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(device_describe(0, &described, &err), 0);
    ck_assert_str_eq(described.uuid, EMU "2");
    ck_assert_int_eq(device_open(1, &device, &err), 0);
    ck_assert_str_eq(device_properties(device)->label, "emulated (GPU 0)");
    device_close(device);
    ck_assert_int_eq(device_open(2, &device, &err), -ENODEV);
    static const struct {
        const char *list, *said;
    } bad[] = {
        {"3", "no emulated device is 3; available: 0 " EMU "0, 1 " EMU "1, 2 " EMU "2"},
        {EMU "7", "no emulated device is " EMU "7; available: 0 " EMU "0, 1 " EMU "1, 2 " EMU "2"},
        {"GPU-0", "more than one emulated device is GPU-0; available: 0 " EMU "0, 1 " EMU "1, 2 " EMU "2"},
        {"1," EMU "1", "device 1 is named twice, as 1 and " EMU "1"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_lt(device_select(bad[i].list, &err), 0);
        ck_assert_str_eq(err.text, bad[i].said);
    }
    ck_assert_int_eq(device_count(&n, &err), 0);
    ck_assert_uint_eq(n, 3); /* after a list that is refused, all are */
    unsetenv("QUERN_EMU_DEVICES");
}
END_TEST

START_TEST(a_slice_of_a_gpu_is_named_as_one)
{
    struct device_description described;
    struct error err;
    setenv("QUERN_EMU_MIG", "1", 1);
    ck_assert_msg(device_select("MIG-00000000-0000-0000-0000-000000000000", &err) == 0, "%s", err.text);
    ck_assert_int_eq(device_describe(0, &described, &err), 0);
    ck_assert_str_eq(described.uuid, "MIG-00000000-0000-0000-0000-000000000000");
    ck_assert(is_slice_name(described.name));
    ck_assert_int_eq(device_select(EMU "0", &err), -ENODEV);
    unsetenv("QUERN_EMU_MIG");
}
END_TEST

START_TEST(a_gpu_that_is_too_old_is_refused_by_what_it_lacks)
{
    struct device *device;
    struct error err;
    setenv("QUERN_EMU_CAPABILITY", "75", 1);
    ck_assert_int_eq(device_open(0, &device, &err), -ENODEV);
    ck_assert_str_eq(err.text, "GPU 0, emulated, has compute capability 7.5; Quern needs 8.0 or later");
    setenv("QUERN_EMU_CAPABILITY", "80", 1);
    ck_assert_int_eq(device_open(0, &device, &err), 0);
    device_close(device);
    unsetenv("QUERN_EMU_CAPABILITY");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, devices_are_named_by_number_uuid_or_its_beginning);
    tcase_add_test(tests, a_uuid_is_written_as_nvidias_programs_do);
    tcase_add_test(tests, the_drivers_list_of_gpus_is_read_in_the_order_of_the_bus);
    tcase_add_test(tests, selected_devices_are_the_only_ones);
    tcase_add_test(tests, a_slice_of_a_gpu_is_named_as_one);
    tcase_add_test(tests, a_gpu_that_is_too_old_is_refused_by_what_it_lacks);
    tcase_add_test(tests, an_emulated_device_is_described_by_its_number);
    tcase_add_test(tests, the_drivers_version_is_found_in_either_of_its_lines);
}

int main(void)
{
    return run_tests("cuda describe", add);
}
