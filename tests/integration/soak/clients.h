/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SOAK_CLIENTS_H
#define TESTS_INTEGRATION_SOAK_CLIENTS_H

/* Clients of the pool with libquern, for the soak: each sends several requests at a time and compares every
 * id, byte of text and log probability with an undisturbed answer. */

#include <stdbool.h>
#include <stdint.h>

#include <quern.h>
#include "tests/integration/soak/requests.h"

enum { SOAK_MOST_CLIENTS = 32, SOAK_PATIENCE_S = 120 };

struct soak_clients { /* in memory that the processes share; numbers are incremented atomically */
    uint32_t tokens;  /* of most answers; four times this is at most SOAK_MOST_IDS */
    bool chat;        /* the model has a chat template */
    bool ending;      /* nothing more is sent */
    bool cut[SOAK_MOST_CLIENTS + 1]; /* that client must lose a connection */
    long ended, ids, moved_out, longest_ms;
    long rated, over_rate; /* of the tenant with a rate: requests answered, and refused */
    struct expected expected[SOAK_KINDS];
};

/* Connects. NULL if that broke a promise. */
struct quern *soak_connect(const char *endpoint);

/* Sends every request once, undisturbed, and keeps the answers. */
void soak_clients_learn(struct soak_clients *clients, const char *endpoint);

/* Runs client `index` until `ending`; every fourth client reads slowly. */
void soak_clients_be_one(struct soak_clients *clients, const char *endpoint, int index, unsigned seed);

#endif
