/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_TEXT_DIALECT_TEMPLATES_H
#define TESTS_UNIT_TEXT_DIALECT_TEMPLATES_H

/* Chat templates written for the tests, one for each way to write calls and thoughts. */

#include "text/dialect/dialect.h"

struct own_template {
    const char *name, *source;
};
extern const struct own_template own_templates[];
extern const size_t n_own_templates;

/* Derives the dialect of one of them; the caller calls dialect_deinit. */
void own_dialect(const char *name, struct model_dialect *dialect);

/* The same for any source. */
void derive_from(const char *source, struct model_dialect *dialect);

#endif
