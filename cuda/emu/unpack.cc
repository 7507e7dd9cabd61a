/* SPDX-License-Identifier: MIT */
#include "cuda/unpack.cu"
