# SPDX-License-Identifier: MIT
"""The parameters of a request in the documentation of what takes them, from the table that has them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from . import _tables

Function = TypeVar("Function", bound=Callable[..., Any])


def documented(function: Function) -> Function:
    """Adds the parameters to the docstring, and names them in the signature that `help` and others show."""
    fields = _tables.KINDS["generate"].by_key
    known = _tables.Parameters.__annotations__
    lines = ["", "", "Parameters, all optional:", ""]
    for name in known:
        field = fields[name]
        text = "seconds to live on without a session; 0: ends with it" if name == "keep_s" else field.help
        sampled = field.optional and name not in ("seed", "thinking_budget")
        default = f" (default: the pool's or the model's, else {field.initial:g})" if sampled else ""
        lines.append(f"    {name}: {text}{default}")
    function.__doc__ = inspect.cleandoc(function.__doc__ or "") + "\n".join(lines)
    signature = inspect.signature(function)
    kept = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    added = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=str(type_))
             for name, type_ in known.items()]  # fmt: skip
    function.__signature__ = signature.replace(parameters=kept + added)  # type: ignore[attr-defined]
    return function
