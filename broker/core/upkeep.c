/* SPDX-License-Identifier: MIT */
#include "broker/core/upkeep.h"

#include "broker/core/assembly.h"
#include "broker/core/lifecycle.h"
#include "broker/core/lifecycle_sessions.h"

void broker_upkeep(struct broker *broker)
{
    lifecycle_watch_deaf(broker);
    lifecycle_close_sessions(broker);
    assembly_expire(broker);
    lifecycle_end_overdue(broker);
    lifecycle_relieve(broker);
    lifecycle_forget(broker);
}
