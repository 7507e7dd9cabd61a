/* SPDX-License-Identifier: MIT */
/* See tokenizer_verb.h. */

#include "client/command/verbs/tokenizer_verb.h"

#include "client/command/terminal/io.h"
#include "model/model.h"

int tokenizer_verb(const char *path, const char *input, tokenizer_work *work, const void *arg,
                   struct error *err)
{
    struct gguf *gguf = NULL;
    struct tokenizer *tokenizer = NULL;
    struct buffer data = {0};
    struct ids ids = {0};
    int r = model_open_files(path, &gguf, err);
    if (r == 0) {
        r = tokenizer_new(gguf, &tokenizer, err);
        if (r < 0)
            error_prefix(err, r, "%s", path);
    }
    if (r == 0)
        r = io_read_stdin(&data, TOKENIZER_MAX_TEXT, input, err);
    if (r == 0)
        r = work(tokenizer, &data, &ids, arg, err);
    ids_deinit(&ids);
    buffer_deinit(&data);
    tokenizer_free(tokenizer);
    gguf_free(gguf);
    return r;
}
