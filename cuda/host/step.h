/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_STEP_H
#define CUDA_HOST_STEP_H

/* Steps: row sets in, results out, up to STEPS_FLIGHTS of them in flight. */

#include "cuda/host/graphs.h"
#include "cuda/host/slots.h"

#define STEPS_FLIGHTS     2
#define STEPS_LOGITS_ROWS 16 /* rows of logits that go to the host at once */

/* A set of a flight: the data needed to read its result. */
struct flight_set {
    uint32_t slot, n_ids;
    enum backend_output output;
    uint32_t n_logprobs, first_logprob;
    uint32_t first_difference, n_differences; /* of host sampling */
};

struct flight {
    uint64_t number; /* the ticket */
    uint64_t waited_ns;
    bool abandoned;
    uint32_t padding_rows; /* surplus rows of its bucket */
    uint32_t n_sets;
    struct flight_set *sets;        /* [n_sets] */
    struct backend_result *results; /* [n_sets] */
    uint8_t *image;                 /* pinned: the description, as laid out on the device */
    uint32_t *masks;                /* pinned: [max_outputs][⌈n_vocab / 32⌉] */
};

/* Where the parts of a description begin. */
struct step_offsets {
    size_t sets, ids, blocks, end;
};

struct host_sampling;

struct steps {
    struct device *device;
    struct device_slots *slots;
    const struct pass *pass;
    struct graphs graphs;
    const struct backend_config *config; /* its progress hook */
    struct host_sampling *host;          /* host sampling (host_sampling.h); NULL: off */
    uint32_t max_rows, max_outputs;

    struct step_memory memory;                    /* on the device; its first four parts are one image */
    struct step_offsets offsets;                  /* in it */
    uint32_t *masks;                              /* on the device */
    struct mailbox *mailboxes, *device_mailboxes; /* [MAILBOXES]; the host's are pinned */
    float *logits; /* pinned: [STEPS_LOGITS_ROWS][vocab stride]; NULL: given back */

    struct flight flights[MAILBOXES]; /* by number % MAILBOXES */
    uint64_t submitted, read;         /* numbers of the last steps */
    uint64_t checks;
    const struct backend_step *queued; /* the step being queued */
    uint64_t padding_rows;             /* so far */
    int failed;                        /* -errno, once the device is lost */
    struct error failure;
};

struct steps_shape {
    uint32_t max_rows;       /* of a step */
    uint32_t n_rows, n_sets; /* for which there is memory; at least as many as in a recorded pass */
    uint32_t max_outputs;    /* sampled in one step */
    uint32_t table_size;     /* blocks of a slot, of each group */
    uint32_t n_groups;
    uint32_t n_vocab, vocab_stride;
};

/* Takes or counts the memory of the descriptions and results. 0, or -ENOMEM of the host. */
int steps_init(struct steps *steps, struct device_memory *memory, const struct steps_shape *shape);

/* Makes the steps ready; the caller has filled in device, slots, pass and config. Records the graphs unless
 * `eager`. 0 or a fault. */
int steps_start(struct steps *steps, bool eager);
void steps_deinit(struct steps *steps);

/* From the next step on, recorded graphs are not used, or are used again. */
void steps_run_eagerly(struct steps *steps, bool eagerly);

/* How many steps may be in flight. */
static inline uint32_t steps_most_flights(const struct steps *steps)
{
    return steps->host ? 1 : STEPS_FLIGHTS;
}

/* Waits until no work of the steps in flight is queued any more. 0 or a fault. */
int steps_wait(struct steps *steps);

/* The staging of logits, which is used only inside submit: returns its bytes; frees it; takes it again, 0 or
 * -ENOMEM. */
size_t steps_logits_bytes(const struct steps *steps);
void steps_give_back_logits(struct steps *steps);
int steps_take_logits(struct steps *steps);

/* Facts about the step that was read last. */
void steps_facts(const struct steps *steps, struct backend_facts *ret_facts);

/* As backend_ops.submit, poll and verdict. */
int steps_submit(struct steps *steps, const struct backend_step *step, uint64_t *ret_ticket);
int steps_poll(struct steps *steps, uint64_t ticket, int timeout_ms,
               const struct backend_result **ret_results, struct error *err);
int steps_verdict(struct steps *steps, struct error *err);

/* Notes a fault that another part of the backend has met; returns it. */
int steps_fail(struct steps *steps, int code);

#endif
