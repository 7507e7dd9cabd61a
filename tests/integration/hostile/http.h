/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_HOSTILE_HTTP_H
#define TESTS_INTEGRATION_HOSTILE_HTTP_H

/* The ways to bother a gateway, for http.c: each is a function that goes on until tally->over, in a
 * process of its own. */

#include "tests/integration/hostile/crowd.h"

struct attack_target {
    int port;
    const char *model; /* that the pool serves */
    struct tally *tally;
};

typedef void http_attack(const struct attack_target *target);

/* What is large. */
http_attack attack_embeddings, attack_embeddings_leaving, attack_choices, attack_bodies, attack_objects,
    attack_texts, attack_families, attack_too_large, attack_large_heads;

/* One kind of the bodies each. */
http_attack attack_broken, attack_types, attack_unknown, attack_duplicates, attack_nesting, attack_escapes,
    attack_numbers, attack_digits;

/* What is many. */
http_attack attack_shares, attack_silent_sockets, attack_silent_crowd, attack_half_heads, attack_trickles,
    attack_pipelines, attack_not_found;

/* What is not read. */
http_attack attack_unread_answers, attack_unread_texts, attack_unread_vectors, attack_unread_streams,
    attack_slow_streams, attack_hang_ups;

#endif
