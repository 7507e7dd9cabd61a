/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_CLIENT_KEYS_H
#define BROKER_BOOKS_CLIENT_KEYS_H

/* The public keys of clients that may connect over TCP: a folder of CURVE certificates, one per client, as
 * `quern keys`, czmq and pyzmq write them. A file's name is the client's name. Hidden files, subfolders and
 * names that end in "_secret" are skipped. A file that cannot be read or is not a certificate grants no
 * access and is named in the log.
 *
 * The folder is checked twice a second. A change takes effect once two checks have seen the same contents, so
 * a partial change is never used. While the folder cannot be read, the keys stay as they are; if it is
 * removed, there are none.
 *
 * Every key has a number, never 0 and never reused: a key that is removed and added again gets a new one. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

#include "common/error.h"

#define CLIENT_KEYS_MAX      4096
#define CLIENT_KEY_BYTES     32
#define CLIENT_KEY_NAME      64 /* bytes with the zero; longer names are cut */
#define CLIENT_KEYS_EVERY_MS 500

struct client_key {
    uint8_t bytes[CLIENT_KEY_BYTES];
    uint32_t number;
    char name[CLIENT_KEY_NAME];
    bool found; /* while the folder is read */
    /* Its use, for allowance.h. */
    uint32_t sessions;
    double tokens;      /* left in its bucket */
    uint64_t filled_ns; /* clock_ns when that was computed; 0: never */
    uint64_t asked_ns;  /* when it last sent a question for instruments.h; 0: never */
    UT_hash_handle by_bytes, by_number;
};

struct client_keys {    /* zeroed: no folder, and no keys */
    const char *folder; /* the caller's; NULL: clients need no keys */
    uint32_t last_number;
    struct client_key *by_bytes, *by_number;
    uint64_t read, seen; /* fingerprints of the folder when it was read, and at the last check */
    uint64_t look_ns;    /* clock_ns of the next check */
    bool unreadable;     /* the folder cannot be read, which was logged */
};

/* Reads the folder; its path must outlive the keys. -errno with the reason: it cannot be read, it is
 * world-writable, or it has more than CLIENT_KEYS_MAX files. */
int client_keys_init(struct client_keys *keys, const char *folder, uint64_t now, struct error *err);
void client_keys_deinit(struct client_keys *keys);

/* Checks the folder for changes when that is due. Returns whether keys were removed. */
bool client_keys_look(struct client_keys *keys, uint64_t now);

/* The key with these bytes, or with this number; NULL: unknown. */
struct client_key *client_keys_find(const struct client_keys *keys, const uint8_t bytes[CLIENT_KEY_BYTES]);
struct client_key *client_keys_of(const struct client_keys *keys, uint32_t number);

#endif
