/* SPDX-License-Identifier: MIT */
#ifndef PROTO_STATUS_H
#define PROTO_STATUS_H

/* The status of a pool, its workers and its requests. */

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "proto/codes.h"
#include "common/instruments/histogram.h"
#include "proto/gauges.h"
#include "proto/histograms.h"
#include "proto/lists.h"

/* One list of fields for each. The structs here, their tables (fields.c), libquern's copy into its public
 * structs (quern.h must have a member of the same name, or it does not compile) and the JSON of `quern
 * status` are generated from these lists; broker/core/status.c sets the values. A row has the type in
 * fields.c and the name; rows of WORKER_GAUGES and WORKER_HISTOGRAMS have more (gauges.h, histograms.h). */
/* clang-format off */
#define WORKER_STATUS_FIELDS(ROW)                                                                             \
    ROW(NAME, name) ROW(NAME_OR_0, device) ROW(NAME_OR_0, model)                                              \
    ROW(U32_OR_0, device_number)                   /* among those of its kind */                              \
    ROW(NAME_OR_0, device_uuid) ROW(NAME_OR_0, device_driver)                                                 \
    ROW(U32_OR_0, device_capability)               /* 10 * major + minor */                                   \
    ROW(ALIASES, aliases)                          /* other names of its model */                             \
    ROW(FLAG, chat)                                /* its model has a chat template */                        \
    ROW(NAME_OR_0, tools)                          /* the form of its tool calls */                           \
    ROW(FLAG, thinks)                              /* before it answers, as far as its template shows */      \
    ROW(DIALECT_OR_0, dialect)                     /* how it calls tools and thinks: JSON */                  \
    ROW(NAME_OR_0, digest)                         /* of its model's file, hexadecimal */                     \
    ROW(NAME_OR_0, arithmetic)                     /* what its ids depend on besides the file */              \
    ROW(NAME_OR_0, choices)                        /* the measurements by which kernels were chosen */        \
    ROW(TEXT_OR_0, sampling)                       /* defaults of parameters, and their sources */            \
    ROW(STATE, state)                                                                                         \
    ROW(U32_OR_0, pid) ROW(U32_OR_0, incarnation) ROW(U32_OR_0, restarts)                                     \
    ROW(U32_OR_0, slots)                                                                                      \
    ROW(U32_OR_0, context)                         /* most tokens of a sequence */                            \
    ROW(U32_OR_0, embedding)                       /* numbers of an embedding; 0: not available */            \
    ROW(FLAG, ranks)                               /* those numbers are scores of a pair of texts */          \
    ROW(U64_OR_0, steps)                                                                                      \
    WORKER_GAUGES(ROW) WORKER_HISTOGRAMS(ROW)                                                                                        \
    ROW(REAL, tokens_per_s)                                                                                   \
    ROW(REAL, hit_rate) /* cache_hits ÷ (cache_hits + prefill_tokens) */                                      \
    ROW(TEXT_OR_0, reason) /* of WORKER_FAILED */
#define POOL_STATUS_FIELDS(ROW)                                                                               \
    ROW(U64, boot) ROW(FLAG, draining) ROW(NAME_OR_0, version)                                                \
    ROW(U32_OR_0, sessions) ROW(U32_OR_0, queued) ROW(U32_OR_0, running)                                      \
    ROW(U64_OR_0, admitted) ROW(U64_OR_0, ended) ROW(U64_OR_0, rejected)                                      \
    ROW(U64_OR_0, moved) ROW(U64_OR_0, tokens) ROW(U64_OR_0, journal_bytes)                                   \
    ROW(U64_OR_0, journal_limit)                   /* its largest size in bytes */                            \
    ROW(U32_OR_0, journal_waiting)                 /* running requests that wait for room in it */            \
    ROW(U32_OR_0, max_tokens)                      /* of an answer; 0: no limit */                            \
    ROW(U64_OR_0, uptime_s)                        /* of the pool, its supervisor; 0: not known */            \
    ROW(U32_OR_0, supervisor_pid) ROW(U32_OR_0, broker_pid) ROW(U32_OR_0, gateway_pid) /* 0: none */
/* An unfinished request, if the question asks for requests. */
#define REQUEST_STATUS_FIELDS(ROW)                                                                            \
    ROW(NAME, id)                                  /* hexadecimal */                                          \
    ROW(NAME_OR_0, request_id)                     /* its client's name for it */                             \
    ROW(NAME, state)                               /* queued, running, waiting, cancelling */                 \
    ROW(NAME_OR_0, worker) ROW(NAME_OR_0, model)   /* that it asks for */                                     \
    ROW(U64_OR_0, age_ms)                          /* since its arrival */                                    \
    ROW(U64_OR_0, tokens)                          /* generated so far */                                     \
    ROW(U32_OR_0, moves)                           /* to another worker */
/* clang-format on */

/* The types of members of these lists. */
#define STATUS_NAME                    struct bytes
#define STATUS_NAME_OR_0               struct bytes
#define STATUS_TEXT_OR_0               struct bytes
#define STATUS_DIALECT_OR_0            struct bytes
#define STATUS_ALIASES                 struct text_list
#define STATUS_STATE                   enum worker_state
#define STATUS_FLAG                    bool
#define STATUS_U32_OR_0                uint32_t
#define STATUS_U64                     uint64_t
#define STATUS_U64_OR_0                uint64_t
#define STATUS_REAL                    double
#define STATUS_SECONDS                 struct histogram
#define STATUS_ROWS                    struct histogram
#define STATUS_SHARES                  struct histogram
#define STATUS_MEMBER(type, name, ...) STATUS_##type name;

struct worker_status {
    WORKER_STATUS_FIELDS(STATUS_MEMBER)
};

struct request_status {
    REQUEST_STATUS_FIELDS(STATUS_MEMBER)
};

#endif
