/* SPDX-License-Identifier: MIT */
#include "cuda/heads.cu"
