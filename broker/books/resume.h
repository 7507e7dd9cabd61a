/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_RESUME_H
#define BROKER_BOOKS_RESUME_H

/* What another worker needs to go on with a request: the ids that its clients have or will have, read back
 * from its journal. */

#include "broker/books/journal.h"
#include "common/bytes.h"
#include "proto/message.h"

/* Appends the ids of all frames in the log to ret_ids, log->count of them. 0; -ENOMEM; -EBADMSG: the log does
 * not hold what it says. */
int resume_ids(const struct journal_log *log, struct message_decoder *decoder, struct ids *ret_ids);

#endif
