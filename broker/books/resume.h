/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_RESUME_H
#define BROKER_BOOKS_RESUME_H

/* What another worker needs to continue a request: the ids made so far, read back from the journal. */

#include "broker/books/journal.h"
#include "common/bytes.h"
#include "proto/message.h"

/* Appends the ids of all frames in the log to ret_ids, log->count of them. 0; -ENOMEM; -EBADMSG: the log is
 * damaged. */
int resume_ids(const struct journal_log *log, struct message_decoder *decoder, struct ids *ret_ids);

#endif
