/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_secrets: each kind of file, for its owner alone and for others. */

#include "tests/fuzz/driver.h"

#include <string.h>

#define KEY   "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
#define OTHER "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"

void fuzz_seeds(void)
{
    static const char *const seeds[] = {
        KEY,
        "metadata\ncurve\n    public-key = \"" KEY "\"\n    secret-key = \"" OTHER "\"\n",
        "curve\n    public-key = \"" KEY "\"\n",
        "ada sk-0123456789abcdef requests=1 tokens=100\nbob sk-fedcba9876543210\n",
        "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA==\n-----END PRIVATE KEY-----\n",
        "",
    };
    char input[256];
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        for (char mode = 0; mode < 8; mode = (char)(mode ? mode * 2 : 1)) {
            input[0] = mode;
            strcpy(input + 1, seeds[i]);
            fuzz_add_seed(input, 1 + strlen(seeds[i]));
        }
}
