/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_RESUME_H
#define BROKER_BOOKS_RESUME_H

/* The ids generated so far, read back from the journal: another worker needs them to continue a request. */

#include "broker/books/journal.h"
#include "common/bytes.h"
#include "proto/message.h"

/* Appends the ids of all frames in the log to ids, which holds those that were given (journal_resume), so
 * that it has log->count of them. 0; -ENOMEM; -EBADMSG: the log is damaged. */
int resume_ids(const struct journal_log *log, struct message_decoder *decoder, struct ids *ids);

#endif
