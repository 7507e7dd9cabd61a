/* SPDX-License-Identifier: MIT */
#include "cuda/visits.cu"
