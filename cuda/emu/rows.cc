/* SPDX-License-Identifier: MIT */
#include "cuda/rows.cu"
