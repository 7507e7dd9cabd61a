/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_AUTOMATON_STATE_KEYS_H
#define TEXT_GRAMMAR_AUTOMATON_STATE_KEYS_H

/* Numbers keys of bytes from 0 in the order in which they are first met. Zeroed: empty. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state_key;

struct state_keys {
    struct state_key *items; /* [n] */
    uint8_t *bytes;
    uint32_t *places; /* [n_places] 1 + the number, by hash; 0: free */
    uint32_t n, cap, n_places;
    size_t n_bytes, bytes_cap;
};

/* The number of a key, which is added if it is new; UINT32_MAX: out of memory. */
uint32_t state_keys_find(struct state_keys *keys, const void *key, size_t len, bool *ret_new);

/* The number of a known key; UINT32_MAX: it is unknown. */
uint32_t state_keys_known(const struct state_keys *keys, const void *key, size_t len);

/* The key with a number; valid until the next is added. */
const void *state_keys_at(const struct state_keys *keys, uint32_t number, size_t *ret_len);

void state_keys_deinit(struct state_keys *keys);

#endif
