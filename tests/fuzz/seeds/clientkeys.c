/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_clientkeys: the keys of two clients, of whom one leaves and one comes; one key under two
 * names; names that do not count; what is no file; what is no certificate, or stands for no bytes. */

#include "tests/fuzz/driver.h"

#include <string.h>

#define KEY   "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
#define OTHER "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
#define NONE  "########################################"
#define CURVE "metadata\n    name = \"a client\"\ncurve\n    public-key = \""

enum { STAYS = 0, LATER = 1, LEAVES = 2, A_FOLDER = 0, A_PIPE = 4, A_LINK = 8, A_FILE = 12 };

static uint8_t input[1 << 12];
static size_t used;

static void add(int kind, const char *name, const char *text)
{
    const size_t name_len = strlen(name), len = strlen(text);
    input[used++] = (uint8_t)kind;
    input[used++] = (uint8_t)name_len;
    memcpy(input + used, name, name_len);
    used += name_len;
    input[used++] = (uint8_t)len;
    input[used++] = (uint8_t)(len >> 8);
    memcpy(input + used, text, len);
    used += len;
}

static void finish(void)
{
    fuzz_add_seed(input, used);
    used = 0;
}

void fuzz_seeds(void)
{
    add(A_FILE | STAYS, "ada", KEY);
    finish();
    add(A_FILE | LEAVES, "ada", CURVE KEY "\"\n");
    add(A_FILE | LATER, "bob", OTHER "\n");
    finish();
    add(A_FILE | LEAVES, "ada", KEY);
    add(A_FILE | STAYS, "ada's laptop", CURVE KEY "\"\n    secret-key = \"" OTHER "\"\n");
    add(A_FILE | LATER, "ada's telephone", KEY);
    finish();
    add(A_FILE | STAYS, ".ada", KEY);
    add(A_FILE | STAYS, "ada_secret", KEY);
    add(A_FILE | LATER, "_secret", KEY);
    add(A_FILE | LATER, "secret", KEY);
    finish();
    add(A_FOLDER | STAYS, "a folder", "");
    add(A_PIPE | LEAVES, "a pipe", "");
    add(A_LINK | LATER, "a link", "");
    add(A_PIPE | LATER, "another pipe", "");
    finish();
    add(A_FILE | STAYS, "nobody", NONE);
    add(A_FILE | LATER, "nothing", "");
    add(A_FILE | LEAVES, "short", "curve\n    public-key = \"abc\"\n");
    finish();
}
