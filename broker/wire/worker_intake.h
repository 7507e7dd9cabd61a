/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_WORKER_INTAKE_H
#define BROKER_WIRE_WORKER_INTAKE_H

/* Bounds the memory that one worker can take by sending.
 *
 * A worker reads untrusted model files and texts, so it may be compromised. Workers' messages have no
 * high-water mark, because no frame may be dropped; a worker waits for acknowledgements instead, but a
 * compromised one might not. So the bytes that a worker has sent and the loop has not taken are counted when
 * they are read. Beyond the bound nothing more is read, and the loop is told to kill the worker. An honest
 * worker stays below it even while the loop is stopped: its window holds 32,768 frames of about a hundred
 * bytes.
 *
 * Each worker has two sockets ("doors"), to which the broker connects. Linking this module replaces
 * connect(2), which shows which worker each descriptor belongs to. Any thread may call these functions. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define WORKER_INTAKE_WORKERS 64
#define WORKER_INTAKE_FILES   65536 /* descriptors from here on are not counted; none is that high */
#define WORKER_INTAKE_MAX     ((size_t)64 << 20) /* bytes not taken, of both doors together */

/* libzmq's overhead for a waiting part (4.3.4: 64 bytes in a pipe, 40 more if the part has more than 33, and
 * malloc's own). It is that small only if libzmq copies small parts out of the 8 KiB that it reads at once
 * (worker_intake_prepare). */
#define WORKER_INTAKE_PART_BYTES 128

enum worker_door {
    WORKER_DOOR_LINK,   /* messages of one part */
    WORKER_DOOR_STREAM, /* messages of two: topic and payload */
    WORKER_DOORS
};

/* Why a worker has to be killed. */
enum worker_intake_verdict {
    WORKER_INTAKE_FINE,
    WORKER_INTAKE_BYTES,
    WORKER_INTAKE_LINK_PARTS,
    WORKER_INTAKE_STREAM_PARTS,
    WORKER_INTAKE_NO_ZMTP,
    WORKER_INTAKE_VERDICTS
};

/* Makes a new libzmq context copy small messages: one that points into the read buffer keeps all of it, up to
 * 18 KiB for 34 bytes. */
void worker_intake_prepare(void *context);

/* Another process has the place: the bytes of the former one no longer count. */
void worker_intake_begin(unsigned worker);

/* From now on connections to this endpoint ("ipc://…") belong to this worker's process. */
void worker_intake_expect(unsigned worker, enum worker_door door, const char *endpoint);

/* The loop has taken `parts` parts of a message, `bytes` in all. */
void worker_intake_taken(unsigned worker, size_t bytes, unsigned parts);

/* The bytes not taken yet. */
size_t worker_intake_held(unsigned worker);

/* Whether the worker has to be killed; reported once for each process. */
enum worker_intake_verdict worker_intake_judge(unsigned worker);

/* A description: "a message of more than 2 parts". */
const char *worker_intake_describe(enum worker_intake_verdict verdict);

/* Whether a connection belongs to a worker. If so, broker/wire/intake.c, which replaces recv(2) and close(2),
 * calls the other two. */
bool worker_intake_has(int fd);
ssize_t worker_intake_recv(int fd, void *bytes, size_t len, int flags);
void worker_intake_close(int fd);

#endif
