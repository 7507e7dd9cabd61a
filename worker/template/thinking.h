/* SPDX-License-Identifier: MIT */
#ifndef WORKER_TEMPLATE_THINKING_H
#define WORKER_TEMPLATE_THINKING_H

/* Whether a model thinks before it answers, as far as its chat template shows it. */

#include <stdbool.h>

#include "worker/template/chat_template.h"

/* True where the template opens the assistant's turn with the beginning of a thought, or writes another
 * prompt when it is told that there is to be none. So a request not to think would have to change something.
 * False for templates that neither do so nor take such a request, and where they fail on a short question. */
bool thinking_of(const struct chat_template *chat_template);

#endif
