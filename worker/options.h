/* SPDX-License-Identifier: MIT */
#ifndef WORKER_OPTIONS_H
#define WORKER_OPTIONS_H

/* The command line of quern-worker. */

#include <stdbool.h>
#include <stdint.h>

struct worker_options {
    const char *model;
    const char *name;
    const char *device;
    const char *kv_type;       /* NULL: the device's default */
    const char *quantize;      /* NULL: weights as they are */
    const char *chat_template; /* file; NULL: the model's own */
    const char *system;        /* message for conversations without one; NULL: none */
    const char *overrides;     /* of the model's metadata (common/program/overrides.h); NULL: none */
    const char *sampling;      /* the pool's parameters, "NAME=VALUE …"; NULL: none */
    uint32_t incarnation;
    uint32_t context, slots, kv_blocks, snapshots, threads; /* 0: the default */
    uint32_t draft;                                         /* ids of a draft; 0: no drafts */
    uint32_t cached_blocks; /* most that the prefix cache keeps; UINT32_MAX: all there are */
    int link_fd, stream_fd; /* its two listening sockets */
    int board_fd;           /* its slot of the board; -1: no board */
    uint32_t board_slot;    /* the number of that slot: its place among the local workers */
    int prefix_store_fd;    /* -1: no prefix store */
    uint32_t local_workers; /* 0: not given; it is alone */
    uint32_t frame_us;
    uint32_t orphan_s;
    const char *cublas; /* number of rows from which cuBLASLt multiplies; NULL: off */
    bool invariant;     /* answers do not depend on what else runs, on a GPU too */
    bool host_sampling; /* the host samples too; its ids are compared with a GPU's, and used */
    bool no_sandbox;
    uint32_t parent;    /* process whose end sends a SIGTERM; 0: none */
    bool check;         /* only check the options; broker and stream may be NULL */
    bool count_devices; /* only count devices; broker and stream may be NULL */
};

/* Parses the command line; texts borrow from argv. Errors and --help end the process, with status 2 or 0. */
void worker_options_parse(int argc, char **argv, struct worker_options *ret_options);

#endif
