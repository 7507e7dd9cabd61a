/* SPDX-License-Identifier: MIT */
#include "cuda/multiply.cu"
