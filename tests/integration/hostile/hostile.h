/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_HOSTILE_HOSTILE_H
#define TESTS_INTEGRATION_HOSTILE_HOSTILE_H

/* Attacks on a pool, for hostile.c: each is a function that runs until score->over. */

#include <stdbool.h>
#include <stddef.h>

#include "tests/integration/hostile/door.h"

/* Shared by the processes of one case. */
struct score {
    bool over;     /* the attackers must end */
    long attempts; /* connections, messages: whatever the case counts */
    long refused;  /* of those, as seen by the attackers */
    long let_in;   /* connections whose handshake was accepted */
};

void score_attempt(struct score *score, bool refused);
bool score_over(const struct score *score);

typedef void attack(const struct door *door, struct score *score);

attack attack_connections, attack_silence, attack_handshakes, attack_garbage, attack_strangers,
    attack_subscriptions, attack_topics, attack_parts, attack_halves, attack_prompts, attack_requests,
    attack_sessions, attack_tokenize, attack_unread, attack_crowd;

#endif
