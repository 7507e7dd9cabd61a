/* SPDX-License-Identifier: MIT */
#ifndef COMMON_ERROR_H
#define COMMON_ERROR_H

#include <stdint.h>

/* The error contract of all of Quern.
 *
 * 0 is success. A negative code (-errno) is fatal to the operation and is passed on unchanged. A positive
 * code is the module's own (X_E_…), documented in its header and handled by its caller. Outputs are named
 * `ret_…` and are unchanged on failure.
 *
 * If people read the reason, a function also takes a `struct error *`: one line of text that names what is
 * wrong ("model.gguf: tensor blk.3.ffn_up.weight ends at 123 of 100 bytes"). NULL is accepted. */

struct error {
    /* One line of UTF-8 without control characters, even if it quotes some; empty: none. */
    char text[512];
};

/* Writes the text (cut to fit) and returns `code`, so that a caller can say `return error_set(err, -EINVAL,
 * …)`. */
int error_set(struct error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The standard wording for a number outside its bounds: "priority 300 is out of range -100..100", or without
 * a name, for a caller that adds a prefix: "300 is out of range -100..100" (`what` is ""). Returns `code`. */
int error_out_of_range(struct error *err, int code, const char *what, int64_t value, int64_t least,
                       int64_t most);
int error_out_of_range_unsigned(struct error *err, int code, const char *what, uint64_t value, uint64_t least,
                                uint64_t most);
int error_out_of_range_real(struct error *err, int code, const char *what, double value, double least,
                            double most);

/* Prepends "prefix: " to the text, for a caller that knows the context; returns `code`. */
int error_prefix(struct error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
