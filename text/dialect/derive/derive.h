/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_DERIVE_DERIVE_H
#define TEXT_DIALECT_DERIVE_DERIVE_H

/* Derives the dialect in which a model calls tools and thinks from its chat template.
 *
 * The template renders conversations of known words: a call, two calls, a result, an answer, a thought; with
 * thinking on and off. The differences between two texts show where calls and thoughts are, and which marks
 * surround them. The result is verified: parsing the template's text must return the calls. */

#include "text/dialect/dialect.h"
#include "text/template/chat_template.h"

/* Texts of the tokens at which generation stops: a model never writes anything after one. */
struct dialect_stops {
    const struct bytes *texts; /* [n] */
    size_t n;
};

/* Derives into an initialized dialect. `source` is the template's source, which is searched for the
 * counterpart of an opening mark. Parts that cannot be derived are marked as unknown, with the reason. 0 or
 * -ENOMEM. */
int dialect_derive(const struct chat_template *chat_template, struct bytes source, struct dialect_stops stops,
                   struct model_dialect *dialect);

#endif
