/* SPDX-License-Identifier: MIT */
#ifndef CUDA_EMU_EMU_H
#define CUDA_EMU_EMU_H

/* The emulator's two halves: fibers.cc runs one launch, device.cc is the device around it. */

#include "cuda/simt.h"

/* Runs all blocks of a launch, here and now. */
void emu_run(const struct emu_launch *launch);

#endif
