/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_HOSTILE_HTTP_H
#define TESTS_INTEGRATION_HOSTILE_HTTP_H

/* Attacks on a gateway, for http.c: each is a function that runs until tally->over, in a separate process. */

#include "tests/integration/hostile/crowd.h"

struct attack_target {
    int port;
    const char *model; /* served by the pool */
    struct tally *tally;
};

typedef void http_attack(const struct attack_target *target);

/* Large requests. */
http_attack attack_embeddings, attack_embeddings_leaving, attack_choices, attack_bodies, attack_objects,
    attack_texts, attack_families, attack_too_large, attack_large_heads;

/* One kind of bad body each. */
http_attack attack_broken, attack_types, attack_unknown, attack_duplicates, attack_nesting, attack_escapes,
    attack_numbers, attack_digits;

/* Many requests or connections. */
http_attack attack_shares, attack_silent_sockets, attack_silent_crowd, attack_half_heads, attack_trickles,
    attack_pipelines, attack_not_found;

/* Unread answers. */
http_attack attack_unread_answers, attack_unread_texts, attack_unread_vectors, attack_unread_streams,
    attack_slow_streams, attack_hang_ups;

#endif
