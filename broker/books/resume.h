/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_RESUME_H
#define BROKER_BOOKS_RESUME_H

/* Reads the ids generated so far back from the journal: another worker needs them to continue a request. */

#include "broker/books/journal.h"
#include "common/bytes.h"
#include "proto/message.h"

/* Appends the ids of all frames in the log to `ids`, which already holds the given ones (journal_resume), so
 * that it then has log->count ids. 0; -ENOMEM; -EBADMSG: the log is damaged. */
int resume_ids(const struct journal_log *log, struct message_decoder *decoder, struct ids *ids);

#endif
