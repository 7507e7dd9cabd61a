/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_KEYS_H
#define GATEWAY_HTTP_KEYS_H

/* The API keys of the gateway and their limits.
 *
 * A file has a line for each key:
 *
 *     NAME KEY [requests=N] [tokens=N] [rpm=N] [tpm=N] [rpd=N] [tpd=N] [priority=N] [group=NAME]
 *
 * NAME appears in the log. The pool divides its turns and shares between names (the `tenant` of a request):
 * keys with the same name are one tenant, also at several gateways. `requests` bounds how many of the key's
 * requests are answered at a time, until clients have taken the answers; `tokens` how many tokens these may
 * ask for together (max_tokens times n); without them there is no bound. `rpm` and `rpd` bound the requests
 * of the name per minute and per day, `tpm` and `tpd` the tokens of their prompts and answers: the pool
 * counts them, over all gateways, so keys with the same name have the same limits. What other gateways have
 * of a key counts too, and so does what several pools have (gateway/sharing, which tells it here). `priority`
 * is by how many steps its requests may go before or behind others. Prompts in the prefix cache are shared
 * between requests of the same name, or of the same group. Empty lines and those that begin with # are
 * skipped.
 */

#include <quern.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"
#include "gateway/http/budget.h"
#include "gateway/http/use.h"
#include "gateway/json/refusal.h"

#define KEYS_MOST       4096
#define KEYS_MOST_RATE  1000000000000000ull /* the protocol's bound */
#define KEYS_PRIORITY   8                   /* the same, of priorities of either sign */
#define KEY_BYTES_MOST  256                 /* of one key */
#define KEY_BYTES_LEAST 16                  /* a shorter one could be guessed */

#define KEYS_SALT_MOST   64 /* bytes of a request's salt */
#define KEYS_SPACE_BYTES 33

/* Unanswered questions about texts or requests, and their bytes. The pool accepts up to the bounds below from
 * one session; a key may have, including the new question, as many as it leaves free. */
struct asked {
    size_t n, bytes;
};
#define KEYS_MOST_ASKED       128
#define KEYS_MOST_ASKED_BYTES ((size_t)16 << 20)

/* What a key has through other gateways, as it was last heard, and what this one may take until it has heard
 * what they take meanwhile: of what the bounds leave its share, but one request at least. Its own places that
 * become free it may take again. */
struct elsewhere {
    uint64_t requests, tokens;
    uint32_t gateways; /* that tell of it; 0: nobody else has anything of it, and there is no share */
    int64_t share_requests, share_tokens; /* of this gateway, since the last time that they were set */
    int64_t taken_requests, taken_tokens; /* of those; less than zero: more was given back than taken */
};

struct key {
    char name[64];
    char tenant[33];                  /* sent to the pool: a hash of the name, in hexadecimal */
    char space[KEYS_SPACE_BYTES + 1]; /* keys with the same space share cached prefixes: "k" or "g", and a
                                         hash of name or group */
    char secret[KEY_BYTES_MOST + 1];
    size_t secret_len;
    uint64_t most_requests, most_tokens; /* at once; 0: no bound */
    uint64_t rpm, tpm, rpd, tpd;         /* of the name; 0: no bound */
    uint64_t priority;                   /* its requests may have this, at most, of either sign */
    uint64_t requests, tokens;           /* now */
    uint8_t id[16];  /* a hash of the name, and of how many keys before it have that name too */
    bool is_another; /* such keys there are */
    struct elsewhere elsewhere;
    uint64_t asked_ns;    /* clock_ns of the last request, taken or not; 0: none yet */
    struct use *use;      /* of the name; NULL: it has no limits, or the pool alone counts them */
    struct budget bodies; /* of its requests: a part of all bodies, see keys_share */
    struct asked asked;   /* unanswered questions */
};

struct keys { /* zeroed: none are needed */
    struct key *list;
    size_t n;
    struct use *uses;   /* of their names; NULL: not counted here */
    struct asked asked; /* by all keys */
};

/* Parses the text of a file; `name` is for errors, which also name the line. 0; -EINVAL or -ENOMEM, with
 * nothing to free. */
int keys_parse(struct bytes text, const char *name, struct keys *ret_keys, struct error *err);

/* Reads a file with the rules of common/files/secret_file.h. -EPERM if others can read it. */
int keys_read(const char *path, struct keys *ret_keys, struct error *err);

void keys_deinit(struct keys *keys);

/* Makes the bodies of each key a part of all: at most half of them, so that one key leaves room for others,
 * but at least one body of `one_body` bytes. Bytes in use stay counted. */
void keys_share(struct keys *keys, struct budget *bodies, size_t one_body);

/* From now on what is used of limits a minute and a day is counted here too. 0 or -ENOMEM. */
int keys_count_use(struct keys *keys);

/* The key with these bytes, or NULL. Every key is compared completely, so the time does not reveal how much
 * of one was right. */
struct key *keys_find(const struct keys *keys, struct bytes secret);

/* The tenant of a key's requests; NULL without a key. */
static inline const char *key_tenant(const struct key *key)
{
    return key ? key->tenant : NULL;
}

/* Sets the limits of a key's requests, which the pool counts by their tenant. NULL has none. */
void key_set_rates(const struct key *key, struct quern_request *request);

/* Whether a request may have this priority, which is the pool's: higher goes first. A key may
 * only as far as its line says, in both directions: keys take turns among requests of one priority only, and
 * between priorities the one goes first that is due first. So many requests of a lower priority, once they
 * have waited for 30 s a step, precede all new ones of other keys. Without keys the users of this machine
 * may; where the gateway is `open` to others, nobody goes ahead. 0, or REFUSED with 403. */
int key_check_priority(const struct key *key, bool open, int32_t priority, struct refusal *refusal);

/* The cache salt for a request with this key (NULL: there are no keys) and the client's own salt (NULL:
 * none), of at most KEYS_SALT_MOST bytes. Different keys and salts give different results, except keys of one
 * group. `shared`: all keys are one group. Returns NULL for no salt. */
const char *key_salt(const struct key *key, bool shared, const char *salt,
                     char text[KEYS_SPACE_BYTES + KEYS_SALT_MOST + 1]);

/* Counts a question of this many bytes: 0, or REFUSED with 429 beyond the key's share. Without a key nothing
 * is counted. */
int keys_ask(struct keys *keys, struct key *key, size_t bytes, struct refusal *refusal);
void keys_answered(struct keys *keys, struct key *key, size_t bytes);

/* Sets anew what this gateway may take of what the bounds leave. */
void key_share_room(struct key *key);

/* Takes a place for a request that may generate this many tokens: 0, or REFUSED with 429. NULL has no bounds.
 */
int key_take(struct key *key, uint64_t tokens, struct refusal *refusal);
void key_release(struct key *key, uint64_t tokens);

/* Counts tokens of prompts and answers towards the limits of the name; and that a request was taken back,
 * since no pool has accepted it. */
void key_used_tokens(struct key *key, uint64_t tokens);
void key_not_used(struct key *key);

#endif
