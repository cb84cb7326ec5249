"""What an error tells whoever reads it."""

from __future__ import annotations

import pickle
import traceback

from tenure.scripts.errors import BadInput, JobFailed


def test_a_plain_traceback_tells_the_next_step() -> None:
    shown = "".join(traceback.format_exception(BadInput("pool 'A' is not a pool name", hint="use 'advance'")))

    assert shown == "tenure.scripts.errors.BadInput: pool 'A' is not a pool name\nnext: use 'advance'\n"


def test_an_error_without_a_next_step_says_nothing_more() -> None:
    assert "".join(traceback.format_exception(JobFailed("job j1 is dead"))).count("\n") == 1


def test_an_error_keeps_its_next_step_on_its_way_to_another_process() -> None:
    sent = pickle.loads(pickle.dumps(BadInput("no", hint="use 'advance'")))

    assert (str(sent), sent.hint, sent.__notes__) == ("no", "use 'advance'", ["next: use 'advance'"])
