/* SPDX-License-Identifier: MIT */
/* The processes of the workers.
 *
 *     WAITING ──start_at──▶ STARTING ──ready──▶ READY
 *        ▲                     │                  │
 *        │      died           │                  │
 *        └─────────────────────┴──────────────────┘
 *                │ exit 78, or a crash loop                 asked to stop
 *                ▼                                               ▼
 *              FAILED                                          GONE ──put back──▶ WAITING
 *
 * Alive is who makes progress, not who has a process: a ready worker that has work and whose layer and step
 * counters stand still for ten seconds is killed and counts as dead. A worker killed inside a write leaves
 * its slot of the board unreadable, so the slot is reset before the next one is started on it.
 *
 * A worker that is replaced drains and ends by itself, and the next process starts at once. The first ones of
 * another program are on trial: should they fail for good, or stand still once, the file that the workers
 * before were started from is started again. It is held open for that, since another may lie at its path by
 * now. */

#include "supervisor/places.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/system/available.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/program/program.h"
#include "common/system/shm.h"
#include "common/utf8.h"
#include "supervisor/children/doors.h"
#include "supervisor/children/launch.h"

#define WANT_RETRY_NS CLOCK_NS_PER_S /* until a start is tried again that failed for want of something */

static const char *const state_names[] = {
    [PLACE_WAITING] = "waiting", [PLACE_STARTING] = "starting", [PLACE_READY] = "ready",
    [PLACE_FAILED] = "failed",   [PLACE_GONE] = "gone",
};

const char *place_state_name(enum place_state state)
{
    return state < PLACE_STATE_COUNT ? state_names[state] : "unknown";
}

/* Whoever takes more than his control group may have is killed for it, and does not hear that it was
 * too much. */
static int check_store(const struct options *options, struct error *err)
{
    struct available available;
    uint64_t bytes = (uint64_t)options->prefix_store << 20;
    if (available_read("", &available) < 0 || bytes <= available.now)
        return 0;
    return error_set(err, -ENOMEM,
                     "a prefix store of %u MiB does not fit: %s has %llu MiB, %llu of them free",
                     options->prefix_store, available.by, (unsigned long long)available.total >> 20,
                     (unsigned long long)available.now >> 20);
}

int places_init(struct places *places, const struct options *options, int rundir_fd, uint64_t boot,
                struct error *err)
{
    *places = (struct places){.options = options,
                              .boot = boot,
                              .rundir_fd = rundir_fd,
                              .store_fd = -1,
                              .proven_fd = -1,
                              .n = options->workers};
    for (uint32_t i = 0; i < SUPERVISION_PLACES_MAX; i++) {
        places->places[i].record.index = i;
        places->places[i].slot_fd = -1;
        places->places[i].log.fd = -1;
    }
    int r = program_sibling("quern-worker", places->program, err);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < places->n && r == 0; i++)
        r = board_create(&places->places[i].slot_fd, &places->places[i].slot);
    if (r < 0) {
        places_deinit(places);
        return error_set(err, r, "shared memory for the board: %s", shm_reason(r));
    }
    places_prove(places);
    if (options->prefix_store == 0)
        return 0;
    r = check_store(options, err);
    if (r < 0) {
        places_deinit(places);
        return r;
    }
    /* The workers alone know what is in it. */
    r = shm_create("quern-prefixes", (size_t)options->prefix_store << 20, &places->store_fd);
    if (r == 0)
        r = shm_seal_size(places->store_fd);
    if (r < 0) {
        places_deinit(places);
        return error_set(err, r, "%u MiB of memory for the prefix store: %s", options->prefix_store,
                         shm_reason(r));
    }
    return 0;
}

static void move_to(struct place *place, enum place_state state)
{
    log_debug("worker-%u: %s -> %s", place->record.index, place_state_name(place->record.state),
              place_state_name(state));
    place->record.state = state;
    place->changed = true;
}

/* The place is empty again. */
static void clear_place(const struct places *places, struct place *place)
{
    place->record.pid = 0;
    doors_remove(&place->record, places->rundir_fd);
    board_reset(place->slot);
}

static void start_again(struct place *place, uint64_t now)
{
    place->restart = (struct restart){0};
    place->record.start_at = now;
    move_to(place, PLACE_WAITING);
}

static bool may_go_back(const struct places *places)
{
    return !places->use_proven && places->proven_fd >= 0;
}

/* Another start would end the same way; unless there is another program. */
static void give_up(struct places *places, struct place *place, uint64_t now)
{
    if (!place->on_trial || !may_go_back(places)) {
        move_to(place, PLACE_FAILED);
        return;
    }
    places->use_proven = true;
    place->on_trial = false;
    start_again(place, now);
}

/* The process there is of a program on trial, and not the one before, which is to make room for it. */
static bool is_tried(const struct place *place)
{
    return place->on_trial && place->replace_by == 0;
}

/* No process, because somebody asked for that. */
static void go(struct place *place)
{
    if (place->drained)
        snprintf(place->record.reason, sizeof place->record.reason,
                 "drained; quern undrain worker-%u starts it again", place->record.index);
    move_to(place, PLACE_GONE);
}

/* What comes after a death, or after a start that failed. A worker that served for as long as it had been
 * waited for starts from the shortest wait again. */
static void after_death(struct places *places, struct place *place, bool permanent, uint64_t now)
{
    bool made_room = place->replace_by > 0 && place->record.left;
    bool taken_back = place->stalled_ms > 0 && is_tried(place) && may_go_back(places);
    clear_place(places, place);
    place->replace_by = 0;
    if (places->stopping || place->drained)
        go(place);
    else if (made_room)
        start_again(place, now);
    else if (permanent || taken_back ||
             !restart_died(&place->restart, place->restart.wait_ns, now, &place->record.start_at))
        give_up(places, place, now);
    else
        move_to(place, PLACE_WAITING);
}

/* ---- births ---- */

struct place *places_due(struct places *places, uint64_t now)
{
    for (uint32_t i = 0; i < places->n && !places->stopping; i++) {
        struct place *place = &places->places[i];
        if (place->record.state == PLACE_WAITING && place->record.start_at <= now)
            return place;
    }
    return NULL;
}

uint64_t places_next(const struct places *places)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < places->n && !places->stopping; i++) {
        const struct place_record *record = &places->places[i].record;
        if (record->state == PLACE_WAITING && record->start_at < next)
            next = record->start_at;
    }
    return next;
}

void places_announce(struct places *places, struct place *place)
{
    struct place_record *record = &place->record;
    record->incarnation++;
    place->stall = (struct stall){0};
    place->life = (struct life){0};
    place->stalled_ms = 0;
    doors_name(record, places->options->rundir, places->boot);
    move_to(place, PLACE_STARTING);
}

/* Descriptors, processes or memory were wanting: the machine may have them again in a moment, and the worker
 * is not to blame. */
static bool is_want(int r)
{
    return r == -EMFILE || r == -ENFILE || r == -EAGAIN || r == -ENOMEM;
}

/* Makes its doors and its process. What launch_worker and doors_open say. */
static int launch(const struct places *places, const struct place *place, pid_t *ret_pid, int *ret_fd,
                  struct error *err)
{
    const struct place_record *record = &place->record;
    char name[24], proven[32];
    struct doors doors;
    int r = doors_open(record, &doors, err);
    if (r < 0)
        return r;
    snprintf(name, sizeof name, "worker-%u", record->index);
    snprintf(proven, sizeof proven, "/proc/self/fd/%d", places->proven_fd);
    const struct launch_plan plan = {.program = places->use_proven ? proven : places->program,
                                     .options = places->options,
                                     .name = name,
                                     .index = record->index,
                                     .incarnation = record->incarnation,
                                     .doors = doors,
                                     .board_fd = place->slot_fd,
                                     .store_fd = places->store_fd};
    r = launch_worker(&plan, ret_pid, ret_fd, err);
    doors_close(&doors); /* the worker's alone: they end with it */
    return r;
}

void places_start(struct places *places, struct place *place, uint64_t now)
{
    struct place_record *record = &place->record;
    struct error err;
    pid_t pid;
    int fd, r = launch(places, place, &pid, &fd, &err);
    if (r == 0) {
        record->pid = (uint32_t)pid;
        place->changed = true;
        worker_log_open(&place->log, fd);
        return;
    }
    snprintf(record->reason, sizeof record->reason, "%s", err.text);
    record->left = false;
    if (!is_want(r)) {
        after_death(places, place, false, now);
        return;
    }
    clear_place(places, place);
    record->start_at = now + WANT_RETRY_NS;
    move_to(place, PLACE_WAITING);
}

/* ---- deaths ---- */

/* A command line that one process does not understand, the next will not either. */
static bool is_permanent(int status)
{
    return WIFEXITED(status) &&
           (WEXITSTATUS(status) == PROGRAM_EXIT_PERMANENT || WEXITSTATUS(status) == PROGRAM_EXIT_USAGE);
}

static void describe_death(struct place *place, int status)
{
    const char *last = worker_log_last(&place->log);
    const char *colon = last[0] ? ": " : "";
    char *reason = place->record.reason;
    size_t size = sizeof place->record.reason;
    if (place->stalled_ms > 0)
        snprintf(reason, size, "made no progress%s for %u s and was killed",
                 place->record.state == PLACE_STARTING ? " while loading" : "", place->stalled_ms / 1000);
    else if (WIFSIGNALED(status))
        snprintf(reason, size, "killed by signal %d (%s)%s%.300s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)), colon, last);
    else if (is_permanent(status) && last[0])
        snprintf(reason, size, "%.500s", last);
    else
        snprintf(reason, size, "exit status %d%s%.300s", WEXITSTATUS(status), colon, last);
    utf8_clean(reason);
}

void places_reap(struct places *places, uint64_t now)
{
    for (uint32_t i = 0; i < places->n; i++) {
        struct place *place = &places->places[i];
        pid_t pid = (pid_t)place->record.pid;
        int status;
        if (pid <= 0 || waitpid(pid, &status, WNOHANG) != pid)
            continue;
        bool permanent = is_permanent(status);
        worker_log_close(&place->log, permanent);
        place->record.left = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        place->record.unfit = WIFEXITED(status) && WEXITSTATUS(status) == PROGRAM_EXIT_USAGE;
        describe_death(place, status);
        after_death(places, place, permanent, now);
    }
}

/* ---- what the broker asks for ---- */

/* The place whose living process this is; NULL when that is gone. */
static struct place *living(struct places *places, uint32_t index, uint32_t incarnation)
{
    struct place *place = index < places->n ? &places->places[index] : NULL;
    return place && place->record.incarnation == incarnation && place->record.pid > 0 ? place : NULL;
}

void places_ready(struct places *places, uint32_t index, uint32_t incarnation, uint64_t now)
{
    struct place *place = living(places, index, incarnation);
    if (!place || place->record.state != PLACE_STARTING)
        return;
    move_to(place, PLACE_READY);
    place->on_trial = false;
    restart_ready(&place->restart, now);
}

void places_kill(struct places *places, uint32_t index, uint32_t incarnation)
{
    struct place *place = living(places, index, incarnation);
    if (place)
        kill((pid_t)place->record.pid, SIGKILL);
}

void places_stop(struct places *places, int signal)
{
    places->stopping = true;
    for (uint32_t i = 0; i < places->n; i++) {
        struct place *place = &places->places[i];
        if (place->record.pid > 0)
            kill((pid_t)place->record.pid, signal);
        else if (place->record.state == PLACE_WAITING)
            go(place);
    }
}

/* ---- replacement ---- */

void places_prove(struct places *places)
{
    int fd = open(places->program, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return;
    if (places->proven_fd >= 0)
        close(places->proven_fd);
    places->proven_fd = fd;
}

void places_try_anew(struct places *places)
{
    places->use_proven = false;
}

bool places_took_back(const struct places *places)
{
    return places->use_proven;
}

void places_replace(struct places *places, uint32_t index, uint64_t patience_ns, uint64_t now)
{
    struct place *place = &places->places[index];
    if (place->drained)
        return;
    place->on_trial = true;
    if (place->record.pid > 0) {
        place->replace_by = now + patience_ns;
        kill((pid_t)place->record.pid, SIGTERM);
    } else if (place->record.state == PLACE_FAILED || place->record.state == PLACE_WAITING) {
        start_again(place, now);
    }
}

void places_take_out(struct places *places, uint32_t index, uint64_t patience_ns, uint64_t now)
{
    struct place *place = &places->places[index];
    place->drained = true;
    if (place->record.pid > 0) {
        place->replace_by = now + patience_ns;
        kill((pid_t)place->record.pid, SIGTERM);
    } else {
        go(place);
    }
}

void places_put_back(struct places *places, uint32_t index, uint64_t now)
{
    struct place *place = &places->places[index];
    place->drained = false;
    place->record.reason[0] = 0;
    start_again(place, now);
}

bool places_serves(const struct places *places, uint32_t index)
{
    const struct place *place = &places->places[index];
    return place->record.state == PLACE_READY && !place->drained;
}

static void close_slot(struct place *place)
{
    place->slot = board_unmap(place->slot);
    if (place->slot_fd >= 0)
        close(place->slot_fd);
    place->slot_fd = -1;
}

/* Its incarnations go on where they were, so that a message of an earlier one is of nobody. */
static void be_new(struct place *place)
{
    const struct place_record record = {.index = place->record.index,
                                        .incarnation = place->record.incarnation};
    const int slot_fd = place->slot_fd;
    struct board_slot *slot = place->slot;
    *place = (struct place){.record = record, .slot = slot, .slot_fd = slot_fd, .log.fd = -1};
}

int places_resize(struct places *places, uint32_t n, struct error *err)
{
    int r = 0;
    uint32_t made = places->n;
    for (; made < n && r == 0; made++)
        if ((r = board_create(&places->places[made].slot_fd, &places->places[made].slot)) < 0)
            break;
    for (uint32_t i = places->n; r < 0 && i < made; i++)
        close_slot(&places->places[i]);
    if (r < 0)
        return error_set(err, r, "shared memory for the board: %s", shm_reason(r));
    for (uint32_t i = n; i < places->n; i++)
        close_slot(&places->places[i]);
    for (uint32_t i = n < places->n ? n : places->n; i < n || i < places->n; i++)
        be_new(&places->places[i]);
    places->n = n;
    return 0;
}

/* ---- progress ---- */

/* The others serve while a program is on trial, and whoever waits for it wants to know soon. So one that
 * counts nothing, needs no processor and no disk, is not given the time that a slow load has. */
static bool hangs(struct place *place, uint64_t now)
{
    bool still = life_has_ceased(&place->life, (pid_t)place->record.pid, STALL_TRIAL_MS, now);
    return still && now - place->stall.since >= STALL_TRIAL_MS * CLOCK_NS_PER_MS;
}

/* With sequences active, and while it loads, only work counts; an idle worker must at least report. One that
 * never did has nothing to be judged by. */
static void watch(struct places *places, struct place *place, uint64_t now)
{
    const struct board_slot *slot = place->slot;
    bool loads = place->record.state == PLACE_STARTING;
    struct board_snapshot snapshot = {0};
    uint64_t progress = atomic_load(&slot->layers) + atomic_load(&slot->steps);
    if (board_read(slot, &snapshot) == 0 && !loads && snapshot.active == 0)
        progress = atomic_load(&slot->sequence);
    bool reports = loads || snapshot.active > 0 || progress > 0;
    uint32_t most_ms = loads ? STALL_LOADING_MS : STALL_MS;
    bool stalled = stall_check(&place->stall, reports, progress, most_ms, now);
    if (!stalled && loads && is_tried(place) && hangs(place, now)) {
        most_ms = STALL_TRIAL_MS;
        stalled = true;
    }
    if (!stalled)
        return;
    place->stalled_ms = most_ms;
    kill((pid_t)place->record.pid, SIGKILL);
}

void places_watch(struct places *places, uint64_t now)
{
    for (uint32_t i = 0; i < places->n; i++) {
        struct place *place = &places->places[i];
        if (place->record.pid > 0 && place->stalled_ms == 0)
            watch(places, place, now);
        if (place->record.pid > 0 && place->replace_by > 0 && place->replace_by <= now)
            kill((pid_t)place->record.pid, SIGKILL);
    }
}

void places_stood_still(struct places *places, uint64_t now)
{
    for (uint32_t i = 0; i < places->n; i++)
        places->places[i].stall.since = places->places[i].life.since = now;
}

void places_read_logs(struct places *places, uint64_t now)
{
    for (uint32_t i = 0; i < places->n; i++) {
        worker_log_read(&places->places[i].log, now);
        worker_log_flush(&places->places[i].log, now);
    }
}

void places_deinit(struct places *places)
{
    for (uint32_t i = 0; i < places->n; i++) {
        struct place *place = &places->places[i];
        if (place->record.pid > 0) {
            waitpid((pid_t)place->record.pid, NULL, 0);
            doors_remove(&place->record, places->rundir_fd);
        }
        worker_log_close(&place->log, false);
        close_slot(place);
    }
    if (places->store_fd >= 0)
        close(places->store_fd);
    if (places->proven_fd >= 0)
        close(places->proven_fd);
    places->proven_fd = places->store_fd = -1;
}
