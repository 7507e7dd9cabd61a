/* SPDX-License-Identifier: MIT */
/* What peers ask a running pool for: reload, other settings, another number of workers.
 *
 * One change at a time. A change that fails leaves nothing behind. */

#include "supervisor/changes.h"

#include <unistd.h>

#include "common/log.h"
#include "supervisor/broker_child.h"
#include "supervisor/wishes.h"

/* Why that cannot be done now; NULL: it can. */
static const char *reason_against(const struct supervision *self, enum control_kind kind)
{
    if (kind == CONTROL_RELOAD_GATEWAY && self->gateway.listen_fd < 0 && self->signals == 0)
        return "the pool serves no HTTP";
    return self->signals > 0                        ? "the pool was told to end"
           : !self->serving                         ? "the pool has not started yet"
           : self->reload.stage != RELOAD_NONE      ? reload_says_busy(&self->reload)
           : self->change != BROKER_KEPT            ? "the broker is being replaced"
           : access(self->options->model, R_OK) < 0 ? "the model file can no longer be read"
                                                    : NULL;
}

/* The settings from the file: they are read here, and what they name is checked by those who will use it,
 * before anything is touched. */
static int begin_check(struct supervision *self, struct error *err)
{
    const struct wishes_line line = {self->argc, self->argv, self->most_journal};
    const char *gateway = self->gateway.listen_fd < 0 ? NULL : self->gateway.program;
    int r = wishes_read_settings(&self->places, &line, &self->next, err);
    if (r == 0)
        r = check_begin(&self->check, self->places.program, gateway, self->gateway.listen_fd, &self->next,
                        self->now, err);
    if (r < 0)
        return error_prefix(err, r, "nothing was changed");
    reload_begin_check(&self->reload, self->now);
    return 0;
}

/* All of them are taken, or none. */
static void take_settings(struct supervision *self)
{
    const uint32_t n = self->next.workers;
    self->before = *self->options;
    self->next.workers = self->options->workers; /* until there are so many places */
    *self->options = self->next;
    self->changes = true;
    reload_begin(&self->reload, &self->places, CONTROL_RELOAD_CONFIG, n, self->now);
}

/* A worker that failed while others were asked may have been the last one. */
static void continue_check(struct supervision *self)
{
    struct error err = {{0}};
    if (self->reload.stage != RELOAD_CHECK) { /* the pool was told to end, or there is none */
        check_stop(&self->check);
        return;
    }
    int r = check_turn(&self->check, self->now, &err);
    if (r == 0)
        r = wishes_check_scale(&self->places, self->next.workers, &err);
    if (r < 0)
        reload_refused(&self->reload, &self->control, err.text);
    else if (r == 0)
        take_settings(self);
}

/* Begins what a peer asks for, if it can be done. */
static int begin(struct supervision *self, const struct control_peer *peer, struct error *err)
{
    uint32_t n = self->places.n;
    int r = 0;
    if (peer->kind == CONTROL_RELOAD_GATEWAY) {
        reload_begin_gateway(&self->reload, &self->gateway, self->now);
        return 0;
    }
    if (peer->kind == CONTROL_RELOAD_CONFIG)
        return begin_check(self, err);
    if (peer->kind == CONTROL_SCALE && (r = wishes_check_scale(&self->places, peer->number, err)) == 0)
        n = peer->number;
    if (peer->kind == CONTROL_DRAIN || peer->kind == CONTROL_UNDRAIN) {
        n = peer->number;
        r = wishes_check_worker(&self->places, n, peer->kind == CONTROL_DRAIN, err);
    }
    if (r == 0)
        reload_begin(&self->reload, &self->places, peer->kind, n, self->now);
    return r;
}

/* A reload that failed leaves nothing behind: workers that were to go stay, and settings that were to come
 * are taken back, by another reload, which nobody waits for. */
static void take_back_settings(struct supervision *self)
{
    bool failed = self->reload.stage == RELOAD_NONE && self->reload.failed, changed = self->changes;
    if (self->reload.stage != RELOAD_NONE)
        return;
    self->changes = self->reload.failed = false;
    if (!failed || self->signals > 0)
        return;
    reload_put_back(&self->reload, &self->places, self->now);
    if (!changed)
        return;
    log_info("reload: restoring the old settings");
    uint32_t n = self->options->workers;
    *self->options = self->before;
    self->options->workers = n; /* places that there are */
    reload_begin(&self->reload, &self->places, CONTROL_RELOAD, self->before.workers, self->now);
    self->reload.restores = true;
}

void changes_turn(struct supervision *self)
{
    struct control_peer *peer;
    while (control_take(&self->control, &peer)) {
        struct error err = {{0}};
        const char *against = reason_against(self, peer->kind);
        if (!against && begin(self, peer, &err) < 0)
            against = err.text;
        if (against)
            control_refuse(peer, against);
        else
            control_follow(peer);
    }
    continue_check(self);
    if (reload_turn(&self->reload, &self->places, &self->gateway, &self->control, self->now))
        broker_child_replace(self);
    take_back_settings(self);
}
