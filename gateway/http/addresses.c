/* SPDX-License-Identifier: MIT */
/* See addresses.h. An entry lives while its address has connections, so there are no more entries than
 * connections. IPv4 has the form that it has in IPv6 (::ffff:a.b.c.d), as on a socket of both. */

#include "gateway/http/addresses.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

#define HASH_NONFATAL_OOM 1 /* what was not added has no table */
#include <uthash.h>

struct address {
    struct in6_addr key;
    unsigned n;
    UT_hash_handle hh;
};

/* False: it is not counted. */
static bool key_of(const struct sockaddr *from, struct in6_addr *ret_key)
{
    struct in6_addr key = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    if (!from)
        return false;
    if (from->sa_family == AF_INET)
        memcpy(key.s6_addr + 12, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
    else if (from->sa_family == AF_INET6)
        key = ((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;
    else
        return false;
    if (IN6_IS_ADDR_LOOPBACK(&key) || (IN6_IS_ADDR_V4MAPPED(&key) && key.s6_addr[12] == 127))
        return false;
    if (!IN6_IS_ADDR_V4MAPPED(&key) && !IN6_IS_ADDR_LINKLOCAL(&key))
        memset(key.s6_addr + 8, 0, 8);
    *ret_key = key;
    return true;
}

static struct address *find(const struct addresses *addresses, const struct in6_addr *key, unsigned hash)
{
    struct address *address;
    HASH_FIND_BYHASHVALUE(hh, addresses->table, key, sizeof *key, hash, address);
    return address;
}

bool addresses_have_room(const struct addresses *addresses, const struct sockaddr *from)
{
    struct in6_addr key;
    if (addresses->most == 0 || !key_of(from, &key))
        return true;
    const struct address *address =
        find(addresses, &key, (unsigned)hash64(&key, sizeof key, addresses->seed));
    return !address || address->n < addresses->most;
}

struct address *addresses_take(struct addresses *addresses, const struct sockaddr *from)
{
    struct in6_addr key;
    if (!key_of(from, &key))
        return NULL;
    unsigned hash = (unsigned)hash64(&key, sizeof key, addresses->seed);
    struct address *address = find(addresses, &key, hash);
    if (!address) {
        address = calloc(1, sizeof *address);
        if (!address)
            return NULL;
        address->key = key;
        HASH_ADD_BYHASHVALUE(hh, addresses->table, key, sizeof address->key, hash, address);
        if (!address->hh.tbl) {
            free(address);
            return NULL;
        }
    }
    address->n++;
    return address;
}

void addresses_release(struct addresses *addresses, struct address *address)
{
    if (!address || --address->n > 0)
        return;
    HASH_DEL(addresses->table, address);
    free(address);
}
