/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SETTINGS_ALLOWANCE_H
#define BROKER_SETTINGS_ALLOWANCE_H

/* Fixed limits of a client with a key: sessions, subscriptions to the stream, tokens per minute. admission.h
 * bounds its requests, as it does for all clients; there they count for the key, not for its sessions. */

#include <stdint.h>

#include "broker/books/client_keys.h"
#include "common/error.h"
#include "proto/message.h"

/* Default: a quarter of all sessions, so that no key keeps the others out. */
#define ALLOWANCE_SESSIONS 4096

/* A session needs one subscription, and for a while two: a client may subscribe again before the broker
 * notices that its first connection is dead. */
#define ALLOWANCE_A_SESSION         2
#define ALLOWANCE_SUBSCRIPTIONS     8192  /* or two for each of its sessions, if that is more */
#define ALLOWANCE_MAX_SUBSCRIPTIONS 65536 /* one for each session that can have listeners */

struct allowance {          /* zeroed: no limits */
    uint32_t sessions;      /* 0: no limit */
    uint32_t subscriptions; /* 0: no limit */
    uint32_t tokens;        /* per minute: of prompts, of tokenizer questions, and generated; 0: no limit */
};

/* Whether the key may have one more session: PROTO_OK, or PROTO_OVERLOADED with both numbers. `key` NULL: a
 * client without a key, which has no limit. */
enum proto_error allowance_check_session(const struct allowance *allowance, const struct client_key *key,
                                         struct error *reason);

/* Whether the key, which has `subscriptions`, may have one more: PROTO_OK, or PROTO_OVERLOADED with both
 * numbers. */
enum proto_error allowance_check_subscription(const struct allowance *allowance, const struct client_key *key,
                                              uint32_t subscriptions, struct error *reason);

/* Whether this key may make a request now: PROTO_OK, or PROTO_OVERLOADED with the limit and the retry
 * time. */
enum proto_error allowance_check_tokens(const struct allowance *allowance, struct client_key *key,
                                        uint64_t now, uint32_t *ret_retry_ms, struct error *reason);

/* Charges tokens processed or generated for the key. Running requests are not stopped: a key that has
 * overdrawn its limit waits longer before its next request. */
void allowance_charge(const struct allowance *allowance, struct client_key *key, uint64_t tokens,
                      uint64_t now);

#endif
