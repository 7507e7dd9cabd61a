/* SPDX-License-Identifier: MIT */
#include "cuda/embed.cu"
