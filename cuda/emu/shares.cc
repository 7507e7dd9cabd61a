/* SPDX-License-Identifier: MIT */
#include "cuda/shares.cu"
