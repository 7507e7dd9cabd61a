/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SETTINGS_ALLOWANCE_H
#define BROKER_SETTINGS_ALLOWANCE_H

/* Limits of a client with a key, whatever is free: sessions, subscriptions to the stream, tokens a minute.
 * Its requests are bounded with those of all others (admission.h); there they count for the key, not for its
 * sessions. */

#include <stdint.h>

#include "broker/books/client_keys.h"
#include "common/error.h"
#include "proto/message.h"

/* Unless an option says otherwise: a quarter of all sessions, so that no key keeps the others out. */
#define ALLOWANCE_SESSIONS 4096

/* A session needs one, and for a while two: its first is found dead after the next was made. */
#define ALLOWANCE_A_SESSION         2
#define ALLOWANCE_SUBSCRIPTIONS     8192  /* or that for each of its sessions, if this is more */
#define ALLOWANCE_MAX_SUBSCRIPTIONS 65536 /* one for each session that may be listened to */

struct allowance {          /* zeroed: no bounds */
    uint32_t sessions;      /* 0: no bound */
    uint32_t subscriptions; /* 0: no bound */
    uint32_t tokens;        /* a minute: of prompts and questions for a tokenizer, and made; 0: no bound */
};

/* Whether the key may have one more session. PROTO_OVERLOADED with both numbers. `key` NULL: no limit without
 * a key. */
enum proto_error allowance_check_session(const struct allowance *allowance, const struct client_key *key,
                                         struct error *reason);

/* Whether the key, which has so many subscriptions, may have one more. PROTO_OVERLOADED with both numbers. */
enum proto_error allowance_check_subscription(const struct allowance *allowance, const struct client_key *key,
                                              uint32_t subscriptions, struct error *reason);

/* Whether a request may be made with this key now. PROTO_OVERLOADED with the number and when it may. */
enum proto_error allowance_check_tokens(const struct allowance *allowance, struct client_key *key,
                                        uint64_t now, uint32_t *ret_retry_ms, struct error *reason);

/* Tokens that were read or made for it. Running requests are not stopped: a key that has used too many
 * waits longer. */
void allowance_charge(const struct allowance *allowance, struct client_key *key, uint64_t tokens,
                      uint64_t now);

#endif
