/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_DNS_H
#define GATEWAY_FLEET_DNS_H

/* The members of a fleet as a name in DNS has them, such as that of a headless Service of Kubernetes: one for
 * each address, named by it, all at one port and with one server key, for DNS carries none.
 *
 * What changed counts when two answers in a row say the same. While the name cannot be resolved, or has no
 * address, nothing changes: a resolver that fails, and a Service whose pods are all about to be ready, look
 * the same. */

#include "gateway/fleet/folder.h"

#include <netdb.h>

#define DNS_EVERY_MS 2000 /* between two questions */

struct dns {
    char name[256], port[6];
    char server_key[CERTIFICATE_KEY_LEN + 1];
    struct member *heard; /* [n_heard] of the last answer, sorted by name; NULL: none yet */
    size_t n_heard;
    struct member *members; /* [n_members] that count */
    size_t n_members;
    bool troubled; /* it has no address now, which was logged */
};

/* Whether it is "dns:…". */
bool dns_is_place(const char *text);

/* Takes "dns:NAME:PORT", and a key or the path of a file that has it. 0, or -errno with what is wrong. */
int dns_init(struct dns *dns, const char *place, const char *server_key, struct error *err);
void dns_deinit(struct dns *dns);

/* Asks the resolver, which may block. True if it has addresses. */
bool dns_look(struct dns *dns);

/* The same for an answer that is here; NULL: there is none, for this reason. */
bool dns_take(struct dns *dns, const struct addrinfo *answer, const char *reason);

/* As folder_members. */
int dns_members(const struct dns *dns, struct member **ret_members, size_t *ret_n);

#endif
