/* SPDX-License-Identifier: MIT */
#include "cuda/blocks.cu"
