/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_TEXT_DIALECT_TEMPLATES_H
#define TESTS_UNIT_TEXT_DIALECT_TEMPLATES_H

/* Chat templates of our own, one for each way in which calls and thoughts are written. */

#include "text/dialect/dialect.h"

struct own_template {
    const char *name, *source;
};
extern const struct own_template own_templates[];
extern const size_t n_own_templates;

/* Derives the dialect of one of them; dialect_deinit is due. */
void own_dialect(const char *name, struct model_dialect *dialect);

/* That of any source. */
void derive_from(const char *source, struct model_dialect *dialect);

#endif
