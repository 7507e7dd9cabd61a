/* SPDX-License-Identifier: MIT */
#include "cuda/sample.cu"
