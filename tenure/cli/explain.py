"""`tenure explain CODE`: what a code in an error, a job or an attempt means, and what to do."""

from __future__ import annotations

import re
from dataclasses import asdict
from difflib import get_close_matches

import click

from ..scripts.errors import BadInput
from .codes import Explanation, explanations
from .options import output_option
from .output import print_fields, print_json, print_table


@click.command()
@click.argument("code", required=False)
@output_option
def explain(code: str | None, as_json: bool) -> None:
    """Say what CODE means and what to do; without CODE, list all.

    CODE is an error's (LEASE_LOST), the reason why a job is dead (attempts_exhausted) or the cause of an attempt's
    end (timeout).
    """
    if code is not None:
        fields = asdict(_find(code))
        print_json(fields) if as_json else print_fields(fields.items())
    elif as_json:
        print_json([asdict(one) for one in explanations()])
    else:
        print_table(("CODE", "KIND", "MEANS"), [(one.code, one.kind, one.means) for one in explanations()])


def _find(code: str) -> Explanation:
    """The code as written, else in any other form: `LeaseLost`, `lease-lost`."""
    table = explanations()
    for one in table:
        if one.code == code:
            return one
    forms = {_form(one.code): one for one in reversed(table)}  # an error goes before a cause of the same name
    found = forms.get(_form(code))
    if found:
        return found
    near = get_close_matches(_form(code), forms, 1)
    raise BadInput(
        f"code {code!r:.60} is not one of Tenure's",
        hint=f"tenure explain {forms[near[0]].code}" if near else "tenure explain",
    )


def _form(code: str) -> str:
    return re.sub(r"[^a-z]", "", code.lower())
