/* SPDX-License-Identifier: MIT */
/* The verbs that make and show model files, as a shell would call them. */

#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gguf/gguf.h"
#include "gguf/gguf_writer.h"

static char dir[RUNDIR_PATH_MAX + 1];
static char floats[RUNDIR_PATH_MAX + 20], small[RUNDIR_PATH_MAX + 20];
static char out[1 << 20];

static void set_up(void)
{
    ck_assert_int_eq(rundir_temporary(dir, NULL), 0);
    snprintf(floats, sizeof floats, "%s/floats.gguf", dir);
    snprintf(small, sizeof small, "%s/small.gguf", dir);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "synth", "tiny", "bf16", floats, NULL), 0);
    ck_assert_str_eq(out, "");
}

static void tear_down(void)
{
    rundir_remove(dir);
}

static json_t *inspect(const char *path)
{
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "inspect", "--json", "--digest", "-n", "3",
                                 "--ctx", "40", path, NULL),
                     0);
    json_t *report = json_loads(out, 0, NULL);
    ck_assert_ptr_nonnull(report);
    return report;
}

/* Of five layers in six no more than their window of 12 and one step, whatever the context. */
START_TEST(windows_take_less_memory)
{
    static const struct {
        const char *context;
        json_int_t all, in_windows; /* blocks of 20 sequences */
    } cases[] = {{"32", 20, 20}, {"1024", 20 * 32, 20 * 3 + 16}, {"4096", 20 * 128, 20 * 3 + 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(run_program(out, sizeof out, "quern", "inspect", "--json", "--sequences", "20",
                                     "--ctx", cases[i].context, GEMMA, NULL),
                         0);
        json_t *report = json_loads(out, 0, NULL), *memory = json_object_get(report, "memory");
        const json_int_t a_layer = 32 * 2 * 2 * 8 * 2; /* of a block: two heads, keys and values, f16 */
        ck_assert_int_eq(json_integer_value(json_object_get(memory, "bytes_of_a_token")), 6 * a_layer / 32);
        ck_assert_int_eq(json_integer_value(json_object_get(memory, "keys_and_values")),
                         a_layer * (cases[i].all + 5 * cases[i].in_windows));
        json_decref(report);
    }
}
END_TEST

/* States of sequences, snapshots of them for the prefix cache, and those of drafts. */
START_TEST(snapshots_of_states_are_part_of_the_memory)
{
    static const struct {
        const char *sequences, *draft;
        json_int_t snapshots, spares; /* spares −1: not told */
    } cases[] = {{"3", "0", 16, -1}, {"3", "8", 16, 3}, {"20", "1", 80, 8}};
    char path[4096];
    ck_assert_int_lt(snprintf(path, sizeof path, "%s/hybrid.gguf", dir), (int)sizeof path);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "synth", "tiny-hybrid", "Q8_0", path, NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(run_program(out, sizeof out, "quern", "inspect", "--json", "--ctx", "64",
                                     "--sequences", cases[i].sequences, "--draft", cases[i].draft, path,
                                     NULL),
                         0);
        json_t *report = json_loads(out, 0, NULL), *memory = json_object_get(report, "memory");
        const json_int_t a_state = json_integer_value(json_object_get(memory, "bytes_of_a_state")),
                         states = json_integer_value(json_object_get(memory, "states")),
                         snapshots = json_integer_value(json_object_get(memory, "snapshots"));
        const json_t *spares = json_object_get(memory, "draft_snapshots");
        ck_assert_int_gt(a_state, 0);
        ck_assert_int_eq(states, atoi(cases[i].sequences) * a_state);
        ck_assert_int_eq(snapshots, cases[i].snapshots * a_state);
        ck_assert(spares ? json_integer_value(spares) == cases[i].spares * a_state : cases[i].spares < 0);
        ck_assert_int_eq(json_integer_value(json_object_get(memory, "together")),
                         json_integer_value(json_object_get(memory, "keys_and_values")) + states + snapshots +
                             json_integer_value(spares) +
                             json_integer_value(json_object_get(memory, "weights")));
        json_decref(report);
    }
}
END_TEST

START_TEST(a_model_is_made_shrunk_and_shown)
{
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "quantize", floats, "q4_k_m", small, NULL), 0);
    ck_assert_str_eq(out, "");
    json_t *before = inspect(floats), *after = inspect(small);
    json_t *hyperparameters = json_object_get(after, "hyperparameters"),
           *refused = json_object_get(after, "refused");
    ck_assert(json_equal(json_object_get(before, "hyperparameters"), hyperparameters));
    ck_assert_int_eq(json_integer_value(json_object_get(hyperparameters, "n_embd")), 256);
    ck_assert(json_is_null(refused));
    ck_assert_str_ne(json_string_value(json_object_get(before, "digest")),
                     json_string_value(json_object_get(after, "digest")));
    ck_assert(json_is_false(json_object_get(hyperparameters, "chat_template")));
    json_t *text = json_object_get(after, "text"), *memory = json_object_get(after, "memory");
    ck_assert_str_eq(json_string_value(json_object_get(text, "tokenizer")), "llama");
    ck_assert_str_eq(json_string_value(json_object_get(text, "chat_template")), "none");
    ck_assert_int_eq(json_integer_value(json_object_get(text, "tokens")), 512);
    ck_assert_int_eq(json_integer_value(json_object_get(memory, "sequences")), 3);
    ck_assert_int_eq(json_integer_value(json_object_get(memory, "context")), 40);
    json_int_t a_token = 2 * 2 * json_integer_value(json_object_get(hyperparameters, "n_layers")) *
                         json_integer_value(json_object_get(hyperparameters, "n_kv_heads")) *
                         json_integer_value(json_object_get(hyperparameters, "head_dim"));
    ck_assert_int_eq(json_integer_value(json_object_get(memory, "bytes_of_a_token")), a_token);
    ck_assert_int_eq(json_integer_value(json_object_get(memory, "keys_and_values")), 3 * 64 * a_token);
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(hyperparameters, "traits"), 0)),
                     "attention");
    json_t *metadata = json_object_get(after, "metadata");
    ck_assert_int_eq(json_integer_value(json_object_get(metadata, "general.file_type")), 15);
    ck_assert_uint_eq(json_array_size(json_object_get(after, "tensors")), 20);
    json_int_t large = json_integer_value(json_object_get(json_object_get(before, "totals"), "bytes"));
    json_int_t little = json_integer_value(json_object_get(json_object_get(after, "totals"), "bytes"));
    ck_assert_int_lt(little * 3, large);
    json_decref(before);
    json_decref(after);
}
END_TEST

START_TEST(columns_show_every_tensor_and_the_sum)
{
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "inspect", floats, NULL), 0);
    ck_assert_ptr_nonnull(
        strstr(out, "blk.1.ffn_down.weight            512 x 256        BF16          262144\n"));
    ck_assert_ptr_nonnull(strstr(out, "20 tensors, 1.31 M parameters, 2.63 MB"));
    ck_assert_ptr_nonnull(strstr(out, "general.architecture                         llama\n"));
    ck_assert_ptr_nonnull(strstr(out, "traits                                       attention, RMS norms, "
                                      "rotary positions of adjacent pairs, SiLU\n"));
}
END_TEST

START_TEST(a_bad_file_is_a_failure_and_a_bad_command_a_usage_error)
{
    FILE *file = fopen(small, "w");
    fputs("This is not a model.\n", file);
    fclose(file);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "inspect", small, NULL), 1);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "inspect", "/nowhere.gguf", NULL), 1);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "quantize", small, "Q8_0", small, NULL), 1);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "synth", "tiny", "Q8_0", "/nowhere/x.gguf", NULL),
                     1);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "inspect", NULL), 2);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "synth", "gigantic", "Q8_0", small, NULL), 2);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "synth", "tiny", "Q8_0", NULL), 2);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "quantize", floats, "Q1", small, NULL), 2);
    ck_assert_str_eq(out, "");
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "synth", "--help", NULL), 0);
    ck_assert_ptr_nonnull(strstr(out, "llama-3.2-1b"));
}
END_TEST

/* The exit status of `quern` with these arguments and redirections, as a shell reads them. */
static int shell(const char *words)
{
    char command[8192];
    snprintf(command, sizeof command, "'%s' %s", build_path("quern"), words);
    return WEXITSTATUS(system(command));
}

/* A model without its last tensor: everything can be read, nothing can be run. */
START_TEST(a_file_that_cannot_be_run_is_shown_and_is_a_failure)
{
    struct gguf *gguf;
    struct gguf_writer *writer;
    ck_assert_int_eq(gguf_open(floats, &gguf, NULL), 0);
    ck_assert_int_eq(gguf_writer_new(&writer), 0);
    for (size_t i = 0; i < gguf_n_pairs(gguf); i++)
        ck_assert_int_eq(gguf_writer_pair(writer, gguf_pair_at(gguf, i)), 0);
    ck_assert_int_eq(gguf_writer_write(writer, small, NULL), 0);
    gguf_writer_free(writer);
    gguf_free(gguf);
    char command[4 * RUNDIR_PATH_MAX];
    snprintf(command, sizeof command, "inspect '%s' >/dev/null 2>'%s/said'", small, dir);
    ck_assert_int_eq(shell(command), 1);
    snprintf(command, sizeof command, "%s/said", dir);
    FILE *file = fopen(command, "r");
    out[fread(out, 1, sizeof out - 1, file)] = 0;
    fclose(file);
    ck_assert_int_eq(strncmp(out, "quern: no worker can run it: ", 29), 0);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "inspect", small, NULL), 1);
    ck_assert_ptr_nonnull(strstr(out, "general.architecture                         llama\n"));
    ck_assert_ptr_nonnull(strstr(out, "0 tensors, "));
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "inspect", "--json", small, NULL), 1);
    json_t *report = json_loads(out, 0, NULL);
    ck_assert(json_is_string(json_object_get(report, "refused")));
    ck_assert(json_is_null(json_object_get(report, "hyperparameters")));
    json_decref(report);
}
END_TEST

START_TEST(what_8_bits_of_keys_and_values_cost_is_said)
{
    char command[8 * RUNDIR_PATH_MAX];
    double error = -1, ours = 0, plain = 0;
    snprintf(command, sizeof command,
             "logits '%s' --device cpu --tokens 1,5,9,7,3,200,4 --all --kv-type q8_0 --out '%s/logits' "
             "2>'%s/said'",
             floats, dir, dir);
    ck_assert_int_eq(shell(command), 0);
    snprintf(command, sizeof command, "%s/said", dir);
    FILE *file = fopen(command, "r");
    ck_assert_int_eq(fscanf(file,
                            "NMSE against keys and values in f16: %lf\n"
                            "perplexity of 6 ids: %lf, in f16 %lf\n",
                            &error, &ours, &plain),
                     3);
    fclose(file);
    ck_assert(error > 0 && error < 0.05);
    ck_assert(plain > 1 && ours > plain * 0.9 && ours < plain * 1.1);
    snprintf(command, sizeof command, "logits '%s' --tokens 1 --kv-type q3 --out '%s/logits' 2>/dev/null",
             floats, dir);
    ck_assert_int_eq(shell(command), 2);
}
END_TEST

static long size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (long)st.st_size : -1;
}

START_TEST(logits_are_written_whole_or_not_at_all)
{
    char to[RUNDIR_PATH_MAX + 20], link[RUNDIR_PATH_MAX + 20];
    snprintf(to, sizeof to, "%s/logits", dir);
    snprintf(link, sizeof link, "%s/link", dir);
#define LOGITS(...) run_program(out, sizeof out, "quern", "logits", floats, __VA_ARGS__, NULL)
    ck_assert_int_eq(LOGITS("--tokens", "1,2", "--out", to), 0);
    ck_assert_int_eq(size_of(to), 512 * 4);
    ck_assert_int_eq(LOGITS("--tokens", "1,2,3", "--all", "--out", to), 0);
    ck_assert_int_eq(size_of(to), 3 * 512 * 4);
    /* A failure leaves what was there. */
    ck_assert_int_eq(LOGITS("--tokens", "1,2,99999", "--out", to), 1);
    ck_assert_int_eq(size_of(to), 3 * 512 * 4);
    /* The model is not written over, whatever it is called. */
    long before = size_of(floats);
    ck_assert_int_eq(symlink(floats, link), 0);
    ck_assert_int_eq(LOGITS("--tokens", "1,2", "--out", floats), 1);
    ck_assert_int_eq(LOGITS("--tokens", "1,2", "--out", link), 1);
    ck_assert_int_eq(size_of(floats), before);
    ck_assert_int_eq(LOGITS("--tokens", "1,2", "--out", "/dev/null"), 0);
    ck_assert_int_eq(LOGITS("--tokens", "1,2", "--out", "/dev/full"), 1);
    ck_assert_int_eq(LOGITS("--tokens", "1,2", "--out", "/nowhere/logits"), 1);
    char words[4 * RUNDIR_PATH_MAX];
    for (int i = 0; i < 2; i++) {
        snprintf(words, sizeof words, "logits '%s' --tokens 1,2 --out %s >'%s'", floats,
                 i ? "-" : "/dev/stdout", to);
        ck_assert_int_eq(shell(words), 0);
        ck_assert_int_eq(size_of(to), 512 * 4);
    }
}
END_TEST

/* The output of `quern tokenize` on this text; `option` may be NULL. */
static int tokenize(const char *text, size_t len, const char *option)
{
    char path[RUNDIR_PATH_MAX + 20];
    snprintf(path, sizeof path, "%s/text", dir);
    FILE *file = fopen(path, "w");
    ck_assert_uint_eq(fwrite(text, 1, len, file), len);
    fclose(file);
    ck_assert_ptr_nonnull(freopen(path, "r", stdin)); /* the program inherits it */
    return run_program(out, sizeof out, "quern", "tokenize", floats, option, NULL);
}

START_TEST(text_on_stdin_becomes_ids_on_one_line)
{
    ck_assert_int_eq(tokenize("", 0, NULL), 0);
    ck_assert_str_eq(out, "\n");
    ck_assert_int_eq(tokenize("", 0, "--special"), 0);
    ck_assert_str_eq(out, "1\n");
    ck_assert_int_eq(tokenize("\n", 1, NULL), 0);
    const char *newline = strrchr(out, ' ');
    ck_assert_ptr_nonnull(newline);
    ck_assert_str_eq(newline, " 13\n"); /* <0x0A> behind <unk> <s> </s> and ten bytes */
    ck_assert_int_eq(tokenize("<s>", 3, "--special"), 0);
    ck_assert_str_eq(out, "1 1\n");
    ck_assert_int_eq(tokenize("<s>", 3, NULL), 0);
    ck_assert_str_eq(out, "1\n");
    ck_assert_int_eq(tokenize("<s>", 3, "--no-parse-special"), 0);
    ck_assert_ptr_ne(strchr(out, ' '), strrchr(out, ' ')); /* spelled out */
    ck_assert_int_eq(tokenize("\xff", 1, NULL), 1);
    ck_assert_str_eq(out, "");
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "tokenize", NULL), 2);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "tokenize", "/nowhere.gguf", NULL), 1);
}
END_TEST

/* The output of `quern detokenize` on this list. */
static int detokenize(const char *list, const char *option)
{
    char path[RUNDIR_PATH_MAX + 20];
    snprintf(path, sizeof path, "%s/list", dir);
    FILE *file = fopen(path, "w");
    fputs(list, file);
    fclose(file);
    ck_assert_ptr_nonnull(freopen(path, "r", stdin));
    return run_program(out, sizeof out, "quern", "detokenize", floats, option, NULL);
}

START_TEST(ids_on_stdin_become_their_text)
{
    char ids[4096];
    ck_assert_int_eq(tokenize(" Gr\xc3\xbc\xc3\x9f"
                              "e,\n",
                              10, "--special"),
                     0);
    snprintf(ids, sizeof ids, "%.4000s", out);
    ck_assert_int_eq(detokenize(ids, NULL), 0);
    ck_assert_str_eq(out, " Gr\xc3\xbc\xc3\x9f"
                          "e,\n");
    ck_assert_int_eq(detokenize(ids, "--special"), 0);
    ck_assert_ptr_eq(strstr(out, "<s>"), out);
    ck_assert_int_eq(detokenize("", NULL), 0);
    ck_assert_str_eq(out, "");
    ck_assert_int_eq(detokenize("13,13\t13", NULL), 0);
    ck_assert_str_eq(out, "\n\n\n");
    ck_assert_int_eq(detokenize("512", NULL), 1);
    ck_assert_int_eq(detokenize("13 x", NULL), 1);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "detokenize", NULL), 2);
}
END_TEST

START_TEST(an_output_that_is_not_whole_is_a_failure)
{
    char words[2 * RUNDIR_PATH_MAX];
    snprintf(words, sizeof words, "inspect '%s' >/dev/full", floats);
    ck_assert_int_eq(shell(words), 1);
    snprintf(words, sizeof words, "inspect --json '%s' >/dev/full", floats);
    ck_assert_int_eq(shell(words), 1);
    snprintf(words, sizeof words, "inspect '%s' >&-", floats);
    ck_assert_int_eq(shell(words), 1);
    ck_assert_int_eq(shell("--version >/dev/full"), 1);
    ck_assert_int_eq(shell("synth --help >/dev/full"), 1);
    ck_assert_int_eq(shell("--version >/dev/null"), 0);
}
END_TEST

START_TEST(a_model_never_replaces_what_is_no_regular_file)
{
    struct stat stat;
    ck_assert_int_eq(mkfifo(small, 0600), 0);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "synth", "tiny", "Q8_0", small, NULL), 1);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "quantize", floats, "Q8_0", small, NULL), 1);
    ck_assert_int_eq(lstat(small, &stat), 0);
    ck_assert(S_ISFIFO(stat.st_mode));
}
END_TEST

START_TEST(a_key_that_nothing_reads_is_refused_by_all_who_take_it)
{
    static const char unread[] = "llama.x=int:5", read[] = "llama.rope.freq_base=float:5e5";
    static const char lines[] = "override-kv llama.x=int:5\n", fine[] = "override-kv general.name=str:x\n";
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "inspect", "--override-kv", unread, floats, NULL),
                     1);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "inspect", "--override-kv", read, floats, NULL),
                     0);
    ck_assert_int_eq(
        run_program(out, sizeof out, "quern-worker", "--check", "--overrides", lines, floats, NULL), 1);
    ck_assert_int_eq(
        run_program(out, sizeof out, "quern-worker", "--check", "--overrides", fine, floats, NULL), 0);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "serve", "--override-kv", unread, floats, NULL),
                     1);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, snapshots_of_states_are_part_of_the_memory);
    tcase_add_test(tests, a_model_is_made_shrunk_and_shown);
    tcase_add_test(tests, columns_show_every_tensor_and_the_sum);
    tcase_add_test(tests, a_file_that_cannot_be_run_is_shown_and_is_a_failure);
    tcase_add_test(tests, logits_are_written_whole_or_not_at_all);
    tcase_add_test(tests, what_8_bits_of_keys_and_values_cost_is_said);
    tcase_add_test(tests, windows_take_less_memory);
    tcase_add_test(tests, text_on_stdin_becomes_ids_on_one_line);
    tcase_add_test(tests, ids_on_stdin_become_their_text);
    tcase_add_test(tests, an_output_that_is_not_whole_is_a_failure);
    tcase_add_test(tests, a_model_never_replaces_what_is_no_regular_file);
    tcase_add_test(tests, a_key_that_nothing_reads_is_refused_by_all_who_take_it);
    tcase_add_test(tests, a_bad_file_is_a_failure_and_a_bad_command_a_usage_error);
}

int main(void)
{
    return run_tests("model_files", add);
}
