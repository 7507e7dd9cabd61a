/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_CHANGES_H
#define SUPERVISOR_CHANGES_H

#include "supervisor/supervisor.h"

/* Receives requests of peers, begins each or rejects it with a reason, and continues the change in
 * progress. */
void changes_turn(struct supervision *self);

#endif
