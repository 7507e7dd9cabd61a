/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_BROKER_CHILD_H
#define SUPERVISOR_BROKER_CHILD_H

/* The broker of a supervisor: starting it, talking to it, and what follows its end. */

#include <stdbool.h>

#include "supervisor/supervisor.h"

/* Starts one; if that fails, tries again in a second, or goes back to the program that runs here. */
void broker_child_start(struct supervision *self);

/* It has ended with a status of waitpid: starts the next one at once or later, or ends the pool. */
void broker_child_ended(struct supervision *self, int status);

/* Makes room for a reload's workers, then tells the broker to leave for the next one. */
void broker_child_replace(struct supervision *self);

/* Kills it if its loop has stopped. */
void broker_child_watch(struct supervision *self);

/* Takes what it orders. */
void broker_child_take_orders(struct supervision *self);

/* Tells it what it does not know yet, as far as it reads. */
void broker_child_tell(struct supervision *self);
bool broker_child_has_news(const struct supervision *self);
void broker_child_tell_place(struct supervision *self, struct place *place);

#endif
