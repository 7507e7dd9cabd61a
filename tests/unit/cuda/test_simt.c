/* SPDX-License-Identifier: MIT */
/* The emulated device: threads, meetings, the queue, graphs. */

#include "tests/unit/cuda/simt_kernels.h"
#include "tests/unit/run.h"

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

START_TEST(work_runs_after_it_is_queued_and_before_its_mark)
{
    open_device();
    out[0] = -1;
    ck_assert_int_eq(simt_kernels_sum(device_stream(device), x, N, 1, out), 0);
    ck_assert_int_eq(device_mark(device_stream(device), 0), 0);
    ck_assert_float_eq(out[0], -1);
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

static void add(TCase *tests)
{
    tcase_add_test(tests, a_block_adds_up_what_its_threads_read);
    tcase_add_test(tests, work_runs_after_it_is_queued_and_before_its_mark);
    tcase_add_test(tests, a_graph_runs_what_was_recorded_as_often_as_it_is_launched);
}

int main(void)
{
    return run_tests("simt", add);
}
