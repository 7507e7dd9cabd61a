/* SPDX-License-Identifier: MIT */
/* Sparse arrays: small ones from the heap, large ones mapped. */

#include "common/system/sparse.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define LARGE_BYTES ((size_t)1 << 19)

void *sparse_new(size_t n, size_t size)
{
    if (size > 0 && n > SIZE_MAX / size)
        return NULL;
    if (n * size < LARGE_BYTES)
        return calloc(n, size);
    void *array =
        mmap(NULL, n * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return array == MAP_FAILED ? NULL : array;
}

void *sparse_free(void *array, size_t n, size_t size)
{
    if (array && n * size >= LARGE_BYTES)
        munmap(array, n * size);
    else
        free(array);
    return NULL;
}
