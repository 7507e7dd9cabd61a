/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TRACE_VIEW_H
#define CLIENT_COMMAND_TRACE_VIEW_H

/* Formats records of a trace as lines of text or JSON. */

#include <stdbool.h>

#include <quern.h>

#include "common/bytes.h"

/* Each function appends a line. 0 or -ENOMEM. */
int trace_view_heading(struct buffer *out); /* the heading of the columns of steps; text only */
int trace_view_record(struct buffer *out, const char *worker, const struct quern_trace_record *record,
                      bool json);
int trace_view_lost(struct buffer *out, const char *worker, uint64_t n, bool json);
int trace_view_restarted(struct buffer *out, const char *worker, bool json);

#endif
