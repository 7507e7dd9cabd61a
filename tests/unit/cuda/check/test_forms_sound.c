/* SPDX-License-Identifier: MIT */
/* A sound device gives the same bytes in every form of a step, a GPU as well as the emulated one. */

#include "cuda/device/device.h"
#include "tests/unit/cuda/check/gated.h"
#include "tests/unit/run.h"

#include <stdlib.h>
#include <string.h>

/* Families whose sequences keep more than keys and values, or whose rows go to experts, and rooms that leave
 * little. The emulated device computes the same each time, and slowly. */
START_TEST(a_sound_device_gives_the_same_bytes_in_every_form)
{
    static const struct {
        uint32_t n_slots, n_context, max_rows;
    } rooms[] = {{2, 34, 4}, {3, 300, 8}, {64, 1024, 128}};
    const struct synth_shape shapes[] = {small_shape, hybrid_of("qwen35"), borrowing_shape,
                                         experts_of("granitemoe", 300)};
    const bool emulated = strcmp(device_kind, "emu") == 0;
    struct error err;
    setenv("QUERN_UNCHECKED", "0", 1);
    setenv("QUERN_CHECK", emulated ? "1" : "whole", 1);
    model = make_model(&shapes[_i], _i == 2 ? "F32" : "Q8_0");
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        if (emulated && i != (_i == 0 ? 1 : 0))
            continue;
        const struct backend_config sizes = {.n_slots = rooms[i].n_slots,
                                             .n_context = rooms[i].n_context,
                                             .max_rows = rooms[i].max_rows,
                                             .invariant = i % 2};
        kv_type = i == 1 ? BACKEND_KV_Q8 : BACKEND_KV_F16;
        ck_assert_msg(open_sized("QUERN_EAGER", "0", &sizes, &err) == 0, "%s", err.text);
    }
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, a_sound_device_gives_the_same_bytes_in_every_form, 0, 4);
}

int main(void)
{
    return run_tests("cuda forms of steps, sound", add);
}
