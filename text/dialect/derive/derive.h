/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_DERIVE_DERIVE_H
#define TEXT_DIALECT_DERIVE_DERIVE_H

/* A chat template → the dialect in which its model calls tools and thinks.
 *
 * The template renders conversations whose words are known: a call, two calls, a result, an answer, a
 * thought; with thinking on and off. What differs between two of them shows where calls and thoughts stand,
 * and what is around them. What was derived is tried: the calls that the template wrote have to come back
 * from its text. */

#include "text/dialect/dialect.h"
#include "text/template/chat_template.h"

/* Texts of the tokens at which generation stops: a model never writes anything behind one. */
struct dialect_stops {
    const struct bytes *texts; /* [n] */
    size_t n;
};

/* Derives into a dialect that is initialized. `source` is the template's, in which the counterpart of an
 * opening mark is looked for. What cannot be derived is not known, with its reason. 0 or -ENOMEM. */
int dialect_derive(const struct chat_template *chat_template, struct bytes source, struct dialect_stops stops,
                   struct model_dialect *dialect);

#endif
