/* SPDX-License-Identifier: MIT */
/* quern keys: a CURVE key pair as two certificates, one to keep and one to give away. */

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zmq.h>

#include "client/command/verbs.h"
#include "common/certificate.h"

#define NAME "quern.cert"

static int parse(int key, char *arg, struct argp_state *state)
{
    const char **folder = state->input;
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    if (state->arg_num > 0)
        argp_usage(state);
    if (!*arg)
        argp_error(state, "DIR is empty");
    *folder = arg;
    return 0;
}

static int make_keys(const char *folder, struct certificate *ret_certificate, struct error *err)
{
    if (zmq_curve_keypair(ret_certificate->public_key, ret_certificate->secret_key) < 0)
        return error_set(err, -errno, "CURVE: %s",
                         errno == ENOTSUP ? "this libzmq was built without it" : zmq_strerror(errno));
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return error_set(err, -errno, "%s: %s", folder, strerror(errno));
    return certificate_write(folder, NAME, ret_certificate, err);
}

int verb_keys(int argc, char **argv)
{
    static const struct argp argp = {
        .parser = parse,
        .args_doc = "[DIR]",
        .doc =
            "Makes the CURVE keys that encrypt a pool's TCP, and prints the public one."
            "\vWrites DIR/" NAME "_secret, which the pool reads (quern serve --curve-key) and nobody else "
            "may, and DIR/" NAME ", which clients need (--server-key). DIR is the current folder if none is "
            "named, and is made if it is missing. Keys that are there are never overwritten. The files are "
            "ordinary ZeroMQ certificates: czmq and pyzmq read them, and theirs can be used instead."};
    const char *folder = ".";
    struct certificate certificate = {0};
    struct error err = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &folder);
    int r = make_keys(folder, &certificate, &err);
    explicit_bzero(certificate.secret_key, sizeof certificate.secret_key);
    if (r < 0)
        return verb_fail(r, &err);
    puts(certificate.public_key);
    fprintf(stderr,
            "%s/" NAME "_secret is the pool's, and stays secret:\n"
            "    quern serve MODEL --tcp HOST:PORT --curve-key %s/" NAME "_secret\n"
            "%s/" NAME " is for the clients; copy it to where they run:\n"
            "    quern run --connect tcp://HOST:PORT --server-key %s/" NAME " \"PROMPT\"\n",
            folder, folder, folder, folder);
    return EXIT_SUCCESS;
}
