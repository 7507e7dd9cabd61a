/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_BROKER_CHILD_H
#define SUPERVISOR_BROKER_CHILD_H

/* The supervisor's broker: starting it, talking to it, and handling its end. */

#include <stdbool.h>

#include "supervisor/supervisor.h"

/* Starts a broker. If that fails, tries again in a second, or falls back to the program of this process. */
void broker_child_start(struct supervision *self);

/* The broker has ended with this status of waitpid: starts the next one at once or later, or ends the pool.
 */
void broker_child_ended(struct supervision *self, int status);

/* Makes room for a reload's workers, then tells the broker to leave for the next one. */
void broker_child_replace(struct supervision *self);

/* Kills the broker if its loop has stopped. */
void broker_child_watch(struct supervision *self);

/* Receives the broker's orders and carries them out. */
void broker_child_take_orders(struct supervision *self);

/* Sends the broker pending news, as much as its socket takes. */
void broker_child_tell(struct supervision *self);
bool broker_child_has_news(const struct supervision *self);
void broker_child_tell_place(struct supervision *self, struct place *place);

#endif
