/* SPDX-License-Identifier: MIT */
#ifndef COMMON_AMOUNT_H
#define COMMON_AMOUNT_H

/* Amounts for people, in messages and on the terminal; JSON, metrics and the protocol have exact numbers.
 * Each is a string by value, for use within the same expression:
 *
 *     log_info("%s of %s", amount_of(n, "request").text, amount_of_bytes(size).text); */

#include <stdint.h>

struct amount {
    char text[64];
};

/* "0 requests", "1 request", "2 requests": pass the singular; the plural adds an s. */
struct amount amount_of(uint64_t n, const char *one);

/* "1 byte", "9999 bytes"; from 10,000 bytes on in KiB, MiB, GiB …: "9.77 KiB", "64 MiB", "244.1 MiB". Rounded
 * amounts have decimals ("4.00 MiB" is rounded, "4 MiB" exact), so an amount slightly above a limit does not
 * look like the limit. */
struct amount amount_of_bytes(uint64_t n);

#endif
