/* SPDX-License-Identifier: MIT */
#ifndef COMMON_NUMBER_H
#define COMMON_NUMBER_H

/* Numbers from a command line or a file: the whole text must be a number within bounds. No leading space, no
 * "0x10", no "nan", no unit. 0; or -EINVAL with a reason that contains the text and the bounds ("\"ten\" is
 * not a number from 1 to 9", "10 is out of range 1..9"). The caller adds the number's name as a prefix. */

#include <stdint.h>

#include "common/error.h"

int number_read(const char *text, uint64_t least, uint64_t most, uint64_t *ret_number, struct error *err);
int number_read_u32(const char *text, uint32_t least, uint32_t most, uint32_t *ret_number, struct error *err);

/* The same for signed numbers: "-5", "+5". */
int number_read_signed(const char *text, int64_t least, int64_t most, int64_t *ret_number, struct error *err);

/* "0.5", "-2", "1e-3"; the decimal point is a point in every locale. */
int number_read_real(const char *text, double least, double most, double *ret_number, struct error *err);

#endif
