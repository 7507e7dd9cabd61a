/* SPDX-License-Identifier: MIT */
/* Arguments and stdin become one prompt.
 *
 * A stdin that is not a terminal says little: it may be the text of this prompt (`quern run "Sum up:"
 * <file`), the list that a loop around the command reads (`while read`), the rest of the script that a shell
 * is executing (`ssh host sh <script`), or a pipe that somebody forgot to close. Reading what belongs to
 * somebody else destroys it, so only what was given to this command alone is read:
 *
 * - a file whose offset is 0: nobody has read from it, and its end is near;
 * - a pipe or socket that is not the parent's stdin too. Reading waits for its end. That may never come, so
 *   there is a line on stderr soon and an error later, unless a first byte has come.
 *
 * "-" overrides all this: somebody said that stdin is meant. */

#include "client/command/terminal/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/command/terminal/io.h"
#include "common/amount.h"
#include "common/clock.h"
#include "common/program/program.h"
#include "common/utf8.h"

enum whose {
    OURS,
    NOBODYS,    /* nothing can come from it */
    SOMEBODYS,  /* left alone */
    OURS_MAYBE, /* as far as one can see; whether it ends one cannot */
};

/* ---- whose stdin is it? ---- */

static bool parent_has_it(const struct stat *ours)
{
    char path[64];
    struct stat theirs;
    snprintf(path, sizeof path, "/proc/%d/fd/0", (int)getppid());
    /* What may not be looked at is another user's process, which gave us a stdin of its own making. */
    return stat(path, &theirs) == 0 && theirs.st_dev == ours->st_dev && theirs.st_ino == ours->st_ino;
}

/* Whether all of a pipe or socket has been read and nobody can write to it any more. */
static bool at_end(mode_t mode)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;
    if (poll(&input, 1, 0) <= 0)
        return false;
    if (S_ISSOCK(mode))
        return recv(STDIN_FILENO, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
    return !(input.revents & POLLIN);
}

static enum whose whose_stdin(void)
{
    struct stat stdin_is;
    int flags = fcntl(STDIN_FILENO, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY || fstat(STDIN_FILENO, &stdin_is) < 0)
        return NOBODYS; /* closed, see program_hold_standard_files */
    if (S_ISREG(stdin_is.st_mode)) {
        off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
        return at <= 0 ? OURS : at >= stdin_is.st_size ? NOBODYS : SOMEBODYS;
    }
    if (S_ISFIFO(stdin_is.st_mode) || S_ISSOCK(stdin_is.st_mode)) {
        if (at_end(stdin_is.st_mode))
            return NOBODYS;
        return parent_has_it(&stdin_is) ? SOMEBODYS : OURS_MAYBE;
    }
    return isatty(STDIN_FILENO) ? NOBODYS : OURS;
}

/* ---- reading ---- */

/* Waits until there is something to read, or the end. */
static int await(struct prompt_patience patience, struct error *err)
{
    uint64_t start = clock_ns();
    bool told = false;
    for (;;) {
        uint64_t waited = (clock_ns() - start) / CLOCK_NS_PER_MS;
        if (waited >= patience.error_ms)
            return error_set(err, -ETIMEDOUT,
                             "stdin: no input within %u s; add \"-\" after the prompt to wait longer, or "
                             "</dev/null to go without",
                             patience.error_ms / 1000);
        if (waited >= patience.notice_ms && !told) {
            program_error("waiting for text on stdin to add to the prompt (</dev/null for none)");
            told = true;
        }
        bool notice_first = !told && patience.notice_ms < patience.error_ms;
        uint64_t until = notice_first ? patience.notice_ms : patience.error_ms;
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        if (poll(&input, 1, (int)(until - waited)) > 0)
            return 0;
    }
}

/* A newline between two parts, and none before an empty one. */
static int append_part(struct buffer *prompt, const void *data, size_t len)
{
    int r = prompt->len > 0 && len > 0 ? buffer_append(prompt, "\n", 1) : 0;
    return r < 0 ? r : buffer_append(prompt, data, len);
}

static int append_stdin(struct buffer *prompt, struct error *err)
{
    struct buffer text = {0};
    int r = io_read_stdin(&text, PROMPT_MAX_BYTES, "the prompt", err);
    size_t valid = r == 0 ? utf8_valid((struct bytes){text.data, text.len}) : 0;
    const uint8_t *zero = r == 0 && text.len > 0 ? memchr(text.data, 0, text.len) : NULL;
    if (zero && (size_t)(zero - text.data) < valid)
        valid = (size_t)(zero - text.data);
    if (r == 0 && valid < text.len)
        r = error_set(err, -EINVAL, "stdin is not text: byte %zu is 0x%02x, %s", valid, text.data[valid],
                      text.data[valid] ? "which is not UTF-8" : "which is not allowed in text");
    if (r == 0 && append_part(prompt, text.data, text.len) < 0)
        r = error_set(err, -ENOMEM, "out of memory");
    buffer_deinit(&text);
    return r;
}

/* What there is on stdin beside a prompt that was given as a word. */
static int append_own_stdin(struct buffer *prompt, struct prompt_patience patience, struct error *err)
{
    int r = 0;
    switch (whose_stdin()) {
    case NOBODYS:
        return 0;
    case SOMEBODYS:
        program_error("stdin is not added to the prompt because another process reads it too (\"-\" after "
                      "the prompt adds it, </dev/null silences this)");
        return 0;
    case OURS_MAYBE:
        r = await(patience, err);
        break;
    case OURS:
        break;
    }
    return r < 0 ? r : append_stdin(prompt, err);
}

static int append_words(const char *const *words, size_t n_words, struct buffer *prompt, struct error *err)
{
    int r = 0;
    for (size_t i = 0; i < n_words && r == 0; i++)
        if (strcmp(words[i], "-") == 0)
            r = append_stdin(prompt, err);
        else if (append_part(prompt, words[i], strlen(words[i])) < 0)
            r = error_set(err, -ENOMEM, "out of memory");
    return r;
}

int prompt_read(const char *const *words, size_t n_words, struct prompt_patience patience,
                struct buffer *ret_prompt, struct error *err)
{
    struct buffer prompt = {0};
    int r;
    if (n_words == 0 && isatty(STDIN_FILENO))
        return error_set(err, -EINVAL, "no prompt: give one as an argument or on stdin");
    if (n_words == 0)
        r = append_stdin(&prompt, err);
    else
        r = append_words(words, n_words, &prompt, err);
    if (r == 0 && n_words == 1 && strcmp(words[0], "-") != 0 && prompt.len > 0)
        r = append_own_stdin(&prompt, patience, err);
    if (r == 0 && prompt.len == 0)
        r = error_set(err, -EINVAL, "the prompt is empty");
    if (r == 0 && prompt.len > PROMPT_MAX_BYTES)
        r = error_set(err, -EMSGSIZE, "the prompt is longer than %s", amount_of_bytes(PROMPT_MAX_BYTES).text);
    if (r == 0 && buffer_append(&prompt, "", 1) < 0)
        r = error_set(err, -ENOMEM, "out of memory");
    if (r < 0) {
        buffer_deinit(&prompt);
        return r;
    }
    *ret_prompt = prompt;
    return 0;
}

/* ---- a word that is no prompt ---- */

bool prompt_names_model(const char *word)
{
    static const char ending[] = ".gguf", magic[] = {'G', 'G', 'U', 'F'};
    size_t len = strlen(word);
    char first[sizeof magic];
    if (!strpbrk(word, " \t\n") && len >= sizeof ending &&
        strcasecmp(word + len - (sizeof ending - 1), ending) == 0)
        return true;
    int fd = open(word, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = fd < 0 ? 0 : read(fd, first, sizeof first);
    if (fd >= 0)
        close(fd);
    return n == (ssize_t)sizeof first && memcmp(first, magic, sizeof magic) == 0;
}
