/* SPDX-License-Identifier: MIT */
#include "cuda/logprobs.cu"
