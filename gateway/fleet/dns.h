/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_DNS_H
#define GATEWAY_FLEET_DNS_H

/* The members of a fleet as listed by a DNS name, such as that of a headless Service of Kubernetes: one for
 * each address, named by its address. All have the same port and the same server key, since DNS carries
 * neither.
 *
 * A change takes effect once two answers in a row are the same. While the name cannot be resolved or has no
 * address, nothing changes: a failing resolver and a Service none of whose pods is ready yet look the
 * same. */

#include "gateway/fleet/folder.h"

#include <netdb.h>

#define DNS_EVERY_MS 2000 /* between two queries */

struct dns {
    char name[256], port[6];
    char server_key[CERTIFICATE_KEY_LEN + 1];
    struct member *heard; /* [n_heard] in the last answer, sorted by name; NULL: no answer yet */
    size_t n_heard;
    struct member *members; /* [n_members] in effect */
    size_t n_members;
    bool troubled; /* it has no address now, which was logged */
};

/* Whether the text is "dns:…". */
bool dns_is_place(const char *text);

/* Takes "dns:NAME:PORT", and a server key or the path of a file that contains it. 0, or -errno with a
 * reason. */
int dns_init(struct dns *dns, const char *place, const char *server_key, struct error *err);
void dns_deinit(struct dns *dns);

/* Asks the resolver, which may block. True if it has addresses. */
bool dns_look(struct dns *dns);

/* The same with a given answer; NULL: there is none, for this reason. */
bool dns_take(struct dns *dns, const struct addrinfo *answer, const char *reason);

/* As folder_members. */
int dns_members(const struct dns *dns, struct member **ret_members, size_t *ret_n);

#endif
