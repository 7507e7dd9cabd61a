/* SPDX-License-Identifier: MIT */
#ifndef BROKER_TENANTS_H
#define BROKER_TENANTS_H

/* Requests that wait and are alike but for whom they are for: the tenants of one client, in turn. In a turn
 * each tenant that waits gives one request, its most pressing; what names no tenant is one more. Who is new
 * stands in the next turn. It borrows the requests. */

#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

#include "broker/request.h"
#include "common/heap.h"

struct tenants;

struct tenant_line { /* what one tenant has waiting there */
    struct tenant_key {
        struct tenants *tenants;
        struct id128 id;
    } key;
    struct heap requests; /* the most pressing first */
    struct heap_node node;
    uint64_t turn; /* in which it gives the next one */
    UT_hash_handle hh;
};
_Static_assert(sizeof(struct tenant_key) == sizeof(void *) + sizeof(struct id128), "no padding");

struct tenants {
    struct heap lines; /* that are not empty, the one whose turn it is first */
    uint64_t turn;     /* the last in which one gave */
    size_t n;          /* requests */
};

struct tenant_lines { /* all that there are, of any; zeroed but for the seed: none */
    uint64_t seed;
    struct tenant_line *by_key;
};

/* Whatever still waits in them. */
void tenant_lines_deinit(struct tenant_lines *lines);

void tenants_init(struct tenants *tenants);
void tenants_deinit(struct tenants *tenants);

/* The one that is next; NULL when none waits. */
struct request *tenants_first(const struct tenants *tenants);

/* Adds. 0, or -ENOMEM with nothing changed. */
int tenants_push(struct tenants *tenants, struct tenant_lines *lines, struct request *request);

/* Takes out a request that is there. Its line may be left empty: it is kept until tenant_line_tidy, so that
 * tenants_push_again can put the request back, for which there is the memory still. */
void tenants_leave(struct tenants *tenants, struct request *request);
void tenants_push_again(struct tenants *tenants, struct request *request);
void tenant_line_tidy(struct tenant_lines *lines, struct tenant_line *line);

/* The tenant of this request gives it: it moves on to its next turn. The request stays until it leaves. */
void tenants_give(struct tenants *tenants, const struct request *request);

#endif
