/* SPDX-License-Identifier: MIT */
#include "cuda/accept.cu"
