/* SPDX-License-Identifier: MIT */
/* See members.h. The thread owns the folder's state, and hands over lists: under the lock there is at most
 * one that nobody has taken yet, the newest. */

#include "gateway/fleet/members.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/log.h"
#include "gateway/fleet/dns.h"

#define STOP_SECONDS 1 /* that a blocked thread is waited for */

struct members {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stopped;
    bool stop;
    struct member *list; /* [n] not taken yet; NULL: none */
    size_t n;
    /* The thread's own. */
    struct folder folder;
    bool has_name; /* instead of a folder: */
    struct dns dns;
    struct member *last; /* [n_last] as handed over last */
    size_t n_last;
};

static void hand_over(struct members *members, struct member *list_take, size_t n)
{
    pthread_mutex_lock(&members->lock);
    free(members->list);
    members->list = list_take;
    members->n = n;
    pthread_mutex_unlock(&members->lock);
}

static void look(struct members *members)
{
    struct member *list, *copy;
    size_t n;
    const bool known = members->has_name ? dns_look(&members->dns) : folder_look(&members->folder);
    const int r = !known              ? -ENODATA
                  : members->has_name ? dns_members(&members->dns, &list, &n)
                                      : folder_members(&members->folder, &list, &n);
    if (r < 0)
        return;
    const bool same =
        members->last && n == members->n_last && memcmp(list, members->last, n * sizeof *list) == 0;
    if (same || !(copy = malloc((n + 1) * sizeof *copy))) {
        free(list);
        return;
    }
    memcpy(copy, list, n * sizeof *copy);
    free(members->last);
    members->last = copy;
    members->n_last = n;
    hand_over(members, list, n);
}

/* Until it is time for the next look. False: it is time to end. */
static bool wait_a_while(struct members *members)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const long every_ms = members->has_name ? DNS_EVERY_MS : MEMBERS_EVERY_MS;
    until.tv_nsec += every_ms % 1000 * 1000000L;
    until.tv_sec += every_ms / 1000 + until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&members->lock);
    int r = 0;
    while (!members->stop && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&members->stopped, &members->lock, &until);
    const bool goes_on = !members->stop;
    pthread_mutex_unlock(&members->lock);
    return goes_on;
}

static void *run(void *arg)
{
    struct members *members = arg;
    do
        look(members);
    while (wait_a_while(members));
    return NULL;
}

static struct members *free_all(struct members *members)
{
    folder_deinit(&members->folder);
    dns_deinit(&members->dns);
    free(members->last);
    free(members->list);
    pthread_cond_destroy(&members->stopped);
    pthread_mutex_destroy(&members->lock);
    free(members);
    return NULL;
}

static int open_place(struct members *members, const char *place, const char *server_key, struct error *err)
{
    members->folder.path = place;
    members->has_name = dns_is_place(place);
    return members->has_name ? dns_init(&members->dns, place, server_key, err) : folder_check(place, err);
}

int members_start(const char *place, const char *server_key, struct members **ret_members, struct error *err)
{
    struct members *members = calloc(1, sizeof *members);
    if (!members)
        return error_set(err, -ENOMEM, "fleet: out of memory");
    int r = open_place(members, place, server_key, err);
    if (r < 0) {
        free(members);
        return r;
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&members->lock, NULL);
    pthread_cond_init(&members->stopped, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigset_t all, before; /* signals are the main thread's */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = -pthread_create(&members->thread, NULL, run, members);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r < 0) {
        free_all(members);
        return error_set(err, r, "fleet: a thread for %s: %s", place, strerror(-r));
    }
    *ret_members = members;
    return 0;
}

struct members *members_stop(struct members *members)
{
    struct timespec until;
    if (!members)
        return NULL;
    pthread_mutex_lock(&members->lock);
    members->stop = true;
    pthread_cond_signal(&members->stopped);
    pthread_mutex_unlock(&members->lock);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += STOP_SECONDS;
    if (pthread_timedjoin_np(members->thread, NULL, &until) == 0)
        return free_all(members);
    log_warn("fleet: %s does not respond: abandoning the thread that reads it", members->folder.path);
    pthread_detach(members->thread);
    return NULL;
}

bool members_take(struct members *members, struct member **ret_list, size_t *ret_n)
{
    pthread_mutex_lock(&members->lock);
    struct member *list = members->list;
    if (list) {
        *ret_list = list;
        *ret_n = members->n;
    }
    members->list = NULL;
    pthread_mutex_unlock(&members->lock);
    return list != NULL;
}
