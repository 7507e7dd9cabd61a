/* SPDX-License-Identifier: MIT */
/* quern keys: a CURVE key pair, a pool's or a client's, as two certificates, one to keep and one to give
 * away. */

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zmq.h>

#include "client/command/verbs.h"
#include "common/program/arguments.h"
#include "common/files/certificate.h"

#define SERVER         "quern"
#define NAME_MAX_BYTES 64 /* what a broker says of a client in its log has as much */

struct arguments {
    const char *folder;
    const char *client; /* its name; NULL: the keys are a pool's */
};

/* A name becomes that of a file, and stands in logs. */
static bool is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_@";
    size_t len = strlen(text);
    return len > 0 && len < NAME_MAX_BYTES - sizeof ".cert_secret" && text[0] != '.' && text[0] != '-' &&
           text[strspn(text, letters)] == 0;
}

static int parse(int key, char *arg, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    if (key == 'c') {
        if (!is_name(arg))
            argp_error(state, "--client: \"%.80s\" is not a name of letters, digits and . - _ @", arg);
        arguments->client = arg;
        return 0;
    }
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    if (state->arg_num > 0)
        argp_usage(state);
    if (!*arg)
        argp_error(state, "DIR is empty");
    arguments->folder = arg;
    return 0;
}

static int make_keys(const char *folder, const char *name, struct certificate *ret_certificate,
                     struct error *err)
{
    if (zmq_curve_keypair(ret_certificate->public_key, ret_certificate->secret_key) < 0)
        return error_set(err, -errno, "CURVE: %s",
                         errno == ENOTSUP ? "this libzmq was built without it" : zmq_strerror(errno));
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return error_set(err, -errno, "%s: %s", folder, strerror(errno));
    return certificate_write(folder, name, ret_certificate, err);
}

static void say_what_to_do(const struct arguments *arguments, const char *name)
{
    const char *folder = arguments->folder;
    if (arguments->client)
        fprintf(stderr,
                "%s/%s_secret belongs to the client; keep it secret:\n    quern run --connect "
                "tcp://HOST:PORT --server-key " SERVER ".cert --client-key %s/%s_secret \"PROMPT\"\n"
                "%s/%s is for the pool; put it into the folder of accepted clients:\n"
                "    quern serve MODEL --tcp HOST:PORT --curve-key " SERVER
                ".cert_secret --client-keys DIR\n",
                folder, name, folder, name, folder, name);
    else
        fprintf(stderr,
                "%s/%s_secret belongs to the pool; keep it secret:\n    quern serve MODEL --tcp HOST:PORT "
                "--curve-key %s/%s_secret --client-keys DIR\n%s/%s is for the clients; copy it to where they "
                "run:\n    quern run --connect tcp://HOST:PORT --server-key %s/%s --client-key FILE "
                "\"PROMPT\"\nDIR has the keys of clients, made by quern keys --client NAME.\n",
                folder, name, folder, name, folder, name, folder, name);
}

int verb_keys(int argc, char **argv)
{
    static const struct argp_option known[] = {
        {"client", 'c', "NAME", 0, "Make a client's keys, DIR/NAME.cert_secret and DIR/NAME.cert", 0}, {0}};
    static const struct argp argp = {
        .options = known,
        .parser = parse,
        .args_doc = "[DIR]",
        .doc =
            "Makes the CURVE keys of a pool that listens on TCP, or of a client, and prints the public one."
            "\vWrites DIR/" SERVER
            ".cert_secret, which the pool reads (quern serve --curve-key) and nobody else "
            "may, and DIR/" SERVER
            ".cert, which clients need (--server-key). The client keeps its secret key (--client-key); its "
            "public key goes into the pool's folder of accepted clients (quern serve --client-keys). DIR is "
            "the current folder by default, and is created if it is missing. Existing keys are never "
            "overwritten. The files are ordinary ZeroMQ certificates: czmq and pyzmq can read them, and "
            "certificates made by these can be used instead."};
    struct arguments arguments = {.folder = "."};
    struct certificate certificate = {0};
    struct error err = {0};
    char name[NAME_MAX_BYTES];
    arguments_parse(&argp, argc, argv, &arguments);
    snprintf(name, sizeof name, "%s.cert", arguments.client ? arguments.client : SERVER);
    int r = make_keys(arguments.folder, name, &certificate, &err);
    explicit_bzero(certificate.secret_key, sizeof certificate.secret_key);
    if (r < 0)
        return verb_fail(r, &err);
    puts(certificate.public_key);
    say_what_to_do(&arguments, name);
    return EXIT_SUCCESS;
}
