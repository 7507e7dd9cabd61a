/* SPDX-License-Identifier: MIT */
/* A line for each, up to a bound: a device that computes wrongly would fill the disk. */

#include "worker/instruments/differences.h"

#include "common/hex.h"
#include "common/log.h"
#include "proto/message.h"

void differences_log(void *arg, uint64_t tag, const struct backend_difference *difference)
{
    struct differences *differences = arg;
    const struct id128 *id = (const struct id128 *)(differences->topic_of(tag) + sizeof(struct id128));
    char name[2 * sizeof id->bytes + 1];
    if (differences->logged == DIFFERENCES_LOGGED)
        return;
    hex_write(id->bytes, sizeof id->bytes, name);
    log_warn("host sampling: request %s, position %llu: the device sampled %d (logit %.9g), the host %d "
             "(logit %.9g); the host's counts",
             name, (unsigned long long)difference->position, difference->of_device,
             (double)difference->logit_of_device, difference->of_host, (double)difference->logit_of_host);
    if (++differences->logged == DIFFERENCES_LOGGED)
        log_warn("host sampling: further differences are counted but not logged");
}
