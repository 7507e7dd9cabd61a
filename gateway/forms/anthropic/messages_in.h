/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_ANTHROPIC_MESSAGES_IN_H
#define GATEWAY_FORMS_ANTHROPIC_MESSAGES_IN_H

/* Anthropic's messages: tool calls and results are blocks of their content, and become separate messages. */

#include "gateway/core/parameters.h"

json_row_take messages_take; /* [{role, content}] */

#endif
