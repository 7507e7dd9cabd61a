/* SPDX-License-Identifier: MIT */
/* Keys of pools, and who has them: a folder beside the run directory, in it a folder for the public keys of
 * those who are let in. */

#include "tests/integration/hostile/door.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <zmq.h>

static void require(bool holds, const char *what, const char *why)
{
    if (holds)
        return;
    fprintf(stderr, "%s: %s\n", what, why);
    abort();
}

static void make_folder(const char *path)
{
    require(mkdir(path, 0700) == 0, path, strerror(errno));
}

static void make_pair(const char *folder, const char *name, struct certificate *ret_pair)
{
    struct error err = {0};
    require(zmq_curve_keypair(ret_pair->public_key, ret_pair->secret_key) == 0, "CURVE", strerror(errno));
    require(certificate_write(folder, name, ret_pair, &err) == 0, name, err.text);
}

void door_keys_make(struct door_keys *ret_keys, const char *rundir)
{
    *ret_keys = (struct door_keys){.port = pool_free_ports()};
    snprintf(ret_keys->folder, sizeof ret_keys->folder, "%s.keys", rundir);
    snprintf(ret_keys->clients, sizeof ret_keys->clients, "%s/clients", ret_keys->folder);
    make_folder(ret_keys->folder);
    make_folder(ret_keys->clients);
    make_pair(ret_keys->folder, "server", &ret_keys->server);
}

void door_keys_remove(struct door_keys *keys)
{
    if (!keys->folder[0])
        return;
    rundir_remove(keys->clients);
    rundir_remove(keys->folder);
    *keys = (struct door_keys){0};
}

void door_make(struct door *ret_door, enum door_kind kind, const struct pool *pool,
               const struct door_keys *keys, const char *name)
{
    *ret_door = (struct door){.kind = kind, .port = keys->port, .server = keys->server};
    snprintf(ret_door->rundir, sizeof ret_door->rundir, "%s", pool->rundir);
    if (kind == DOOR_RUNDIR)
        snprintf(ret_door->frontend, sizeof ret_door->frontend, "%s", pool->frontend);
    else
        snprintf(ret_door->frontend, sizeof ret_door->frontend, "tcp://127.0.0.1:%d", keys->port);
    if (kind != DOOR_KNOWN_KEY && kind != DOOR_UNKNOWN_KEY)
        return;
    const char *folder = kind == DOOR_KNOWN_KEY ? keys->clients : keys->folder;
    make_pair(folder, name, &ret_door->own);
    snprintf(ret_door->own_path, sizeof ret_door->own_path, "%s/%s", folder, name);
}

bool door_is_shut(const struct door *door)
{
    return door->kind == DOOR_UNKNOWN_KEY || door->kind == DOOR_NO_KEY;
}

int door_connect(const struct door *door, int timeout_ms, struct quern **ret_client, struct quern_error *err)
{
    if (door->kind == DOOR_RUNDIR || door->kind == DOOR_NO_KEY)
        return quern_connect(door->frontend, timeout_ms, ret_client, err);
    return quern_connect_curve(door->frontend, door->server.public_key, door->own_path, timeout_ms,
                               ret_client, err);
}
