/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TRACE_VIEW_H
#define CLIENT_COMMAND_TRACE_VIEW_H

/* Records of a trace as lines of text, or of JSON. */

#include <stdbool.h>

#include <quern.h>

#include "common/bytes.h"

/* Each appends a line. 0 or -ENOMEM. */
int trace_view_heading(struct buffer *out); /* of the columns of steps; text only */
int trace_view_record(struct buffer *out, const char *worker, const struct quern_trace_record *record,
                      bool json);
int trace_view_lost(struct buffer *out, const char *worker, uint64_t n, bool json);
int trace_view_restarted(struct buffer *out, const char *worker, bool json);

#endif
