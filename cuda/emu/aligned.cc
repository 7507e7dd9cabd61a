/* SPDX-License-Identifier: MIT */
/* What is called before a load or store that is not as aligned as its type is: on a GPU, a fault. The kernels
 * are compiled as for UndefinedBehaviorSanitizer, whose function this is, unless they are compiled for a
 * sanitizer anyway. */

#include "cuda/emu/emu.h"

struct mismatch { /* as compilers lay it out, as far as it is looked at */
    const char *file;
    uint32_t line, column;
};

extern "C" [[noreturn]] void __ubsan_handle_type_mismatch_v1_abort(const struct mismatch *where, uintptr_t at)
{
    emu_die("an access to 0x%zx, in %s:%u, is not aligned", (size_t)at, where->file, where->line);
}
