# SPDX-License-Identifier: MIT
"""A request that outlives the program that sent it.

python examples/take_over.py [QUESTION]    prints a ticket and exits
python examples/take_over.py --take TICKET  prints the output, from its first token on

The ticket is the right to read the output: keep it secret."""

import sys

import quern

KEEP_S = 60

try:
    with quern.Client() as client:
        if sys.argv[1:2] == ["--take"]:
            session, request = (bytes.fromhex(part) for part in sys.argv[2].split("."))
            print(client.attach(request, session).text())
        else:
            question = sys.argv[1] if len(sys.argv) > 1 else "What is Quern?"
            stream = client.chat([{"role": "user", "content": question}], max_tokens=64, keep_s=KEEP_S)
            next(stream)  # the pool has it
            print(f"{client.session.hex()}.{stream.id.hex()}")
except quern.Error as error:
    sys.exit(f"{error.name}: {error}")
