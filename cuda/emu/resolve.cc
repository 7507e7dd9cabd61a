/* SPDX-License-Identifier: MIT */
#include "cuda/resolve.cu"
