/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_DEVICE_FORMATS_H
#define TESTS_UNIT_CUDA_DEVICE_FORMATS_H

/* The formats that the device has; test_layout.c holds that there are no others. */

#include "tests/unit/worker/cpu/random_weights.h"

static const enum format device_formats[] = {FORMAT_F32,  FORMAT_F16,  FORMAT_BF16, FORMAT_Q8_0, FORMAT_Q4_0,
                                             FORMAT_Q5_0, FORMAT_Q4_K, FORMAT_Q5_K, FORMAT_Q6_K};
#define N_DEVICE_FORMATS (sizeof device_formats / sizeof *device_formats)

#endif
