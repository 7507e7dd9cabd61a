/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SAMPLING_DEFAULTS_H
#define COMMON_SAMPLING_DEFAULTS_H

/* Sampling parameters that a request leaves out: the pool's (quern serve --temp …), else the model's
 * (generation_config.json, general.sampling.*), else those of the list in sampling.h.
 *
 * A worker knows all three and registers the result as a line of text. The broker completes a request with
 * it when the request is first assigned, and keeps that for later workers. All rows of the list take part. */

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/sampling.h"

enum sampling_source { SAMPLING_OF_NOBODY, SAMPLING_OF_MODEL, SAMPLING_OF_POOL, SAMPLING_SOURCES };
const char *sampling_source_name(enum sampling_source source); /* "default", "model", "pool" */

#define SAMPLING_INDEX(name, ...) SAMPLING_AT_##name,
enum { SAMPLING_PARAMETERS(SAMPLING_INDEX, SAMPLING_INDEX) SAMPLING_N };
#undef SAMPLING_INDEX

struct sampling_defaults {
    double values[SAMPLING_N]; /* in the list's order; counts, too */
    enum sampling_source sources[SAMPLING_N];
};

#define SAMPLING_DEFAULTS_TEXT 1024 /* bytes of the text of one, with the zero */

/* The i-th parameter's name: "top_k". NULL beyond the last. */
const char *sampling_name(size_t i);

/* The place of the name in the list, "-" being as good as "_" in it; SAMPLING_N: there is none. */
size_t sampling_index(struct bytes name);

/* Whether the i-th takes such a value. False with a reason that begins with the name. */
bool sampling_takes(size_t i, double value, struct error *err);

/* Those of the list. */
void sampling_defaults_init(struct sampling_defaults *defaults);

/* Sets parameters, by "NAME=VALUE NAME=VALUE": a value that is out of its bounds, or a name that is none, is
 * -EINVAL with the reason, and those before it are set. */
int sampling_defaults_set(struct sampling_defaults *defaults, struct bytes text, enum sampling_source source,
                          struct error *err);

/* All of them as a text: "temperature=0.6:model top_k=20:pool …". Reading it gives the same doubles. */
void sampling_defaults_write(const struct sampling_defaults *defaults, char text[SAMPLING_DEFAULTS_TEXT]);

/* Reads such a text over the list's own values. What is not understood, of another version, is passed over.
 */
void sampling_defaults_read(struct bytes text, struct sampling_defaults *ret_defaults);

/* Gives every parameter that the request left out (sampling_leave) its default: `values` as above. */
void sampling_complete(struct sampling *sampling, const double values[SAMPLING_N]);

/* The same for somebody who will complete it by his `own`: where those are the same, the parameter stays out.
 */
void sampling_complete_for(struct sampling *sampling, const double values[SAMPLING_N],
                           const double own[SAMPLING_N]);

#endif
