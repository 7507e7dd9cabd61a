/* SPDX-License-Identifier: MIT */
/* See member.h.
 *
 *   absent ──the first worker is ready──▶ written ──the pool begins to end──▶ removed
 *      └─▲ cannot be written: said once, tried again every second
 *
 * A batch system may have started another pool under the same name before this one has ended, and that one's
 * file must stay: a file with another address or key is not removed. */

#include "supervisor/member.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/settings/options_check.h"
#include "common/clock.h"
#include "common/files/certificate.h"
#include "common/log.h"

#define AGAIN_NS CLOCK_NS_PER_S

/* The path as the pool keeps it, absolute, and a folder that is there. */
static int take_path(struct member *member, const char *path, struct error *err)
{
    struct stat status;
    char folder[PATH_MAX], resolved[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (!member_file_is_name(name))
        return error_set(
            err, -EINVAL,
            "member: \"%.80s\" is not DIR/NAME with a name of letters, digits and \"._-\", at most %d", path,
            MEMBER_FILE_MAX_NAME);
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
    if (!realpath(folder, resolved) || stat(resolved, &status) < 0)
        return error_set(err, -errno, "member: %s: %s", folder, strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return error_set(err, -ENOTDIR, "member: %s is not a folder", folder);
    if (snprintf(member->path, sizeof member->path, "%s/%s", resolved, name) >= (int)sizeof member->path)
        return error_set(err, -ENAMETOOLONG, "member: %.80s…: the name is too long", path);
    return 0;
}

static int take_address(struct member *member, const struct options *options, struct error *err)
{
    char host[OPTIONS_TEXT_MAX + 1];
    uint16_t port;
    bool loopback;
    int r = options_split_tcp(options->tcp, host, &port, &loopback, err);
    if (r < 0)
        return r;
    if (options->public_host[0])
        strcpy(host, options->public_host);
    int n = snprintf(member->file.connect, sizeof member->file.connect, "tcp://%s:%u", host, port);
    return n < (int)sizeof member->file.connect
               ? 0
               : error_set(err, -ENAMETOOLONG, "member: the address tcp://%.80s…:%u is too long", host, port);
}

int member_init(struct member *member, const struct options *options, struct error *err)
{
    struct certificate certificate = {0};
    *member = (struct member){0};
    if (!options->member[0])
        return 0;
    int r = take_address(member, options, err);
    if (r == 0) {
        r = certificate_read_secret(options->curve_key, &certificate, err);
        r = r < 0 ? error_prefix(err, r, "curve-key") : 0;
    }
    strcpy(member->file.server_key, certificate.public_key);
    explicit_bzero(&certificate, sizeof certificate);
    return r < 0 ? r : take_path(member, options->member, err);
}

static void write_it(struct member *member, uint64_t now)
{
    struct error err;
    if (member_file_write(member->path, &member->file, &err) == 0) {
        member->written = true;
        member->said = (struct error){0};
        log_info("member: wrote %s, address %s", member->path, member->file.connect);
        return;
    }
    if (strcmp(member->said.text, err.text) != 0)
        log_error("member: %s; trying again every second", err.text);
    member->said = err;
    member->again_ns = now + AGAIN_NS;
}

void member_turn(struct member *member, bool ready, bool stopping, uint64_t now)
{
    if (!member->path[0])
        return;
    if (stopping)
        member_leave(member);
    else if (ready && !member->written && member->again_ns <= now)
        write_it(member, now);
}

uint64_t member_due(const struct member *member, bool ready, bool stopping)
{
    return member->path[0] && ready && !stopping && !member->written ? member->again_ns : UINT64_MAX;
}

void member_leave(struct member *member)
{
    struct member_file there;
    if (!member->written)
        return;
    member->written = false;
    if (member_file_read(member->path, &there, NULL) < 0 ||
        strcmp(there.connect, member->file.connect) != 0 ||
        strcmp(there.server_key, member->file.server_key) != 0)
        return;
    if (unlink(member->path) < 0 && errno != ENOENT)
        log_error("member: %s cannot be removed: %s", member->path, strerror(errno));
    else
        log_info("member: removed %s", member->path);
}
