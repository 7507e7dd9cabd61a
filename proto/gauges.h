/* SPDX-License-Identifier: MIT */
#ifndef PROTO_GAUGES_H
#define PROTO_GAUGES_H

/* The gauges that a worker writes to its slot of the board (board.h), and that status and metrics show. Each
 * row has the type in fields.c; the name on the board, in the status, in libquern and in Python; the name of
 * the metric, after "quern_worker_"; the metric's kind and its help. worker/report.c sets the value; quern.h
 * and Python's _types.py document it. Everything else is generated from the row. */
/* clang-format off */
#define WORKER_GAUGES(ROW)                                                                                    \
    ROW(U32_OR_0, active, "active", "gauge", "Sequences being decoded.")                             \
    ROW(U32_OR_0, waiting, "waiting", "gauge", "Sequences waiting.")                                        \
    ROW(U32_OR_0, kv_free, "kv_blocks_free", "gauge", "Free blocks of the KV cache.")                         \
    ROW(U32_OR_0, kv_total, "kv_blocks", "gauge", "Blocks of the KV cache.")                                  \
    ROW(U32_OR_0, kv_block_bytes, "kv_block_bytes", "gauge", "Bytes of one block of the KV cache.")           \
    ROW(U32_OR_0, kv_cached, "kv_blocks_cached", "gauge", "Blocks that the prefix cache keeps.")              \
    ROW(U64_OR_0, tokens, "tokens_total", "counter", "Tokens made.")                                          \
    ROW(U64_OR_0, cache_hits, "cache_hit_tokens_total", "counter", "Tokens of prompts found in the prefix cache.") \
    ROW(U64_OR_0, prefill_tokens, "prefill_tokens_total", "counter", "Tokens of prompts computed.")           \
    ROW(U64_OR_0, evictions, "cache_evictions_total", "counter", "Blocks that left the prefix cache.")        \
    ROW(U64_OR_0, restores, "cache_restores_total", "counter", "Blocks that came back from the prefix store.") \
    ROW(U64_OR_0, drafted, "drafted_tokens_total", "counter", "Tokens of drafts that were verified.")          \
    ROW(U64_OR_0, accepted, "accepted_tokens_total", "counter", "Of them, those that were right.")            \
    ROW(U64_OR_0, memory, "memory_bytes", "gauge", "Memory that the worker's device has taken for it.")       \
    ROW(U64_OR_0, memory_kv, "memory_kv_bytes", "gauge", "Of it, the KV cache.")                              \
    ROW(U64_OR_0, memory_kv_held, "memory_kv_held_bytes", "gauge", "Of that, blocks that sequences hold.")    \
    ROW(U64_OR_0, memory_states, "memory_states_bytes", "gauge", "Of it, states of recurrent layers and their snapshots.") \
    ROW(U64_OR_0, memory_weights, "memory_weights_bytes", "gauge", "Of it, weights.")                         \
    ROW(U64_OR_0, memory_workspace, "memory_workspace_bytes", "gauge", "Of it, work space of steps.")         \
    ROW(U64_OR_0, memory_staging, "memory_staging_bytes", "gauge", "Beside it, pinned memory of the host.")   \
    ROW(U64_OR_0, memory_resident, "memory_resident_bytes", "gauge", "Memory of the machine that its process holds.") \
    ROW(U64_OR_0, memory_peak, "memory_peak_bytes", "gauge", "The most that its device has taken for it since its start.")  \
    ROW(U64_OR_0, memory_kv_held_peak, "memory_kv_held_peak_bytes", "gauge", "The most bytes of KV blocks that sequences held.") \
    ROW(U64_OR_0, memory_resident_peak, "memory_resident_peak_bytes", "gauge", "The most that its process held of the machine's memory.") \
    ROW(U64_OR_0, device_free, "device_memory_free_bytes", "gauge", "Free memory of its GPU.")                \
    ROW(U64_OR_0, device_total, "device_memory_bytes", "gauge", "Memory of its GPU.")                         \
    ROW(U64_OR_0, launches, "launches_total", "counter", "Kernels launched one by one on its GPU.")           \
    ROW(U64_OR_0, recorded_launches, "recorded_launches_total", "counter", "Steps launched as one recording on its GPU.") \
    ROW(U64_OR_0, refused_recordings, "refused_recordings", "gauge", "Sizes of decodes that the driver of its GPU refused to record.") \
    ROW(U64_OR_0, padding_rows, "padding_rows_total", "counter", "Rows computed for nothing, to fill a recorded size.") \
    ROW(U64_OR_0, library_products, "library_products_total", "counter", "Products of matrices that cuBLASLt made on its GPU.") \
    ROW(U64_OR_0, ids_compared, "ids_compared_total", "counter", "Tokens that its GPU and its host sampled, with --host-sampling.") \
    ROW(U64_OR_0, ids_different, "ids_different_total", "counter", "Of them, those that the two sampled differently.")
/* clang-format on */

#endif
