/* SPDX-License-Identifier: MIT */
#include "cuda/tiles.cu"
