# SPDX-License-Identifier: MIT
"""The gateway's page in Chromium, before a pool with the demo model. scripts/check/page runs it.

    page [--screenshots DIR] --chromium FILE BUILD_FOLDER MODEL

An answer that is to last is one that repeats itself: greedy, with negative penalties. What follows are arguments of
unittest: a test by its name, as Chat.test_a_question_is_answered."""

import sys
import unittest

from attaching import Attaching  # noqa: F401
from calling import Calling  # noqa: F401
from chat import AskedForKeys, Chat  # noqa: F401
from continuing import Continuing, ContinuingByChoice  # noqa: F401
from support import rest
from watching import Gallery, ThePool  # noqa: F401
from writing import Writing  # noqa: F401

unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
