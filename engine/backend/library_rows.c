/* SPDX-License-Identifier: MIT */
/* Two words and numbers. */

#include "engine/backend/library_rows.h"

#include <errno.h>
#include <string.h>

#include "common/number.h"

#define MOST_ROWS 65536

int library_rows_by_name(const char *name, uint32_t *ret_rows, struct error *err)
{
    struct error unused;
    uint32_t rows = 0;
    if (strcmp(name, "auto") == 0)
        rows = BACKEND_LIBRARY_MEASURED;
    else if (strcmp(name, "off") != 0 &&
             number_read_u32(name, BACKEND_LEAST_LIBRARY_ROWS, MOST_ROWS, &rows, &unused) < 0)
        return error_set(err, -EINVAL, "\"%s\" is not off, auto or a number of rows from %d to %d", name,
                         BACKEND_LEAST_LIBRARY_ROWS, MOST_ROWS);
    *ret_rows = rows;
    return 0;
}
