/* SPDX-License-Identifier: MIT */
/* Workers as processes.
 *
 * The supervisor starts and buries them; here the broker's books learn of it. A death is the last thing heard
 * of a worker: what it had published is taken in first, then its requests and questions end or wait for
 * another, and its place is as empty as before its registration. */

#include "broker/processes.h"

#include <string.h>

#include "broker/frames.h"
#include "broker/core/lifecycle.h"
#include "broker/core/tokenize.h"
#include "common/clock.h"
#include "common/log.h"

/* One that cannot be reached is of no use. */
static void connect_to(struct broker *broker, struct worker *worker, const char *endpoint)
{
    struct error err;
    if (worker_link_connect(&broker->worker_link, worker, endpoint, &err) == 0)
        return;
    log_error("%s: %s", worker->name, err.text);
    supervisor_kill(&broker->supervisor, worker->index);
}

static void started(struct broker *broker, uint32_t index)
{
    struct worker *worker = &broker->workers[index];
    const struct place_record *record = &broker->supervisor.places[index].record;
    worker->incarnation = record->incarnation;
    worker->state = WORKER_STARTING;
    memcpy(worker->endpoint, record->stream, sizeof worker->endpoint);
    connect_to(broker, worker, record->link);
}

static void forget_registration(struct broker *broker, struct worker *worker)
{
    worker_link_disconnect(&broker->worker_link, worker);
    outbox_deinit(&worker->outbox);
    frames_close(worker);
    worker->wseq = worker->acked_wseq = worker->ack_due = worker->resend_asked = 0;
    worker->promised_wseq = worker->adopted_wseq = 0;
    worker->repeats = 0;
    worker->adopted = worker->settled = worker->relieved = false;
    worker->ending_ns = 0;
}

/* A failure is told at once when others serve. While none ever did, it may be everyone's, and then it is told
 * once, as the reason for which the broker ends. */
static void report_death(struct broker *broker, const struct worker *worker,
                         const struct place_record *record)
{
    if (record->state == PLACE_GONE)
        return;
    if (record->state == PLACE_FAILED) {
        if (!supervisor_all_failed(&broker->supervisor) && broker->any_ready)
            log_error("%s failed for good: %s", worker->name, record->reason);
        return;
    }
    if (record->left) {
        log_info("%s has ended as ordered; starting the next one", worker->name);
        return;
    }
    uint64_t wait = record->start_at > broker->now ? record->start_at - broker->now : 0;
    log_warn("%s died: %s; restarting it in %.1f s", worker->name, record->reason,
             (double)wait / (double)CLOCK_NS_PER_S);
}

static void died(struct broker *broker, uint32_t index)
{
    struct worker *worker = &broker->workers[index];
    const struct place_record *record = &broker->supervisor.places[index].record;
    worker->state = record->state == PLACE_FAILED ? WORKER_FAILED : WORKER_ABSENT;
    worker->peer.len = 0;
    /* What it had published before it died still counts. */
    worker->news.look = true;
    while (frames_drain(broker, worker))
        ;
    report_death(broker, worker, record);
    lifecycle_worker_lost(broker, worker, record->left, record->reason);
    tokenize_worker_lost(broker, worker);
    forget_registration(broker, worker);
}

void processes_take(struct broker *broker)
{
    struct supervisor_change change;
    while (supervisor_take(&broker->supervisor, &change)) {
        if (change.died)
            died(broker, change.index);
        if (change.born)
            started(broker, change.index);
    }
}
