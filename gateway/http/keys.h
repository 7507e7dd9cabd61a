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
 * keys with the same name are one tenant, even at several gateways. `requests` bounds how many of the key's
 * requests are in progress, until clients have taken the answers; `tokens` bounds how many tokens these may
 * ask for together (max_tokens times n); without them there is no bound. `rpm` and `rpd` bound the requests
 * of the name per minute and per day, `tpm` and `tpd` the tokens of their prompts and answers. The pool
 * counts these over all gateways, so keys with the same name share the limits. Use of a key through other
 * gateways or in several pools counts too (gateway/sharing). `priority` is how many steps its requests may go
 * ahead of or behind others. Prompts in the prefix cache are shared between requests of the same name, or of
 * the same group. Empty lines and lines that begin with # are skipped. */

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
#define KEYS_PRIORITY   8                   /* the same for priorities, of either sign */
#define KEY_BYTES_MOST  256                 /* of one key */
#define KEY_BYTES_LEAST 16                  /* a shorter key could be guessed */

#define KEYS_SALT_MOST   64 /* bytes of a request's salt */
#define KEYS_SPACE_BYTES 33

/* Unanswered questions about texts or requests, and their bytes. The pool accepts up to the bounds below from
 * one session; a key may have, including the new question, as many as it leaves free. */
struct asked {
    size_t n, bytes;
};
#define KEYS_MOST_ASKED       128
#define KEYS_MOST_ASKED_BYTES ((size_t)16 << 20)

/* A key's use through other gateways, as last reported, and what this gateway may take until the next report:
 * its share of what the bounds leave, but at least one request. It may reuse its own places as they become
 * free. */
struct elsewhere {
    uint64_t requests, tokens;
    uint32_t gateways; /* gateways that report the key; 0: no other gateway uses it, and there is no share */
    int64_t share_requests, share_tokens; /* of this gateway, as last set */
    int64_t taken_requests, taken_tokens; /* of the share; negative: more was given back than taken */
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
    uint64_t priority;                   /* the most that its requests may have, of either sign */
    uint64_t requests, tokens;           /* now */
    uint8_t id[16];                      /* a hash of the name and of how many earlier keys have that name */
    bool is_another;                     /* there are such keys */
    struct elsewhere elsewhere;
    uint64_t asked_ns;    /* clock_ns of the last request, accepted or not; 0: none yet */
    struct use *use;      /* of the name; NULL: it has no limits, or only the pool counts them */
    struct budget bodies; /* of its requests: part of the gateway's budget, see keys_share */
    struct asked asked;   /* unanswered questions */
};

struct keys { /* zeroed: no keys are needed */
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

/* Makes each key's budget of bodies part of `bodies`: at most half of it, so that one key leaves room for
 * others, but at least one body of `one_body` bytes. Bytes in use stay counted. */
void keys_share(struct keys *keys, struct budget *bodies, size_t one_body);

/* From now on use of the limits per minute and per day is counted here too. 0 or -ENOMEM. */
int keys_count_use(struct keys *keys);

/* The key with these bytes, or NULL. Every key is compared completely, so the time does not reveal how much
 * of one was right. */
struct key *keys_find(const struct keys *keys, struct bytes secret);

/* The tenant of a key's requests; NULL without a key. */
static inline const char *key_tenant(const struct key *key)
{
    return key ? key->tenant : NULL;
}

/* Sets in a request the key's limits, which the pool counts by tenant. A NULL key has none. */
void key_set_rates(const struct key *key, struct quern_request *request);

/* Whether a request may have this priority, which is the pool's: higher goes first. A key is limited as its
 * line says, in both directions: keys take turns only among requests of one priority, and between priorities
 * the request due first goes first. So many requests of a lower priority, once they have waited for 30 s a
 * step, precede all new ones of other keys. Without keys any priority is allowed to users of this machine; if
 * the gateway is `open` to others, none may go ahead. 0, or REFUSED with 403. */
int key_check_priority(const struct key *key, bool open, int32_t priority, struct refusal *refusal);

/* The cache salt for a request with this key (NULL: there are no keys) and the client's own salt (NULL:
 * none), of at most KEYS_SALT_MOST bytes. Different keys and salts give different results, except keys of the
 * same group. `shared`: all keys are one group. Returns NULL for no salt. */
const char *key_salt(const struct key *key, bool shared, const char *salt,
                     char text[KEYS_SPACE_BYTES + KEYS_SALT_MOST + 1]);

/* Counts a question of this many bytes: 0, or REFUSED with 429 beyond the key's share. Without a key nothing
 * is counted. */
int keys_ask(struct keys *keys, struct key *key, size_t bytes, struct refusal *refusal);
void keys_answered(struct keys *keys, struct key *key, size_t bytes);

/* Recomputes this gateway's share of what the bounds leave. */
void key_share_room(struct key *key);

/* Takes a place for a request that may generate this many tokens: 0, or REFUSED with 429. A NULL key has no
 * bounds. */
int key_take(struct key *key, uint64_t tokens, struct refusal *refusal);
void key_release(struct key *key, uint64_t tokens);

/* Counts tokens of prompts and answers towards the limits of the name; takes back a counted request that no
 * pool has accepted. */
void key_used_tokens(struct key *key, uint64_t tokens);
void key_not_used(struct key *key);

#endif
