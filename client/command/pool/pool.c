/* SPDX-License-Identifier: MIT */
/* Which pool it is, and the way to it. A socket alone may be left over from one that was killed: that a pool
 * runs is known by its lock, or by its answer. */

#include "client/command/pool/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/command/terminal/interrupt.h"
#include "client/command/pool/private_pool.h"
#include "client/command/terminal/progress.h"
#include "common/files/rundir.h"

#define CONNECT_MS 5000

struct pool {
    struct quern *client;
    struct private_pool own; /* zeroed: it is somebody else's */
};

struct quern *pool_client(struct pool *pool)
{
    return pool->client;
}

/* Whether a pool runs in the default run directory. */
static bool default_pool_runs(void)
{
    char folder[RUNDIR_PATH_MAX + 1], name[RUNDIR_PATH_MAX + 16];
    int fd;
    if (rundir_path(NULL, folder, NULL) < 0)
        return false;
    snprintf(name, sizeof name, "%s/frontend", folder);
    if (access(name, F_OK) < 0)
        return false;
    if (rundir_lock(folder, &fd, NULL) < 0)
        return true;
    close(fd);
    return false;
}

int pool_connect(const char *connect, const char *server_key, const char *client_key,
                 struct quern **ret_client, struct error *err)
{
    struct quern_error said = {0};
    int r;
    do { /* a signal that asks nobody to end interrupts a wait, too */
        r = quern_connect_curve(connect, server_key, client_key, CONNECT_MS, ret_client, &said);
    } while (r == -EINTR && !interrupt_signal());
    return r < 0 ? error_set(err, r, "%s", said.text) : 0;
}

/* Opens a session that knows the pool's model, whose chat template decides what a prompt becomes. A pool that
 * is still loading lists none yet, so the session is opened again until it does. */
static int connect_to_model(struct pool *pool, const char *endpoint, const char *server_key,
                            const char *client_key, struct error *err)
{
    struct progress progress;
    int r;
    progress_start(&progress);
    for (;;) {
        size_t n;
        r = pool_connect(endpoint, server_key, client_key, &pool->client, err);
        if (r < 0 || (quern_models(pool->client, &n), n > 0))
            break;
        pool->client = quern_free(pool->client);
        if (interrupt_signal()) {
            r = error_set(err, -EINTR, "interrupted");
            break;
        }
        progress_show(&progress, "the pool is loading its model");
        usleep(100000);
    }
    progress_end(&progress);
    return r;
}

int pool_open(const struct pool_options *options, struct pool **ret_pool, struct error *err)
{
    if (options->server_key && !options->connect)
        return error_set(err, -EINVAL, "--server-key requires --connect with a pool on the network");
    if (options->client_key && !options->server_key)
        return error_set(err, -EINVAL, "--client-key requires --server-key");
    struct pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return error_set(err, -ENOMEM, "out of memory");
    int r;
    if (options->model || (!options->connect && !default_pool_runs())) {
        r = private_pool_start(&pool->own, options, err);
        if (r == 0)
            r = connect_to_model(pool, pool->own.rundir, NULL, NULL, err);
    } else {
        r = connect_to_model(pool, options->connect, options->server_key, options->client_key, err);
    }
    if (r < 0) {
        pool_close(pool);
        return r;
    }
    *ret_pool = pool;
    return 0;
}

struct pool *pool_close(struct pool *pool)
{
    if (!pool)
        return NULL;
    quern_free(pool->client);
    private_pool_end(&pool->own);
    free(pool);
    return NULL;
}
