/* SPDX-License-Identifier: MIT */
#include "cuda/attention_plan.cu"
