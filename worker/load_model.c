/* SPDX-License-Identifier: MIT */
/* See load_model.h. The model's own template may be one that cannot be used, and all else is served; one that
 * was asked for may not. */

#include "worker/load_model.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/utf8.h"
#include "model/convert/quantize.h"
#include "model/overrides.h"
#include "model/sampling_hints.h"
#include "worker/load_weights.h"

#define MOST_TEMPLATE ((size_t)1 << 20) /* bytes: the largest that are public have thirty thousand */

void load_tell_how_far(struct load *load, const char *what, uint64_t done, uint64_t total)
{
    char line[96];
    if (loading_line(&load->loading, what, done, total, clock_ns(), line, sizeof line))
        log_info("%s", line);
}

int load_check_quantize(const char *name, struct error *err)
{
    if (!mixture_by_name(name))
        return error_set(err, -EINVAL, "--quantize: unknown type \"%s\"", name);
    return 0;
}

static void after_tensor(void *arg, const struct quantize_step *step)
{
    struct load *load = arg;
    load->progress(load->progress_arg);
    load_tell_how_far(load, "quantizing", load->quantized, load->quantizable);
    load->quantized += step->from->size;
}

static void log_note(const struct gguf *gguf)
{
    char line[300];
    const struct bytes note = model_files_note(gguf);
    if (note.len > 0)
        log_info("%s", utf8_printable(note, sizeof line, line));
}

/* The model, its weights made smaller if that is asked for. */
int load_open_model(struct load *load, struct error *err)
{
    const struct worker_options *options = load->options;
    const struct quantize_options quantize = {.n_threads = load->binding.n_threads};
    const struct mixture *mixture = options->quantize ? mixture_by_name(options->quantize) : NULL;
    struct gguf *gguf;
    int r = options->quantize ? load_check_quantize(options->quantize, err) : 0;
    if (r == 0)
        r = model_open_files(options->model, &gguf, err);
    if (r < 0)
        return r;
    log_note(gguf);
    load->quantizable = load_bytes_of_tensors(gguf);
    r = overrides_apply(gguf, options->overrides, err);
    if (r == 0 && mixture && load->only_checks)
        r = quantize_check(gguf, mixture, &quantize, err);
    else if (r == 0 && mixture)
        r = quantize_in_memory(gguf, mixture, &quantize, after_tensor, load, err);
    if (r < 0) {
        gguf_free(gguf);
        return error_prefix(err, r, "%s", options->model);
    }
    r = model_take_gguf(gguf, options->model, true, &load->model, err);
    if (r < 0)
        return options->overrides ? error_prefix(err, r, "with overridden metadata") : r;
    return model_check_overrides(load->model, options->overrides, err);
}

/* The whole file, while it is in reach; 0, or -EINVAL with the reason: no other process will find it
 * otherwise. */
int load_read_template(struct load *load, struct error *err)
{
    const char *path = load->options->chat_template;
    struct buffer *text = &load->chat_template;
    char part[4096];
    size_t n;
    int r = 0;
    if (!path)
        return 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set(err, -EINVAL, "--chat-template: %s: %s", path, strerror(errno));
    while (r == 0 && (n = fread(part, 1, sizeof part, file)) > 0)
        r = text->len + n > MOST_TEMPLATE ? -EFBIG : buffer_append(text, part, n);
    if (r == 0 && ferror(file))
        r = -EIO;
    if (r == 0 && text->len == 0)
        r = -ENODATA;
    fclose(file);
    return r < 0 ? error_set(err, -EINVAL, "--chat-template: %s: %s", path, strerror(-r)) : 0;
}

/* The pool's word before the model's, and that before the list's; load_check_names has checked the former. */
static void know_sampling(struct load *load)
{
    struct error odd = {0};
    const char *said = load->options->sampling;
    sampling_defaults_init(&load->sampling);
    sampling_hints(load->model->gguf, &load->sampling, &odd);
    if (odd.text[0])
        log_warn("%s", odd.text);
    if (said)
        sampling_defaults_set(&load->sampling, bytes_of_string(said), SAMPLING_OF_POOL, NULL);
    sampling_defaults_write(&load->sampling, load->sampling_text);
}

/* What makes prompts of texts and conversations. The model's own template may be one that cannot be used, and
 * all else is served; one that was asked for may not. */
int load_open_encoder(struct load *load, struct error *err)
{
    know_sampling(load);
    const char *path = load->options->chat_template;
    const struct bytes own = load->model->chat_template;
    const struct bytes given = {load->chat_template.data, load->chat_template.len};
    if (utf8_valid(given) < given.len)
        return error_set(err, -EINVAL, "--chat-template: %s: %s", path, strerror(EILSEQ));
    if (path)
        load->model->chat_template = given;
    int r = prompt_encoder_init(&load->encoder, load->model, err);
    load->model->chat_template = own;
    buffer_deinit(&load->chat_template);
    if (r < 0)
        return r;
    if (path && !load->encoder.chat)
        return error_set(err, -EINVAL, "--chat-template: %s: %s", path, load->encoder.no_chat.text);
    if (own.len > 0 && !load->encoder.chat)
        log_warn("%s", load->encoder.no_chat.text);
    const char *system = load->options->system;
    r = system ? prompt_encoder_set_system(&load->encoder, bytes_of_string(system), err) : 0;
    return r < 0 ? error_prefix(err, r, "--system") : 0;
}
