/* SPDX-License-Identifier: MIT */
/* Layout and order of stores.
 *
 * What is fixed at admission is under a checksum, and the body's hash is part of it, so what is left when the
 * body is gone can be checked too; it is complete before vault_keep, and not touched afterwards. What changes
 * are single words. The one exception, the session after an attach, has two places and a word that says which
 * counts. Another broker of another build must read it, so a change of the layout is another MAGIC: what is
 * not understood is not taken over. */

#include "broker/books/record.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "common/hash.h"

/* "REQ6", and how many numbers there are. */
#define MAGIC      (0x36514552u ^ (uint32_t)SAMPLING_N << 16)
#define LARGE_BODY (16u << 10)

/* Its tenant stands alone, if it names one; it came by a socket in the run directory. */
enum { ORIGIN_STANDS_ALONE = 1, ORIGIN_NEAR = 2 };
enum { FLAG_CANCELLED = 1, FLAG_ENDED = 2, FLAG_HAS_DIGEST = 4, FLAG_TAKEN = 8 };

struct request_record {
    uint32_t magic;
    uint32_t body_len;
    uint64_t check; /* of what is fixed */

    struct request_fixed {
        struct request_key home;
        uint64_t owner;
        struct hash128 body_hash;
        uint64_t seed, prompt_tokens, decode, arrived_ns, deadline_ns, keep_ns, reserved;
        uint64_t given, given_text;
        uint32_t model_at, model_len; /* in the body */
        int32_t priority;
        uint32_t on_disconnect;
        uint32_t has_client_key;
        uint32_t origin; /* ORIGIN_… */
        uint8_t client_key[CLIENT_KEY_BYTES];
    } fixed;

    _Atomic uint64_t boot;
    _Atomic uint64_t move;   /* with it the epoch; workers that died << 32 | move */
    _Atomic uint64_t holder; /* index << 32 | incarnation */
    _Atomic uint32_t flags;
    _Atomic uint32_t session; /* which of: */
    struct id128 sessions[2]; /* the current one's id */
    _Atomic uint64_t ended_ns;
    _Atomic uint64_t most, credit; /* ids: that it may make at all, and for now */
    uint8_t digest[16];
    double sampling[SAMPLING_N]; /* there with the digest */
    uint8_t body[];
};

static uint64_t check_of(const struct request_record *record)
{
    return hash64(&record->fixed, sizeof record->fixed, MAGIC);
}

static bool has_body(const struct request_record *record, size_t size)
{
    if (record->body_len > size - sizeof *record ||
        (uint64_t)record->fixed.model_at + record->fixed.model_len > record->body_len)
        return false;
    struct hash128 hash = hash128(record->body, record->body_len, 0);
    return hash.low == record->fixed.body_hash.low && hash.high == record->fixed.body_hash.high;
}

static void raise_flag(struct request_record *record, uint32_t flag)
{
    atomic_fetch_or_explicit(&record->flags, flag, memory_order_release);
}

int record_room_take(struct vault *vault, size_t len, struct record_room *ret_room)
{
    size_t size;
    struct request_record *record = vault_take(vault, sizeof *record + len, &size);
    if (!record)
        return -ENOMEM;
    memset(record, 0, sizeof *record);
    *ret_room = (struct record_room){record, record->body, len};
    return 0;
}

void record_room_give(struct vault *vault, struct record_room *room)
{
    if (room->record)
        vault_give(vault, room->record);
    *room = (struct record_room){0};
}

void record_fill(struct request *request, struct record_room *room)
{
    room->record->body_len = (uint32_t)room->len;
    request->record = room->record;
    request->body = (struct bytes){room->bytes, room->len};
    request->body_hash = hash128(room->bytes, room->len, 0);
    *room = (struct record_room){0};
}

int record_make(struct vault *vault, struct request *request, const void *body, size_t len)
{
    struct record_room room;
    int r = record_room_take(vault, len, &room);
    if (r < 0)
        return r;
    memcpy(room.bytes, body, len);
    record_fill(request, &room);
    return 0;
}

void record_keep(struct vault *vault, const struct request *request,
                 const uint8_t client_key[CLIENT_KEY_BYTES])
{
    struct request_record *record = request->record;
    if (!record)
        return;
    record->magic = MAGIC;
    record->fixed = (struct request_fixed){
        .home = request->home,
        .owner = request->log.owner,
        .body_hash = request->body_hash,
        .seed = request->seed,
        .prompt_tokens = request->prompt_tokens,
        .decode = request->decode,
        .arrived_ns = request->arrived_ns,
        .deadline_ns = request->deadline_ns,
        .keep_ns = request->keep_ns,
        .reserved = request->log.reserved,
        .given = request->log.given,
        .given_text = request->log.given_text,
        .model_at =
            request->model.len > 0 ? (uint32_t)((const uint8_t *)request->model.data - record->body) : 0,
        .model_len = (uint32_t)request->model.len,
        .priority = request->priority,
        .on_disconnect = request->on_disconnect,
        .has_client_key = client_key != NULL,
        .origin = (request->tenancy.alone ? ORIGIN_STANDS_ALONE : 0u) | (request->near ? ORIGIN_NEAR : 0u),
    };
    if (client_key)
        memcpy(record->fixed.client_key, client_key, CLIENT_KEY_BYTES);
    record->sessions[0] = request->current.session;
    record_moved(request);
    record->check = check_of(record);
    vault_keep(vault, record);
}

/* ---- the steps ---- */

void record_assigned(const struct request *request, struct record_holder holder)
{
    struct request_record *record = request->record;
    if (!record)
        return;
    if (request->has_digest &&
        !(atomic_load_explicit(&record->flags, memory_order_relaxed) & FLAG_HAS_DIGEST)) {
        memcpy(record->digest, request->digest, sizeof record->digest);
        memcpy(record->sampling, request->sampling, sizeof record->sampling);
        raise_flag(record, FLAG_HAS_DIGEST);
    }
    atomic_store_explicit(&record->holder, (uint64_t)holder.index << 32 | holder.incarnation,
                          memory_order_release);
}

void record_returned(const struct request *request)
{
    if (request->record)
        atomic_store_explicit(&request->record->holder, 0, memory_order_release);
}

/* Of both words only one changes at a time: the move while it is with us, the boot when it comes to us. */
void record_moved(const struct request *request)
{
    struct request_record *record = request->record;
    if (!record)
        return;
    atomic_store_explicit(&record->move, (uint64_t)request->n_lost << 32 | request->epoch.move,
                          memory_order_release);
    atomic_store_explicit(&record->boot, request->epoch.boot, memory_order_release);
}

void record_credited(const struct request *request)
{
    struct request_record *record = request->record;
    if (!record)
        return;
    atomic_store_explicit(&record->most, request->growth.most, memory_order_relaxed);
    atomic_store_explicit(&record->credit, request->growth.credit, memory_order_release);
}

void record_cancelled(const struct request *request)
{
    if (request->record)
        raise_flag(request->record, FLAG_CANCELLED);
}

void record_attached(const struct request *request)
{
    struct request_record *record = request->record;
    if (!record)
        return;
    uint32_t other = !atomic_load_explicit(&record->session, memory_order_relaxed);
    record->sessions[other] = request->current.session;
    atomic_store_explicit(&record->session, other, memory_order_release);
}

/* The record of an ended request in a block of its own size. Its large block goes back whole: shrunk, it
 * would stand at the beginning of a gap that the next large body does not fit into. Who is killed between
 * keeping the one and giving the other leaves two that say the same. */
static bool move_to_small_block(struct vault *vault, struct request *request)
{
    size_t size;
    struct request_record *small = vault_take(vault, sizeof *small, &size);
    if (!small)
        return false;
    memcpy(small, request->record, sizeof *small);
    vault_keep(vault, small);
    vault_give(vault, request->record);
    request->record = small;
    return true;
}

void record_ended(struct vault *vault, struct request *request)
{
    struct request_record *record = request->record;
    request->body = (struct bytes){0};
    request->model = request->name = (struct bytes){0};
    if (!record)
        return;
    atomic_store_explicit(&record->ended_ns, request->ended_ns, memory_order_relaxed);
    raise_flag(record, FLAG_ENDED);
    if (record->body_len < LARGE_BODY || !move_to_small_block(vault, request))
        vault_shrink(vault, record, sizeof *record);
}

size_t record_body_bytes(const struct request *request)
{
    return request->record ? request->record->body_len : 0;
}

void record_taken(const struct request *request)
{
    if (request->record)
        raise_flag(request->record, FLAG_TAKEN);
}

void record_forget(struct vault *vault, struct request *request)
{
    if (request->record)
        vault_give(vault, request->record);
    request->record = NULL;
    request->body = request->name = (struct bytes){0};
}

/* ---- what an earlier process left ---- */

static bool has_ended(const struct request_record *record)
{
    return atomic_load_explicit(&record->flags, memory_order_acquire) & FLAG_ENDED;
}

bool record_is_one(const void *block, size_t size, uint64_t *ret_owner)
{
    const struct request_record *record = block;
    if (size < sizeof *record || record->magic != MAGIC || record->check != check_of(record))
        return false;
    if (!has_ended(record) && !has_body(record, size)) /* it is gone with the end */
        return false;
    *ret_owner = record->fixed.owner;
    return true;
}

struct request_key record_key(const void *block)
{
    return ((const struct request_record *)block)->fixed.home;
}

void record_restore(struct request *request, void *block, struct restored *ret_restored)
{
    struct request_record *record = block;
    const struct request_fixed *fixed = &record->fixed;
    uint32_t flags = atomic_load(&record->flags);
    uint64_t holder = atomic_load(&record->holder);
    request->record = record;
    request->log.owner = fixed->owner;
    journal_resume(&request->log, fixed->given, fixed->given_text);
    request->body_hash = fixed->body_hash;
    request->seed = fixed->seed;
    request->prompt_tokens = fixed->prompt_tokens;
    request->decode = fixed->decode;
    request->arrived_ns = fixed->arrived_ns;
    request->deadline_ns = fixed->deadline_ns;
    request->keep_ns = fixed->keep_ns;
    request->priority = fixed->priority;
    request->near = fixed->origin & ORIGIN_NEAR;
    request->keyed = fixed->has_client_key != 0;
    if (request->keyed)
        memcpy(&request->client, fixed->client_key, sizeof request->client);
    request->on_disconnect = (enum disconnect_policy)fixed->on_disconnect;
    request->epoch = (struct epoch){atomic_load(&record->boot), (uint32_t)atomic_load(&record->move)};
    request->n_lost = (uint32_t)(atomic_load(&record->move) >> 32);
    request->has_digest = flags & FLAG_HAS_DIGEST;
    memcpy(request->digest, record->digest, sizeof request->digest);
    memcpy(request->sampling, record->sampling, sizeof request->sampling);
    request->ended_ns = atomic_load(&record->ended_ns);
    request->state = flags & FLAG_ENDED       ? REQUEST_ENDED
                     : flags & FLAG_CANCELLED ? REQUEST_CANCELLING
                                              : REQUEST_QUEUED;
    if (request->state != REQUEST_ENDED) {
        request->body = (struct bytes){record->body, record->body_len};
        if (fixed->model_len > 0)
            request->model = (struct bytes){record->body + fixed->model_at, fixed->model_len};
    }
    *ret_restored = (struct restored){
        .holder = {(uint32_t)(holder >> 32), (uint32_t)holder},
        .session = record->sessions[atomic_load(&record->session) & 1],
        .reserved = fixed->reserved,
        .credit = atomic_load(&record->credit),
        .most = atomic_load(&record->most),
        .taken = flags & FLAG_TAKEN,
        .has_client_key = fixed->has_client_key != 0,
        .stands_alone = fixed->origin & ORIGIN_STANDS_ALONE,
    };
    memcpy(ret_restored->client_key, fixed->client_key, CLIENT_KEY_BYTES);
}
