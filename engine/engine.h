/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

/* The engine: takes a model and many requests, and produces tokens and text.
 *
 * The owner calls engine_submit and engine_cancel at any time between steps, and engine_step in its loop. All
 * output comes through the sink, inside engine_step. The engine uses no sockets, no messages and no wall
 * clock. One thread makes all calls. */

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"
#include "engine/backend/backend.h"
#include "engine/backend/give_back.h"
#include "engine/backend/host_sampling.h"
#include "engine/measures.h"
#include "engine/sampling/sampling.h"

struct engine;
struct grammar;
struct model;
struct model_dialect;

struct engine_config {
    const struct model *model; /* outlives the engine; has a tokenizer */
    const struct backend_ops *backend;
    backend_give_back *give_back;         /* that backend's; NULL: it cannot give memory back */
    struct backend_config backend_config; /* model is set from above; fields that are 0 get defaults */
    uint32_t
        max_waiting; /* requests queued inside the engine; beyond: ENGINE_E_FULL, except for resumed ones */
    uint32_t most_cached; /* KV blocks that the prefix cache keeps; 0: none; UINT32_MAX: no limit */
    uint32_t step_ms;     /* budget of a step while sequences decode; 0: the backend's */
    /* Drafts: proposes up to `most` ids that may follow the `n` ids of a sequence, and returns how many. They
     * are verified in one step, which may then yield several ids; the output does not change. NULL: none;
     * prompt_lookup (prompt_lookup.h) looks into the sequence's own ids. */
    uint32_t (*draft)(void *arg, const int32_t *ids, uint32_t n, uint32_t most, int32_t *ret_draft);
    void *draft_arg;
    uint32_t most_draft; /* ids of one draft, ≥ 1 */
    /* That backend's, if the host is to sample too; else NULL. */
    const struct backend_host_sampling *host_sampling;
    /* Then called inside engine_step for each id that the device samples differently from the host, with the
     * tag of the request. May be NULL. */
    void (*differs)(void *arg, uint64_t tag, const struct backend_difference *difference);
    void *differs_arg;
};

#define ENGINE_MOST_SPELLED      32
#define ENGINE_MOST_THOUGHT_END  64  /* ids */
#define ENGINE_SHARED_SALT_BYTES 176 /* prefixes of a longer salt are not shared between workers */

/* A budget for thoughts: when they have this many ids, the ids that end a thought come next, whatever the
 * model would write. Then the answer continues freely. `dialect` says how thoughts are written. */
struct engine_thinking {
    uint32_t budget;
    bool inside;        /* the prompt ends inside a thought */
    const int32_t *end; /* [n_end], 1 … ENGINE_MOST_THOUGHT_END: end the first thought that is too long */
    uint32_t n_end;
    const int32_t *again; /* [n_again] likewise, for later thoughts */
    uint32_t n_again;
    const struct model_dialect *dialect; /* the model's, with known thoughts; must outlive the request */
    const int32_t *marks;                /* [n_marks] control tokens in its texts; must outlive the request */
    uint32_t n_marks;
};

/* A request. engine_submit copies everything unless a field says otherwise.
 *
 * To resume a request that began elsewhere, `output` has its published ids, and text_offset is the number of
 * bytes of its published text. It continues with the next id and byte, as if it had never stopped; events
 * contain only new output, and any text of `output` beyond the offset. */
struct engine_request {
    uint64_t tag;          /* the owner's name for it, unique among those alive */
    const int32_t *prompt; /* [n_prompt] ids, n_prompt ≥ 1 */
    uint32_t n_prompt;
    const int32_t *output; /* [n_output] ids generated before; n_output ≤ max_tokens */
    uint32_t n_output;
    uint64_t text_offset;
    uint32_t max_tokens; /* ≥ 1, including `output`; 0 with embed */
    uint32_t credit;     /* ids, including `output`, that it may have until engine_credit; 0: unlimited */
    struct sampling sampling;
    const struct bytes *stop; /* [n_stop] stop strings, not empty */
    uint32_t n_stop;
    const int32_t *stop_ids; /* [n_stop_ids] in addition to the model's own end ids */
    uint32_t n_stop_ids;
    uint32_t min_tokens;    /* no stop ends the answer before this many outputs; not with a grammar */
    const int32_t *spelled; /* [n_spelled ≤ ENGINE_MOST_SPELLED] control tokens whose names are text */
    uint32_t n_spelled;
    uint32_t n_logprobs;  /* as in backend_slot */
    int32_t priority;     /* higher first */
    uint64_t deadline_ns; /* on clock_ns; 0 = none */
    /* Requests the embedding of the prompt instead of tokens. Its only event, a STOP, has the embedding: the
     * mean of the final states of its ids, scaled to length one; or scores, if the model ranks (such a model
     * accepts no other requests). max_tokens is 0, and outputs, stops, log probabilities and grammar must be
     * absent. Implies `uncached`: every id is computed. */
    bool embed;
    /* Prefixes are shared only among requests with the same salt. Requests without a salt may be from
     * strangers: if a block does not match as a whole, they find only beginnings of it that end where a
     * prompt or an answer ended. */
    struct bytes cache_salt;
    bool uncached; /* the prefix cache is neither searched nor filled */
    bool watched;  /* events report how much of its prompt is computed, until the first id */
    /* The grammar that the output must match; NULL: none. The engine takes a reference. A grammar belongs to
     * one engine, whose mask thread uses it. */
    struct grammar *grammar;
    /* NULL: thoughts may be of any length. If the grammar does not allow the end of a thought where the
     * budget is used up, the request ends with ENGINE_END_INVALID. */
    const struct engine_thinking *thinking;
};

enum engine_end {
    ENGINE_RUNNING,
    ENGINE_END_STOP,
    ENGINE_END_LENGTH,
    ENGINE_END_CANCELLED,
    ENGINE_END_DEADLINE,
    ENGINE_END_FAULT,
    ENGINE_END_INVALID /* the request is impossible: its grammar is too complex, or forbids a thought's end */
};

/* Totals of a whole request. */
struct engine_totals {
    uint32_t n_prompt, n_output;    /* including earlier outputs */
    uint32_t n_cached;              /* ids of prompt and earlier outputs found in the cache */
    uint32_t n_drafted;             /* draft ids that were verified since engine_submit */
    uint32_t n_accepted;            /* those that are part of the output */
    uint64_t prefill_ns, decode_ns; /* submit → first token; first → last token */
    uint64_t wait_ns, lookup_ns; /* parts of prefill_ns: submit → its turn → a slot, its prefix found */
};

/* How much of its prompt a watched request has processed. */
struct engine_reading {
    uint32_t n_prompt, n_cached, n_read; /* ids; n_read includes the cached ones */
};

/* A request's output since its last event. Text is whole UTF-8 sequences; text that may begin a stop string
 * is withheld, so text may lag behind the ids. The last event has `end` set and may contain the withheld
 * text; the tag can then be reused. Each request gets exactly one last event. */
struct engine_event {
    uint64_t tag;
    const int32_t *ids; /* [n_ids], including the stop id itself */
    uint32_t n_ids;
    struct bytes text;
    const struct logprob *logprobs; /* [n_ids][n_logprobs], or NULL */
    uint32_t n_logprobs;
    enum engine_end end;
    struct bytes stop;      /* ENGINE_END_STOP: the stop string that ended it; "": none */
    const float *embedding; /* [n_embedding], at the end of a request with `embed`; else NULL */
    uint32_t n_embedding;
    const struct engine_reading *reading; /* if set, the event has nothing else */
    const char *fault;                    /* ENGINE_END_FAULT and _INVALID: why */
    const struct engine_totals *totals;   /* at the end, else NULL */
};

/* Takes an event; its pointers are valid during the call. Called only inside engine_step. */
typedef void engine_sink(void *arg, const struct engine_event *event);

/* Events in the life of a request, for an observer. */
enum engine_mark {
    ENGINE_MARK_SLOT,          /* it has a slot; n: which one */
    ENGINE_MARK_PREFIX,        /* at the same time, n ids from the prefix cache */
    ENGINE_MARK_PREFILL_BEGIN, /* its first n ids were submitted */
    ENGINE_MARK_PREFILL_END,   /* all of them are computed: n, without those from the cache */
    ENGINE_MARK_FIRST_TOKEN,   /* n ids came with it */
    ENGINE_MARK_SLOT_LOST      /* it lost its slot and waits for another; n: ids that it has in total */
};

/* Facts about a step that was read. */
struct engine_step_facts {
    uint64_t number; /* from 1 */
    uint32_t decode_rows, prefill_rows;
    uint32_t ids; /* that requests got from it */
    /* On clock_ns: when it began (when it was submitted or the previous one was read, whichever is later),
     * and when it was read. */
    uint64_t begun_ns, read_ns;
    struct backend_facts backend;
};

/* Receives each step and mark. Called only inside engine_step; requests are identified by their tags, which
 * are alive. */
struct engine_observer {
    void (*step)(void *arg, const struct engine_step_facts *facts);
    void (*mark)(void *arg, uint64_t tag, enum engine_mark mark, uint64_t n, uint64_t now);
    void *arg;
};

struct engine_stats {
    uint32_t active, waiting, slots;           /* waiting: including those that wait for credit */
    uint32_t held;                             /* waiting requests that wait for credit */
    uint32_t blocks_free, blocks_total;        /* of the group with the widest window */
    uint32_t blocks_held[BACKEND_MOST_GROUPS]; /* of each group, by sequences */
    uint32_t blocks_cached;                    /* by the prefix cache, including those in use */
    uint64_t steps, tokens, prefill_tokens, preemptions, cache_hits;
    uint64_t evictions;      /* of blocks, by the prefix cache */
    uint64_t restores;       /* of blocks, from the prefix store */
    uint64_t waiting_tokens; /* prompt tokens not yet prefilled */
    uint64_t drafted;        /* draft ids that were verified */
    uint64_t accepted;       /* those that were right: each saved its sequence a step */
};

/* 0 or -errno with a reason. */
int engine_new(const struct engine_config *config, engine_sink *sink, void *sink_arg,
               struct engine **ret_engine, struct error *err);
struct engine *engine_free(struct engine *engine);

/* Shares the prefix cache's blocks through the segment behind `fd` (prefix_store.h); the caller keeps the
 * descriptor. Call it before the first request. 0; or -errno with a reason, and the engine is unchanged. */
int engine_share_prefixes(struct engine *engine, int fd, struct error *err);

/* Positive codes of engine_submit. */
enum {
    ENGINE_E_INVALID = 1, /* a value out of range */
    ENGINE_E_TOO_LONG,    /* n_prompt + max_tokens above the context or the KV cache; err has both numbers */
    ENGINE_E_FULL         /* max_waiting reached */
};

/* Checks the limits, then queues the request. 0, a code above with the reason, or -ENOMEM. */
int engine_submit(struct engine *engine, const struct engine_request *request, struct error *err);

/* Ends a request within one step, in any phase; the next engine_step delivers its event with
 * ENGINE_END_CANCELLED. False: the tag is not alive. May be called from the backend's progress hook. */
bool engine_cancel(struct engine *engine, uint64_t tag);

/* The request may generate `credit` ids in total; a lower number than before has no effect. A request that
 * has used up its credit releases its slot, and its blocks to the prefix cache, until it gets more. False:
 * the tag is not alive. May be called from the backend's progress hook. */
bool engine_credit(struct engine *engine, uint64_t tag, uint32_t credit);

/* Whether a step would do nothing until one of the calls above: there are no requests, or all of them wait
 * for credit. */
bool engine_is_idle(const struct engine *engine);

/* True if the running step has become useless, because each of its sequences is cancelled or past its
 * deadline. A progress hook returns this to abandon the step. */
bool engine_step_is_moot(const struct engine *engine);

/* One step: admit, build, submit, take results, call the sink. 1: work is left; 0: idle; -errno: the backend
 * has failed, and every request has received its event with ENGINE_END_FAULT. */
int engine_step(struct engine *engine, struct error *err);

/* From now on reports steps and requests to `observer`, which must outlive the engine; NULL: to none, which
 * costs one branch per row set of a step. May be called from the backend's progress hook. */
void engine_observe(struct engine *engine, const struct engine_observer *observer);

/* What the backend has allocated and launched; zeros where it does not know. Also updates its total memory
 * (engine_backend_info). */
void engine_usage(struct engine *engine, struct backend_usage *ret_usage);

/* With host sampling: ids that host and device have both sampled, and those that differ; else 0. */
void engine_compared(const struct engine *engine, uint64_t *ret_compared, uint64_t *ret_different);

/* Starts or stops measuring each kernel of the steps submitted from now on, which makes them slower. Call it
 * between steps. 0; -ENOTSUP: the backend cannot; -ENOMEM; or a fault of the device. */
int engine_profile(struct engine *engine, bool on);

/* What engine_give_back released. */
struct engine_given {
    uint64_t blocks; /* KV blocks of cached prefixes that were dropped, of the first group */
    struct backend_given backend;
};

/* Gives back memory that is unused; it is allocated again when needed. `prefixes`: first drops cached
 * prefixes that no sequence uses; they are computed again when a request has them. Call it between steps; it
 * may have to wait for a step in flight. 0; -ENOMEM with nothing given back; or a fault of the device. */
int engine_give_back(struct engine *engine, bool prefixes, struct engine_given *ret_given);

/* The kernels measured since then, as in backend_ops.profile. */
uint32_t engine_kernels(struct engine *engine, const struct backend_kernel **ret_kernels);

void engine_stats(const struct engine *engine, struct engine_stats *ret_stats);
static inline uint64_t engine_steps(const struct engine *engine)
{
    struct engine_stats stats;
    engine_stats(engine, &stats);
    return stats.steps;
}

/* Measurements of all steps and tokens so far. */
const struct measures *engine_measures(const struct engine *engine);

/* Numbers of an embedding, or of the scores of a model that ranks; 0: the backend cannot compute them. */
uint32_t engine_embedding(const struct engine *engine);

uint32_t engine_context(const struct engine *engine);             /* most positions of a sequence */
uint32_t engine_max_tokens_in_cache(const struct engine *engine); /* the same, by the number of KV blocks */
const struct backend_info *engine_backend_info(const struct engine *engine);

#endif
