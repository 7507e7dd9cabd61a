/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TEMPLATE_THINKING_H
#define TEXT_TEMPLATE_THINKING_H

/* Whether a model thinks before it answers, as far as its chat template shows it. */

#include <stdbool.h>

#include "text/template/chat_template.h"

/* True if the template opens the assistant's turn with a thought, or renders another prompt when it is told
 * not to think: then a request not to think would have to change something. False for all other templates,
 * and for those that fail on a short question. */
bool thinking_of(const struct chat_template *chat_template);

#endif
