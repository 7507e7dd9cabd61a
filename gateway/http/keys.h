/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_KEYS_H
#define GATEWAY_HTTP_KEYS_H

/* The API keys of the gateway and their limits.
 *
 * A file has a line for each key:
 *
 *     NAME KEY [requests=N] [tokens=N] [rpm=N] [tpm=N] [rpd=N] [tpd=N] [group=NAME]
 *
 * NAME is for the log. The pool divides its turns and shares between names (the `tenant` of a request): keys
 * with the same name are one, also at several gateways. `requests` bounds how many of its requests are
 * answered at a time, until clients have taken the answers, `tokens` how many tokens they may ask for
 * together (max_tokens times n); without them there is no bound. `rpm` and `rpd` bound the requests of the
 * name in a minute and a day, `tpm` and `tpd` the tokens of their prompts and answers: the pool counts them,
 * over all gateways, so keys of one name have the same ones. What requests of a name have sent is found in
 * the prefix cache for those of the same name only, or for all of the same group. Empty lines and those that
 * begin with # are passed over. */

#include <quern.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"
#include "gateway/http/budget.h"
#include "gateway/json/refusal.h"

#define KEYS_MOST       4096
#define KEYS_MOST_RATE  1000000000000000ull /* what the protocol takes */
#define KEY_BYTES_MOST  256                 /* of one key */
#define KEY_BYTES_LEAST 16                  /* a shorter one is guessed */

#define KEYS_SALT_MOST   64 /* bytes of a salt that a request brings */
#define KEYS_SPACE_BYTES 33

/* Questions for a tokenizer that have no answer yet, and their bytes. The pool accepts so many of one
 * session; a key may have, together with the new question, as many as it leaves free. */
struct asked {
    size_t n, bytes;
};
#define KEYS_MOST_ASKED       128
#define KEYS_MOST_ASKED_BYTES ((size_t)16 << 20)

struct key {
    char name[64];
    char tenant[33]; /* told to the pool: a hash of the name, in hexadecimal */
    char space[KEYS_SPACE_BYTES +
               1]; /* who shares cached prefixes with it: "k" or "g", and a hash of its name or its group's */
    char secret[KEY_BYTES_MOST + 1];
    size_t secret_len;
    uint64_t most_requests, most_tokens; /* at once; 0: no bound */
    uint64_t rpm, tpm, rpd, tpd;         /* of the name; 0: no bound */
    uint64_t requests, tokens;           /* now */
    struct budget bodies;                /* of its requests: a part of all bodies, see keys_share */
    struct asked asked;                  /* questions for a tokenizer, now */
};

struct keys { /* zeroed: none, and everybody may */
    struct key *list;
    size_t n;
    struct asked asked; /* by all keys */
};

/* Parses the text of a file; `name` is for errors, which also have the line. -EINVAL, -ENOMEM; nothing is to
 * be freed then. */
int keys_parse(struct bytes text, const char *name, struct keys *ret_keys, struct error *err);

/* Reads a file (common/files/secret_file.h says which). -EPERM when others can read it. */
int keys_read(const char *path, struct keys *ret_keys, struct error *err);

void keys_deinit(struct keys *keys);

/* Makes the bodies of each key a part of all: half of them at most, so that one key leaves room to others,
 * but at least one body of so many bytes. What is in use stays counted. */
void keys_share(struct keys *keys, struct budget *bodies, size_t one_body);

/* The key with these bytes, or NULL. Every key is compared whole: the time does not tell how much of one was
 * right. */
struct key *keys_find(const struct keys *keys, struct bytes secret);

/* The tenant of a key's requests; NULL without a key. */
static inline const char *key_tenant(const struct key *key)
{
    return key ? key->tenant : NULL;
}

/* Sets the limits of a key's requests, which the pool counts by their tenant. NULL has none. */
void key_set_rates(const struct key *key, struct quern_request *request);

/* The salt of a request of a key (NULL: there are no keys) that brings a salt itself (NULL: none), of at most
 * KEYS_SALT_MOST bytes. Different keys and salts make different ones, but those of a group. `shared`: all
 * keys are one group. NULL: none. */
const char *key_salt(const struct key *key, bool shared, const char *salt,
                     char text[KEYS_SPACE_BYTES + KEYS_SALT_MOST + 1]);

/* Counts a question of so many bytes: 0, or REFUSED with 429 beyond the key's share. Without a key nothing is
 * counted. */
int keys_ask(struct keys *keys, struct key *key, size_t bytes, struct refusal *refusal);
void keys_answered(struct keys *keys, struct key *key, size_t bytes);

/* Takes a place for a request that may make so many tokens: 0, or REFUSED with 429. NULL has no bounds. */
int key_take(struct key *key, uint64_t tokens, struct refusal *refusal);
void key_release(struct key *key, uint64_t tokens);

#endif
