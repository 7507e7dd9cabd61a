/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_ANTHROPIC_MESSAGES_IN_H
#define GATEWAY_FORMS_ANTHROPIC_MESSAGES_IN_H

/* Anthropic's messages: what was called and what came of it stands in blocks of their content, and becomes
 * messages of its own. */

#include "gateway/core/parameters.h"

json_row_take messages_take; /* [{role, content}] */

#endif
