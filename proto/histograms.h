/* SPDX-License-Identifier: MIT */
#ifndef PROTO_HISTOGRAMS_H
#define PROTO_HISTOGRAMS_H

/* The histograms that a worker writes to its slot of the board (board.h), and that status and metrics show.
 * They count from the worker's start. Each row has the scale (common/instruments/histogram.h); the name on
 * the board, in the status, in libquern and in Python, which is also the engine's (engine/measures.h); the
 * name of the metric, after "quern_worker_"; an additional label; its help, "" if the previous row has the
 * same metric. */
/* clang-format off */
#define WORKER_HISTOGRAMS(ROW)                                                                                \
    ROW(SECONDS, step_decode, "step_seconds", "kind=\"decode\"", "Time of a step, by its kind.")              \
    ROW(SECONDS, step_prefill, "step_seconds", "kind=\"prefill\"", "")                                        \
    ROW(SECONDS, step_mixed, "step_seconds", "kind=\"mixed\"", "")                                            \
    ROW(ROWS, step_rows, "step_rows", "", "Rows of a step: a token of an answer or of a prompt each.")        \
    ROW(ROWS, computed_rows, "computed_rows", "", "Rows that a step computed: its own, and those that fill a recorded size.") \
    ROW(SECONDS, token_gap, "token_gap_seconds", "", "Time between two tokens of an answer.")                 \
    ROW(SECONDS, first_token, "first_token_seconds", "", "From a request, at the worker, to its first token.") \
    ROW(SHARES, slots_used, "slots_used_ratio", "", "Share of the slots that a step found in use.")           \
    ROW(SHARES, kv_used, "kv_used_ratio", "", "Share of the KV blocks that sequences held during a step.")
/* clang-format on */

#endif
