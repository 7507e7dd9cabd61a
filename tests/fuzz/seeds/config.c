/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_config: files as people write them, with every setting, quotes, comments and mistakes. */

#include <string.h>

#include "tests/fuzz/driver.h"

void fuzz_seeds(void)
{
    static const char *const seeds[] = {
        "# Two workers, reachable from other machines.\nmodel = /models/llama.gguf\nworkers = 2\n"
        "tcp = \"0.0.0.0:7700\"\ncurve-key = \"/etc/quern/quern.cert_secret\"\n"
        "client-keys = '/etc/quern/clients'\npublic-host = [::1]\n",
        "ctx = 4096\nslots = 8\nkv-blocks = 512\nkv-type = q8_0\nquantize = Q4_K_M\nthreads = 4\n"
        "cached-blocks = 0\nprefix-store = 64\nframe-us = 0\ndevice = cpu\ncublas = off\ninvariant = "
        "1\nhost-sampling = 1\n",
        "http = 127.0.0.1:8080\nhttp-keys = /k\nhttp-hosts = a,b\nhttp-tls-cert = c\nhttp-tls-key = "
        "k\nhttp-log = l\nhttp-otlp = u\nhttp-otlp-headers = h\n",
        "client-requests = 9\nclient-sessions = 9\nclient-tokens = 9\njournal = 16\nretention = 1\n"
        "drain-seconds = 0\nno-sandbox = 1\nowner = 1\nrundir = /tmp/q\nchat-template = t\n",
        "\xef\xbb\xbfsystem = \"You are # a 'helper'.\" # not read\r\n\r\n    workers=64\r\n\tctx\t=\t1\r\n",
        "tcp = *:1\ncurve-key = k\nany-client = 1\npublic-host = a.b-c_d\nsystem = -x = --y\n",
        "workers = 99999\n",
        "wrokers = 4\n",
        "model = \"x\nsystem = \"a\" b\n= 5\nsupervision-fd = 5\n",
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        fuzz_add_seed(seeds[i], strlen(seeds[i]));
}
