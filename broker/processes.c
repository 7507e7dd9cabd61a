/* SPDX-License-Identifier: MIT */
/* Workers as processes.
 *
 * The supervisor starts and buries them; here the broker's books learn of it. A death is the last thing heard
 * of a worker: what it had published is taken in first, then its requests and questions end or wait for
 * another, and its place is as empty as before its registration. */

#include "broker/processes.h"

#include <string.h>

#include "broker/frames.h"
#include "broker/lifecycle.h"
#include "broker/tokenize.h"
#include "common/clock.h"
#include "common/log.h"

static void started(struct broker *broker, uint32_t index)
{
    struct worker *worker = &broker->workers[index];
    const struct child *child = &broker->supervisor.children[index];
    worker->incarnation = child->incarnation;
    worker->pid = (uint32_t)child->pid;
    worker->state = WORKER_STARTING;
    memcpy(worker->endpoint, child->stream, sizeof worker->endpoint);
}

static void forget_registration(struct worker *worker)
{
    worker->peer.len = 0;
    worker->pid = 0; /* its registration may still be under way */
    outbox_deinit(&worker->outbox);
    frames_close(worker);
    worker->wseq = worker->acked_wseq = worker->ack_due = worker->resend_asked = 0;
    worker->promised_wseq = worker->heard_ns = 0;
}

/* A failure is told at once when others serve. While none ever did, it may be everyone's, and then it is told
 * once, as the reason for which the broker ends. */
static void report_death(struct broker *broker, const struct worker *worker, const struct child *child)
{
    if (child->state == CHILD_GONE)
        return;
    if (child->state == CHILD_FAILED) {
        if (!supervisor_all_failed(&broker->supervisor) && broker->any_ready)
            log_error("%s failed for good: %s", worker->name, child->reason);
        return;
    }
    double wait_s = (double)(child->start_at - broker->now) / (double)CLOCK_NS_PER_S;
    log_warn("%s died: %s; it is started again in %.1f s", worker->name, child->reason, wait_s);
}

static void died(struct broker *broker, uint32_t index)
{
    struct worker *worker = &broker->workers[index];
    const struct child *child = &broker->supervisor.children[index];
    worker->state = child->state == CHILD_FAILED ? WORKER_FAILED : WORKER_ABSENT;
    worker->peer.len = 0;
    /* What it had published before it died still counts. */
    while (frames_drain(broker, worker))
        ;
    report_death(broker, worker, child);
    lifecycle_worker_lost(broker, worker, child->left, child->reason);
    tokenize_worker_lost(broker, worker);
    forget_registration(worker);
}

/* A start can fail too, and is then a death. */
void processes_start(struct broker *broker)
{
    uint32_t index;
    while (supervisor_start_next(&broker->supervisor, broker->now, &index))
        if (broker->supervisor.children[index].state == CHILD_STARTING)
            started(broker, index);
        else
            died(broker, index);
}

void processes_reap(struct broker *broker)
{
    uint32_t index;
    while (supervisor_reap_next(&broker->supervisor, broker->now, &index))
        died(broker, index);
}
