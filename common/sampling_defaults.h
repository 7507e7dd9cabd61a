/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SAMPLING_DEFAULTS_H
#define COMMON_SAMPLING_DEFAULTS_H

/* Values of sampling parameters that a request leaves out: the pool's (quern serve --temp …), else the
 * model's (generation_config.json, general.sampling.*), else those of the list in sampling.h.
 *
 * A worker knows all three and registers the result as a line of text. The broker completes a request with it
 * at its first assignment, and keeps the values for later workers. This includes all rows of the list. */

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
    double values[SAMPLING_N]; /* in the list's order; includes counts */
    enum sampling_source sources[SAMPLING_N];
};

#define SAMPLING_DEFAULTS_TEXT 1024 /* bytes of its text, including the zero */
/* The i-th parameter's name: "top_k". NULL after the last. */
const char *sampling_name(size_t i);
/* The index of the name in the list, in which "-" counts as "_"; SAMPLING_N: unknown. */
size_t sampling_index(struct bytes name);
/* Whether the i-th parameter may have this value. False with a reason that begins with the name. */
bool sampling_takes(size_t i, double value, struct error *err);
/* Sets the list's defaults. */
void sampling_defaults_init(struct sampling_defaults *defaults);
/* Sets parameters from "NAME=VALUE NAME=VALUE". -EINVAL with the reason for an unknown name or a value out of
 * bounds; those before it are then already set. */
int sampling_defaults_set(struct sampling_defaults *defaults, struct bytes text, enum sampling_source source,
                          struct error *err);

/* Writes all of them as text: "temperature=0.6:model top_k=20:pool …". Reading it gives the same doubles. */
void sampling_defaults_write(const struct sampling_defaults *defaults, char text[SAMPLING_DEFAULTS_TEXT]);

/* Reads such a text, starting from the list's values. Skips what it does not understand, from another
 * version. */
void sampling_defaults_read(struct bytes text, struct sampling_defaults *ret_defaults);

/* Gives every parameter that the request left out (sampling_leave) its default from `values`, as above. */
void sampling_complete(struct sampling *sampling, const double values[SAMPLING_N]);

/* The same for a receiver that will complete it with the values `own`: parameters equal in both stay left
 * out. */
void sampling_complete_for(struct sampling *sampling, const double values[SAMPLING_N],
                           const double own[SAMPLING_N]);

#endif
