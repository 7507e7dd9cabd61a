/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_JINJA_JINJA_H
#define TEXT_TEMPLATE_JINJA_JINJA_H

/* The part of Jinja that chat templates use (see syntax.h), rendered with JSON values.
 *
 * A compiled template is immutable, so threads may share it. Rendering is limited in steps, memory and depth,
 * and marks the bytes of its output that come from the user. */

#include <jansson.h>
#include <stdbool.h>
#include <time.h>

#include "common/bytes.h"
#include "common/error.h"

enum { JINJA_E_REFUSED = 1 }; /* the template called raise_exception */

enum { JINJA_MAX_SOURCE = 1 << 18 }; /* bytes of a template; its tree takes up to 400 times as much */

struct jinja_template;

/* -EINVAL with line and reason, -EMSGSIZE, -ENOMEM. The source is copied. */
int jinja_template_new(struct bytes source, struct jinja_template **ret_template, struct error *err);
struct jinja_template *jinja_template_free(struct jinja_template *jinja);

/* From now on append, extend and pop can change its lists. Some templates use them, although the sandbox of
 * model hubs rejects them. Call it before the template is shared. */
void jinja_template_permit_changes(struct jinja_template *jinja);

struct jinja_variable {
    const char *name;
    const json_t *value;
    bool from_user; /* everything made from its strings stays marked */
};

/* Appends the output to `ret_text`, and a byte for each of its bytes to `ret_marks`: 1 if it comes from the
 * user. `date` is the date that strftime_now formats. 0; JINJA_E_REFUSED with the template's reason; -EINVAL
 * with line and reason; -EMSGSIZE beyond the bounds; -ENOMEM. The buffers are unchanged on failure. */
int jinja_render(const struct jinja_template *jinja, const struct jinja_variable *variables, size_t n,
                 const struct tm *date, struct buffer *ret_text, struct buffer *ret_marks, struct error *err);

#endif
