/* SPDX-License-Identifier: MIT */
#include "cuda/norm.cu"
