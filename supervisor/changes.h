/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_CHANGES_H
#define SUPERVISOR_CHANGES_H

#include "supervisor/supervisor.h"

/* Takes what peers ask for, which is begun or refused with a reason, and carries on the change under way. */
void changes_turn(struct supervision *self);

#endif
