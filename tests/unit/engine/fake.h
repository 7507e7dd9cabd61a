/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_ENGINE_FAKE_H
#define TESTS_UNIT_ENGINE_FAKE_H

/* A model without weights and a backend without arithmetic, for tests of the engine.
 *
 * The model has 256 byte tokens, an end token and a padding row; its tokenizer replaces the real one at link
 * time. The next id is a hash of the seed and of all ids before it. The backend computes it from the contents
 * of its KV blocks, so a block that is lost, shared, or filled wrongly shows as a wrong id; and it asserts
 * the contract of backend.h at every call. */

#include <stdbool.h>
#include <stdint.h>

#include "engine/backend/backend.h"
#include "engine/backend/give_back.h"

#define FAKE_VOCAB 258
#define FAKE_END   256
#define FAKE_EARLY 'a' /* sampled instead of a stop id that is not allowed yet */
#define FAKE_EMBD  4   /* numbers of a final state */

extern const struct model fake_model;

/* The id that follows `n` ids. */
int32_t fake_next(uint64_t seed, const int32_t *ids, uint32_t n);

/* The final state of the last of `n` ids: small whole numbers, so that sums are exact. */
void fake_state(const int32_t *ids, uint32_t n, double ret_state[FAKE_EMBD]);

/* How the backend behaves; set before engine_new. Zeroes: synchronous and sound. */
struct fake_script {
    bool asynchronous;
    uint32_t again;           /* polls of each step that first return -EAGAIN */
    uint64_t submit_fails_at; /* step, from 1 */
    uint64_t poll_fails_at;
    /* Not 0: -errno of submit for a step of more sets than most_sets (0: any number) or with a slot of this
     * seed; the step is not executed. */
    int refusal;
    uint32_t most_sets;
    uint64_t refused_seed;
    int slot_refusal;               /* not 0: -errno of slot_open for that seed */
    uint64_t nan_at;                /* the first sample of this step finds no finite logit */
    uint64_t abandon_at;            /* this step is abandoned, whatever `progress` returns */
    uint64_t row_ns;                /* time that a row takes */
    uint32_t chunk_least, alone_ms; /* of backend_info; 0: 8 and 1000 */
    /* Not 0: a second group of KV blocks, with this window and this many blocks (0: as many as it wants). Its
     * contents visible to a row must equal those of the first group. */
    uint32_t window, window_blocks;
    bool embeds; /* slots may embed */
    /* Not 0: the model's sequences have states, with this many snapshots. A state that does not match the ids
     * below the slot's position is noticed. */
    uint32_t n_snapshots;
    int verdict; /* the device's verdict */
    /* observed */
    uint64_t steps, most_rows, open_slots, block_copies;
    uint32_t most_ahead; /* sets of one slot in flight */
};
extern struct fake_script fake_script;

extern const struct backend_ops backend_fake;
extern backend_give_back fake_give_back;

#endif
