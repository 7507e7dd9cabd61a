/* SPDX-License-Identifier: MIT */
/* Any bytes as a CURVE certificate: either both keys are keys, the secret one perhaps missing, or there is a
 * reason on one line and nothing was touched. */

#include "tests/fuzz/driver.h"

#include <stdlib.h>
#include <string.h>

#include "common/files/certificate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct certificate certificate = {.public_key = "untouched", .secret_key = "untouched"};
    struct error err = {0};
    if (certificate_parse(data, len, "input", &certificate, &err) == 0) {
        if (!certificate_is_key(certificate.public_key) ||
            (certificate.secret_key[0] && !certificate_is_key(certificate.secret_key)))
            abort();
    } else if (strcmp(certificate.public_key, "untouched") != 0 ||
               strcmp(certificate.secret_key, "untouched") != 0 || !err.text[0] || strchr(err.text, '\n')) {
        abort();
    }
    return 0;
}
