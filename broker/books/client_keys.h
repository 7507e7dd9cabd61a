/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_CLIENT_KEYS_H
#define BROKER_BOOKS_CLIENT_KEYS_H

/* The public keys of clients that may connect over TCP: a folder of CURVE certificates, one a client, as
 * `quern keys`, czmq and pyzmq write them. The name of a file is its client's. Hidden files, subfolders and
 * what ends in "_secret" are passed over. A file that cannot be read or is not a certificate grants no access
 * and is named in the log.
 *
 * The folder is looked at twice a second. A change takes effect once it has been seen twice unchanged, so
 * that a partial change is never used. While it cannot be read at all the keys stay as they are; once it is
 * gone there are none.
 *
 * Keys are known by numbers, never 0 and never the same for two: a key that was taken away and comes back is
 * another one. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

#include "common/error.h"

#define CLIENT_KEYS_MAX      4096
#define CLIENT_KEY_BYTES     32
#define CLIENT_KEY_NAME      64 /* bytes with the zero; what is longer is cut */
#define CLIENT_KEYS_EVERY_MS 500

struct client_key {
    uint8_t bytes[CLIENT_KEY_BYTES];
    uint32_t number;
    char name[CLIENT_KEY_NAME];
    bool found; /* while the folder is read */
    /* What it has, for allowance.h. */
    uint32_t sessions;
    double tokens;      /* that it may still have */
    uint64_t filled_ns; /* as of then; clock_ns; 0: it had none yet */
    UT_hash_handle by_bytes, by_number;
};

struct client_keys {    /* zeroed: no folder, and no keys */
    const char *folder; /* the caller's; NULL: clients are not asked for keys */
    uint32_t last_number;
    struct client_key *by_bytes, *by_number;
    uint64_t read, seen; /* what the folder looked like when it was read, and when it was looked at last */
    uint64_t look_ns;    /* when it is looked at again; clock_ns */
    bool unreadable;     /* and that was said */
};

/* Reads the folder, whose path must live as long. -errno with the reason: it cannot be read, it is
 * world-writable, or it has more than CLIENT_KEYS_MAX files. */
int client_keys_init(struct client_keys *keys, const char *folder, uint64_t now, struct error *err);
void client_keys_deinit(struct client_keys *keys);

/* Looks whether the folder has changed, if it is time. True when keys were taken away. */
bool client_keys_look(struct client_keys *keys, uint64_t now);

/* The key of these bytes, or of this number; NULL: unknown. */
struct client_key *client_keys_find(const struct client_keys *keys, const uint8_t bytes[CLIENT_KEY_BYTES]);
struct client_key *client_keys_of(const struct client_keys *keys, uint32_t number);

#endif
