/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_STATUS_VIEW_H
#define CLIENT_COMMAND_STATUS_VIEW_H

/* The parts that `quern status` and `quern top` share: the query and its display. */

#include <argp.h>
#include <quern.h>

#include "common/error.h"
#include "common/program/arguments.h"

#define STATUS_TIMEOUT_MS 5000 /* for an answer */

struct status_arguments { /* `connect` also holds the value of --rundir */
    const char *connect, *server_key, *client_key;
};

/* A child parser: its input is a struct status_arguments. */
extern const struct argp status_argp;

struct worker_arguments { /* of a verb about workers: [WORKER], and the pool's address */
    struct status_arguments common;
    const char *worker;              /* NULL: none was given */
    const struct argp_option *known; /* the verb's own options, */
    const struct argument *table;    /* and where they go (arguments.h), as offsets from this struct */
};

/* The parser of such a verb, whose first child is status_argp. Its input is a struct that begins with a
 * struct worker_arguments. Ends the program as argp_error does if the argument is not a worker's name. */
error_t worker_arguments_parse(int key, char *text, struct argp_state *state);

/* The last paragraph of a verb's help. */
#define STATUS_DEFAULT_POOL                                                                                  \
    "Without --connect: the pool of the default run directory, $XDG_RUNTIME_DIR/quern or /tmp/quern-UID."

/* Asks the pool once. 0 or -errno with a reason; the answer is valid as long as quern_status says. */
int status_ask(struct quern *client, const struct quern_status **ret_status, struct error *err);

/* Prints totals and a table of workers to stdout. Omits columns that do not fit in `columns`, the least
 * important first; 0: no limit. `colours`: with escape sequences for those. */
void status_print(const struct quern_status *status, size_t columns, bool colours);

/* The columns of the terminal on stdout; 0: stdout is not a terminal. */
size_t status_columns(void);

#endif
