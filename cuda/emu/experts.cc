/* SPDX-License-Identifier: MIT */
#include "cuda/experts.cu"
