/* SPDX-License-Identifier: MIT */
/* The broker's parts, put together in the order in which they need one another, and taken apart the other way
 * round. Whatever the way out, no worker is left behind. */

#include "broker/setup.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/boot.h"
#include "broker/connections.h"
#include "broker/frames.h"
#include "broker/lifecycle.h"
#include "broker/sockets.h"
#include "common/clock.h"
#include "common/rundir.h"

static int check_model(const char *path, struct error *err)
{
    if (access(path, R_OK) < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    return 0;
}

static void init_tables(struct broker *broker)
{
    broker->journal.limit = JOURNAL_LIMIT_BYTES;
    broker->ledger.seed = broker->sessions.seed = broker->admission.shares.seed = broker->secret;
    queue_init(&broker->queue, broker->secret);
    broker->admission.secret = broker->secret;
    broker->admission.max_queued = ADMISSION_MAX_QUEUED;
    broker->admission.max_queued_bytes = ADMISSION_MAX_QUEUED_BYTES;
    broker->n_workers = broker->options.workers;
    broker->client_link.sessions = &broker->sessions;
    broker->client_link.most_unread = CLIENT_LINK_UNREAD_BYTES;
    broker->client_link.credit.wake_fd = -1;
    broker->sessions.credit = &broker->client_link.credit;
    broker->worker_link.supervisor = &broker->supervisor;
    broker->worker_link.workers = broker->workers;
    broker->worker_link.n_workers = broker->n_workers;
    for (uint32_t i = 0; i < broker->n_workers; i++) {
        broker->workers[i].index = i;
        snprintf(broker->workers[i].name, sizeof broker->workers[i].name, "worker-%u", i);
    }
}

int broker_init(struct broker *broker, const struct options *options, struct error *err)
{
    *broker = (struct broker){.options = *options, .lock_fd = -1, .now = clock_ns()};
    broker->supervisor.board_fd = -1;
    if (getrandom(&broker->secret, sizeof broker->secret, 0) != sizeof broker->secret)
        return error_set(err, -EIO, "no random numbers");
    init_tables(broker);
    broker->most_connections = connections_raise_limit();
    int r = credit_total_init(&broker->client_link.credit, err);
    if (r == 0)
        r = check_model(broker->options.model, err);
    if (r == 0)
        r = rundir_prepare(broker->options.rundir, err);
    if (r == 0)
        r = rundir_lock(broker->options.rundir, &broker->lock_fd, err);
    if (r == 0)
        r = boot_raise(broker->options.rundir, &broker->boot, err);
    if (r == 0)
        sockets_clear(broker->options.rundir);
    if (r == 0)
        r = sockets_bind(broker, err);
    if (r == 0 &&
        (message_decoder_new(&broker->decoder) < 0 || message_decoder_new(&broker->request_decoder) < 0 ||
         message_decoder_new(&broker->frame_decoder) < 0))
        r = error_set(err, -ENOMEM, "out of memory");
    if (r == 0)
        r = supervisor_init(&broker->supervisor, &broker->options, broker->endpoints.worker_link,
                            broker->lock_fd, broker->boot, err);
    if (r < 0)
        broker_deinit(broker);
    return r;
}

static void end_workers(struct broker *broker)
{
    struct supervisor *supervisor = &broker->supervisor;
    supervisor_stop(supervisor, SIGKILL);
    for (uint32_t i = 0; i < supervisor->n; i++) {
        frames_close(&broker->workers[i]);
        outbox_deinit(&broker->workers[i].outbox);
        if (supervisor->children[i].pid <= 0)
            continue;
        waitpid(supervisor->children[i].pid, NULL, 0);
        supervisor_forget(supervisor, i);
    }
    supervisor_deinit(supervisor);
}

static void free_tables(struct broker *broker)
{
    struct session *session, *next_session;
    HASH_ITER(by_id, broker->sessions.by_id, session, next_session)
    {
        session_close(&broker->sessions, session);
    }
    struct request *request, *next;
    HASH_ITER(by_home, broker->ledger.by_home, request, next)
    {
        ledger_remove(&broker->ledger, &broker->journal, request);
    }
    queue_deinit(&broker->queue);
    journal_page_deinit(&broker->page);
    buffer_deinit(&broker->scratch);
    message_decoder_free(broker->decoder);
    message_decoder_free(broker->request_decoder);
    message_decoder_free(broker->frame_decoder);
}

void broker_deinit(struct broker *broker)
{
    if (broker->stream.socket && broker->client_link.router)
        lifecycle_end_all(broker, "the pool was stopped");
    end_workers(broker);
    free_tables(broker);
    stream_deinit(&broker->stream);
    client_link_deinit(&broker->client_link);
    worker_link_deinit(&broker->worker_link);
    if (broker->context)
        zmq_ctx_term(broker->context);
    credit_total_deinit(&broker->client_link.credit);
    sockets_unlink(broker);
    if (broker->lock_fd >= 0)
        close(broker->lock_fd);
    *broker = (struct broker){.lock_fd = -1};
}
