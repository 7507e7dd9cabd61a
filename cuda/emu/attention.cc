/* SPDX-License-Identifier: MIT */
#include "cuda/attention.cu"
