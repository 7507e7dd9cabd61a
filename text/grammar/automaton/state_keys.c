/* SPDX-License-Identifier: MIT */
#include "text/grammar/automaton/state_keys.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

struct state_key {
    size_t at, len;
    uint64_t hash;
};

/* Keys stand in places by their hash, of which at most half are taken. */
static bool grow_places(struct state_keys *keys)
{
    if (keys->n_places / 2 > keys->n)
        return true;
    uint32_t n = keys->n_places ? keys->n_places * 2 : 128;
    uint32_t *places = calloc(n, sizeof *places);
    if (!places)
        return false;
    for (uint32_t i = 0; i < keys->n; i++) {
        uint32_t at = (uint32_t)keys->items[i].hash % n;
        while (places[at])
            at = (at + 1) % n;
        places[at] = i + 1;
    }
    free(keys->places);
    keys->places = places;
    keys->n_places = n;
    return true;
}

static bool grow_items(struct state_keys *keys, size_t len)
{
    if (keys->n == keys->cap) {
        uint32_t cap = keys->cap ? keys->cap * 2 : 64;
        struct state_key *items = realloc(keys->items, cap * sizeof *items);
        if (!items)
            return false;
        keys->items = items;
        keys->cap = cap;
    }
    if (keys->bytes_cap - keys->n_bytes < len) {
        size_t cap = keys->bytes_cap * 2 + len + 1024;
        uint8_t *bytes = realloc(keys->bytes, cap);
        if (!bytes)
            return false;
        keys->bytes = bytes;
        keys->bytes_cap = cap;
    }
    return true;
}

/* The place of a key, or the free one where it would stand. */
static uint32_t place_of(const struct state_keys *keys, const void *key, size_t len, uint64_t hash)
{
    uint32_t at = (uint32_t)hash % keys->n_places;
    for (; keys->places[at]; at = (at + 1) % keys->n_places) {
        const struct state_key *item = &keys->items[keys->places[at] - 1];
        if (item->hash == hash && item->len == len && memcmp(keys->bytes + item->at, key, len) == 0)
            break;
    }
    return at;
}

uint32_t state_keys_known(const struct state_keys *keys, const void *key, size_t len)
{
    return keys->n == 0 ? UINT32_MAX : keys->places[place_of(keys, key, len, hash64(key, len, 0))] - 1;
}

uint32_t state_keys_find(struct state_keys *keys, const void *key, size_t len, bool *ret_new)
{
    if (!grow_places(keys))
        return UINT32_MAX;
    const uint64_t hash = hash64(key, len, 0);
    uint32_t at = place_of(keys, key, len, hash);
    *ret_new = keys->places[at] == 0;
    if (!*ret_new)
        return keys->places[at] - 1;
    if (!grow_items(keys, len))
        return UINT32_MAX;
    memcpy(keys->bytes + keys->n_bytes, key, len);
    keys->items[keys->n] = (struct state_key){keys->n_bytes, len, hash};
    keys->n_bytes += len;
    keys->places[at] = ++keys->n;
    return keys->n - 1;
}

const void *state_keys_at(const struct state_keys *keys, uint32_t number, size_t *ret_len)
{
    if (ret_len)
        *ret_len = keys->items[number].len;
    return keys->bytes + keys->items[number].at;
}

void state_keys_deinit(struct state_keys *keys)
{
    free(keys->items);
    free(keys->bytes);
    free(keys->places);
    *keys = (struct state_keys){0};
}
