/* SPDX-License-Identifier: MIT */
/* The status of the pool.
 *
 * Three sources for a worker: the supervisor (its process), its registration (model, device, slots), and its
 * slot of the board (what it does now), which is read without asking it. The board may say anything: what
 * does not fit into a message would keep the status of the whole pool from being sent. */

#include "broker/core/status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hex.h"

#define MOST_TOKENS_PER_S 1e12 /* that the message takes */

/* Of the tokens that prompts had, how many were found. */
static double hit_rate(const struct board_snapshot *board)
{
    double all = (double)board->cache_hits + (double)board->prefill_tokens;
    return all > 0 ? (double)board->cache_hits / all : 0;
}

/* Written so that NaN is none. */
static double rate_of(double tokens_per_s)
{
    return tokens_per_s >= 0 && tokens_per_s <= MOST_TOKENS_PER_S ? tokens_per_s : 0;
}

static void fill_worker(const struct broker *broker, uint32_t index, struct worker_status *status)
{
    const struct worker *worker = &broker->workers[index];
    const struct place_record *record = &broker->supervisor.places[index].record;
    struct board_snapshot board;
    uint64_t steps;
    supervisor_snapshot(&broker->supervisor, index, &board, &steps);
    *status = (struct worker_status){
        .name = bytes_of_string(worker->name),
        .device = bytes_of_string(worker->device),
        .device_number = worker->device_number,
        .device_uuid = bytes_of_string(worker->device_uuid),
        .device_driver = bytes_of_string(worker->device_driver),
        .device_capability = worker->device_capability,
        .model = bytes_of_string(worker->model),
        .aliases = {worker->aliases, worker->n_aliases},
        .chat = worker->chat,
        .tools = bytes_of_string(worker->tools),
        .thinks = worker->thinks,
        .dialect = bytes_of_string(worker->dialect),
        .digest = bytes_of_string(worker->digest_text),
        .arithmetic = bytes_of_string(worker->arithmetic),
        .choices = bytes_of_string(worker->choices),
        .sampling = bytes_of_string(worker->sampling),
        .embedding = worker->embedding,
        .ranks = worker->ranks,
        .state = worker->state == WORKER_READY && broker->draining ? WORKER_DRAINING : worker->state,
        .pid = record->pid,
        .incarnation = worker->incarnation,
        .restarts = worker->incarnation > 0 ? worker->incarnation - 1 : 0,
        .slots = worker->slots,
        .context = worker->context,
        .steps = steps,
        .tokens_per_s = rate_of(board.tokens_per_s),
        .hit_rate = hit_rate(&board),
        .reason = bytes_of_string(worker->state == WORKER_READY ? "" : record->reason),
    };
#define COPY_GAUGE(type, name, ...) status->name = board.name;
    WORKER_GAUGES(COPY_GAUGE)
    WORKER_HISTOGRAMS(COPY_GAUGE)
    /* The board knows that a process is loading before it registers. */
    if (worker->state == WORKER_STARTING && board.state == WORKER_LOADING)
        status->state = WORKER_LOADING;
}

/* Of a pool that began at that second; 0: not known. */
static uint64_t uptime_s(uint32_t began)
{
    uint64_t now = clock_ns() / CLOCK_NS_PER_S;
    return began > 0 && now > began ? now - began : 0;
}

void status_fill(const struct broker *broker, uint64_t ref, struct worker_status workers[WORKER_MAX],
                 struct message *ret_message)
{
    struct message ok = {.kind = MESSAGE_STATUS_OK};
    for (uint32_t i = 0; i < broker->n_workers; i++)
        fill_worker(broker, i, &workers[i]);
    ok.status_ok.ref = ref;
    ok.status_ok.boot = broker->supervisor.boot;
    ok.status_ok.draining = broker->draining;
    ok.status_ok.version = BYTES_LITERAL(QUERN_VERSION);
    ok.status_ok.sessions = (uint32_t)broker->sessions.n;
    ok.status_ok.queued = (uint32_t)broker->queue.n;
    ok.status_ok.running = (uint32_t)(broker_n_alive(broker) - broker->queue.n);
    ok.status_ok.admitted = broker->counters.admitted;
    ok.status_ok.ended = broker->counters.ended;
    ok.status_ok.rejected = broker->counters.rejected;
    ok.status_ok.moved = broker->counters.moved;
    ok.status_ok.tokens = broker->counters.tokens;
    ok.status_ok.journal_bytes = broker->journal.used;
    ok.status_ok.journal_limit = broker->journal.limit;
    ok.status_ok.journal_waiting = broker->growth.n_waiting;
    ok.status_ok.max_tokens = broker->options.max_tokens;
    ok.status_ok.uptime_s = uptime_s(broker->options.began);
    ok.status_ok.supervisor_pid = (uint32_t)getppid();
    ok.status_ok.broker_pid = (uint32_t)getpid();
    ok.status_ok.gateway_pid = broker->supervisor.gateway_pid;
    ok.status_ok.workers.items = workers;
    ok.status_ok.workers.n = broker->n_workers;
    *ret_message = ok;
}

/* What the workers registered, whether or not they are ready this moment: a model whose only worker is being
 * started again is still the pool's. */
size_t status_models(const struct broker *broker, struct model_info models[WORKER_MAX])
{
    size_t n = 0;
    for (uint32_t i = 0; i < broker->n_workers; i++) {
        const struct worker *worker = &broker->workers[i];
        if (worker->model[0] == 0 || worker->state == WORKER_FAILED)
            continue;
        size_t m = 0;
        while (m < n && memcmp(models[m].digest.data, worker->digest, sizeof worker->digest) != 0)
            m++;
        if (m == n)
            models[n++] = (struct model_info){.name = bytes_of_string(worker->model),
                                              .digest = {worker->digest, sizeof worker->digest},
                                              .context = worker->context,
                                              .chat = worker->chat};
        if (worker->context < models[m].context) /* the smallest: what fits it fits everywhere */
            models[m].context = worker->context;
        models[m].workers += worker_is_serving(worker);
        if (worker->embedding > models[m].embedding)
            models[m].embedding = worker->embedding;
        models[m].ranks |= worker->ranks;
    }
    return n;
}

bool status_may_see_all(const struct session *asker)
{
    return asker->near && asker->key == 0;
}

bool status_may_see(const struct session *asker, const struct request *request)
{
    return status_may_see_all(asker) ||
           memcmp(request_client(request), session_client(asker), sizeof(struct id128)) == 0;
}

static bool is_wanted(const struct request *request, const struct session *asker, struct bytes name)
{
    if (request->state == REQUEST_ENDED || (name.len > 0 && !bytes_equal(name, request->name)))
        return false;
    return status_may_see(asker, request);
}

static struct request_status describe(const struct broker *broker, const struct request *request,
                                      char id[2 * sizeof(struct id128) + 1])
{
    const bool waits = request->state == REQUEST_RUNNING && request->growth.waits;
    hex_write(request->home.id.bytes, sizeof request->home.id, id);
    return (struct request_status){
        .id = bytes_of_string(id),
        .request_id = request->name,
        .state = bytes_of_string(waits ? "waiting" : request_state_name(request->state)),
        .worker = bytes_of_string(request->worker ? request->worker->name : ""),
        .model = request->model,
        .age_ms =
            broker->now > request->arrived_ns ? (broker->now - request->arrived_ns) / CLOCK_NS_PER_MS : 0,
        .tokens = request->log.count,
        .moves = request->epoch.move,
    };
}

int status_requests(const struct broker *broker, const struct session *asker, uint32_t most,
                    struct bytes name, struct status_requests *ret_requests)
{
    struct status_requests found = {0};
    size_t room = broker->ledger.n < most ? broker->ledger.n : most;
    if (room > 0 && (!(found.items = calloc(room, sizeof *found.items)) ||
                     !(found.ids = calloc(room, sizeof *found.ids)))) {
        status_requests_free(&found);
        return -ENOMEM;
    }
    for (const struct request *request = broker->ledger.by_home; request && found.n < room;
         request = request->by_home.next)
        if (is_wanted(request, asker, name)) {
            found.items[found.n] = describe(broker, request, found.ids[found.n]);
            found.n++;
        }
    *ret_requests = found;
    return 0;
}

void status_requests_free(struct status_requests *requests)
{
    free(requests->items);
    free(requests->ids);
    *requests = (struct status_requests){0};
}
