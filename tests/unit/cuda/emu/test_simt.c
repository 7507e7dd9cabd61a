/* SPDX-License-Identifier: MIT */
/* The emulated device: threads, meetings, the queue, graphs. */

#include "tests/unit/cuda/emu/simt_kernels.h"
#include "tests/unit/run.h"
#include "gguf/format.h"

#include <errno.h>

#define N 1000

static struct device *device;
static float *x, *out; /* pinned: [N], [4] */

static void open_device(void)
{
    struct error err = {0};
    ck_assert_msg(device_open(0, &device, &err) == 0, "%s", err.text);
    x = device_pinned(device, N * sizeof *x);
    out = device_pinned(device, 4 * sizeof *out);
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
}

START_TEST(a_block_adds_up_what_its_threads_read)
{
    open_device();
    ck_assert_int_eq(simt_kernels_sum(device_stream(device), x, N, 4, out), 0);
    ck_assert_int_eq(device_synchronize(device_stream(device)), 0);
    ck_assert_float_eq(out[0] + out[1] + out[2] + out[3], N * (N - 1) / 2);
    device = device_close(device);
}
END_TEST

START_TEST(work_is_done_when_its_mark_is_reached)
{
    open_device();
    out[0] = -1;
    ck_assert_int_eq(simt_kernels_sum(device_stream(device), x, N, 1, out), 0);
    ck_assert_int_eq(device_mark(device_stream(device), 0), 0);
    while (device_query(device_stream(device), 0) == -EAGAIN)
        ;
    ck_assert_float_eq(out[0], N * (N - 1) / 2);
    device = device_close(device);
}
END_TEST

START_TEST(a_graph_runs_what_was_recorded_as_often_as_it_is_launched)
{
    struct device_graph *graph;
    struct device_stream *stream;
    open_device();
    stream = device_stream(device);
    ck_assert_int_eq(device_record(stream), 0);
    ck_assert_int_eq(simt_kernels_sum(stream, x, N, 1, out), 0);
    ck_assert_int_eq(device_copy(stream, out + 1, out, sizeof *out), 0);
    ck_assert_int_eq(device_record_end(stream, &graph), 0);
    ck_assert_uint_eq(device_graph_kernels(graph), 1);
    for (int i = 1; i <= 3; i++) {
        out[1] = 0;
        x[0] = (float)i;
        ck_assert_int_eq(device_graph_launch(stream, graph), 0);
        ck_assert_int_eq(device_synchronize(stream), 0);
        ck_assert_float_eq(out[1], N * (N - 1) / 2 + (float)i);
    }
    ck_assert_uint_eq(device_counts(device).captures, 1);
    ck_assert_uint_eq(device_counts(device).graph_launches, 3);
    device_graph_free(graph);
    device = device_close(device);
}
END_TEST

/* Every value takes part in sums that no other permutation of rows, columns and depths has. */
START_TEST(a_warp_multiplies_matrices_of_int8)
{
    open_device();
    int8_t *a = device_pinned(device, 16 * 32), *b = device_pinned(device, 8 * 32);
    int32_t *d = device_pinned(device, 16 * 8 * sizeof *d), expected[16 * 8];
    for (int i = 0; i < 16 * 32; i++)
        a[i] = (int8_t)(i * 37 % 251 - 128);
    for (int i = 0; i < 8 * 32; i++)
        b[i] = (int8_t)(i * 91 % 239 - 128);
    for (int i = 0; i < 16 * 8; i++) {
        d[i] = expected[i] = 1000 * i;
        for (int k = 0; k < 32; k++)
            expected[i] += a[i / 8 * 32 + k] * b[i % 8 * 32 + k];
    }
    ck_assert_int_eq(simt_kernels_product_s8(device_stream(device), a, b, d), 0);
    ck_assert_int_eq(device_synchronize(device_stream(device)), 0);
    for (int i = 0; i < 16 * 8; i++)
        ck_assert_int_eq(d[i], expected[i]);
    device = device_close(device);
}
END_TEST

START_TEST(a_warp_multiplies_matrices_of_f16)
{
    open_device();
    uint16_t *a = device_pinned(device, 16 * 16 * sizeof *a), *b = device_pinned(device, 8 * 16 * sizeof *b);
    float *d = device_pinned(device, 16 * 8 * sizeof *d), expected[16 * 8];
    for (int i = 0; i < 16 * 16; i++)
        a[i] = format_f32_to_f16((float)(i * 37 % 61 - 30) / 4);
    for (int i = 0; i < 8 * 16; i++)
        b[i] = format_f32_to_f16((float)(i * 91 % 53 - 26) / 8);
    for (int i = 0; i < 16 * 8; i++) { /* exact: every sum is a small multiple of 1/32 */
        d[i] = expected[i] = (float)i;
        for (int k = 0; k < 16; k++)
            expected[i] += format_f16_to_f32(a[i / 8 * 16 + k]) * format_f16_to_f32(b[i % 8 * 16 + k]);
    }
    ck_assert_int_eq(simt_kernels_product_f16(device_stream(device), a, b, d), 0);
    ck_assert_int_eq(device_synchronize(device_stream(device)), 0);
    for (int i = 0; i < 16 * 8; i++)
        ck_assert_float_eq(d[i], expected[i]);
    device = device_close(device);
}
END_TEST

/* Among them sums and products that are rounded, up and down, beyond the range, and below the least normal.
 */
START_TEST(halves_are_added_and_multiplied_by_twos)
{
    static const float a[] = {1024 + 255, 1, 2048, 2048, 65504, 0.1f, -3, 6e-5f};
    static const float b[] = {-1152, 0.25f, 1, 3, 2, 0.3f, 7, 0.1f};
    enum { PAIRS = sizeof a / sizeof *a / 2 };
    open_device();
    uint16_t *words = device_pinned(device, 4 * sizeof a);
    for (int i = 0; i < 2 * PAIRS; i++) {
        words[i] = format_f32_to_f16(a[i]);
        words[2 * PAIRS + i] = format_f32_to_f16(b[i]);
    }
    ck_assert_int_eq(simt_kernels_halves(device_stream(device), (uint32_t *)words, PAIRS), 0);
    ck_assert_int_eq(device_synchronize(device_stream(device)), 0);
    for (int i = 0; i < 2 * PAIRS; i++) {
        const float first = format_f16_to_f32(words[i]), second = format_f16_to_f32(words[2 * PAIRS + i]);
        ck_assert_uint_eq(words[4 * PAIRS + i], format_f32_to_f16(first + second));
        ck_assert_uint_eq(words[6 * PAIRS + i], format_f32_to_f16(first * second));
    }
    device = device_close(device);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, halves_are_added_and_multiplied_by_twos);
    tcase_add_test(tests, a_warp_multiplies_matrices_of_int8);
    tcase_add_test(tests, a_warp_multiplies_matrices_of_f16);
    tcase_add_test(tests, a_block_adds_up_what_its_threads_read);
    tcase_add_test(tests, work_is_done_when_its_mark_is_reached);
    tcase_add_test(tests, a_graph_runs_what_was_recorded_as_often_as_it_is_launched);
}

int main(void)
{
    return run_tests("simt", add);
}
