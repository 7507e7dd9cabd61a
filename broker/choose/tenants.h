/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_TENANTS_H
#define BROKER_CHOOSE_TENANTS_H

/* The waiting requests of one client and one target; its tenants take turns. In each turn every waiting
 * tenant gives one request, its most urgent. Requests without a tenant count as one more tenant. A new tenant
 * enters in the next turn. Requests are borrowed. */

#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

#include "broker/books/request.h"
#include "common/heap.h"

struct tenants;

struct tenant_line { /* the waiting requests of one tenant */
    struct tenant_key {
        struct tenants *tenants;
        struct id128 id;
    } key;
    struct heap requests; /* the most urgent first */
    struct heap_node node;
    uint64_t turn; /* the turn in which it gives the next request */
    UT_hash_handle hh;
};
_Static_assert(sizeof(struct tenant_key) == sizeof(void *) + sizeof(struct id128), "no padding");

struct tenants {
    struct heap lines; /* non-empty ones, ordered by turn */
    uint64_t turn;     /* the latest turn in which a request was given */
    size_t n;          /* requests */
};

struct tenant_lines { /* every line of every struct tenants; zeroed except for the seed: none */
    uint64_t seed;
    struct tenant_line *by_key;
};

/* Frees all lines, empty or not. */
void tenant_lines_deinit(struct tenant_lines *lines);

void tenants_init(struct tenants *tenants);
void tenants_deinit(struct tenants *tenants);

/* The next request; NULL: none waits. */
struct request *tenants_first(const struct tenants *tenants);

/* Adds a request. 0, or -ENOMEM with nothing changed. */
int tenants_push(struct tenants *tenants, struct tenant_lines *lines, struct request *request);

/* Removes a request. An empty line is kept until tenant_line_tidy, so that tenants_push_again can put the
 * request back without allocating. */
void tenants_leave(struct tenants *tenants, struct request *request);
void tenants_push_again(struct tenants *tenants, struct request *request);
void tenant_line_tidy(struct tenant_lines *lines, struct tenant_line *line);

/* The request uses its tenant's turn: the tenant moves on to its next turn. Call tenants_leave next. */
void tenants_give(struct tenants *tenants, const struct request *request);

#endif
