/* SPDX-License-Identifier: MIT */
#ifndef PROTO_LAUNCH_H
#define PROTO_LAUNCH_H

/* Upper bounds of options that the broker passes on to workers on their command line; the lower bound is 1.
 * Both programs check them when they parse their options. */

#define LAUNCH_MAX_CONTEXT      (1u << 24) /* tokens */
#define LAUNCH_MAX_SLOTS        4096       /* sequences */
#define LAUNCH_MAX_KV_BLOCKS    (1u << 26)
#define LAUNCH_MAX_SNAPSHOTS    (1u << 20)
#define LAUNCH_MAX_DRAFT        64 /* tokens */
#define LAUNCH_MAX_THREADS      1024
#define LAUNCH_MAX_FRAME_US     1000000    /* from 0 */
#define LAUNCH_MAX_PREFIX_STORE (1u << 22) /* MiB */

#endif
