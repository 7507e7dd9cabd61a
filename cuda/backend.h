/* SPDX-License-Identifier: MIT */
#ifndef CUDA_BACKEND_H
#define CUDA_BACKEND_H

/* The backend's table, and functions for tests and profiling. */

#include "cuda/device/device.h"
#include "engine/backend/backend.h"
#include "engine/backend/give_back.h"
#include "engine/backend/host_sampling.h"

extern const struct backend_ops quern_backend;
extern backend_give_back quern_give_back;
extern const struct backend_host_sampling quern_host_sampling;

/* The device that it runs on, owned by the backend. */
struct device *backend_device(const struct backend *backend);

/* The number of kernels in the recorded decode of up to `rows` sequences, greedy or any; 0: not recorded. */
uint32_t backend_decode_kernels(const struct backend *backend, uint32_t rows, bool greedy);

#endif
