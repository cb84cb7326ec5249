"""A chain: all jobs of a trace as a tree, and the bundle that tells of them without their secrets."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest

from tenure import Ctx, Retry, Tenure
from tenure.api import bundle as bundles
from tenure.api.bundle import bundle
from tenure.lease import cursors
from tenure.lease.chain import chain
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail, Succeed
from tenure.lease.payload import pack_args
from tenure.lease.redaction import MASK, Redaction, is_secret_name
from tenure.lease.retention import Keep, Retention
from tenure.lease.tasks import Registry
from tenure.scripts.errors import BadInput, NotFound
from tenure.testing import START, InlineWorker

from .given import claim

NOWHERE = "01J00000000000000000000000"


def made_by(ledger: Ledger, parent: str, trace: str, task: str = "report") -> str:
    return ledger.enqueue(
        NewJob(task, fields={"trace": trace, "parent": parent, "source": "continuation"})
    ).id


def outline(ledger: Ledger, trace: str, **options: Any) -> list[tuple[str, int]]:
    return [(link.job.id, link.depth) for link in chain(ledger, trace, **options).links]


def test_a_chain_is_a_tree_in_the_order_its_jobs_were_made(ledger: Ledger) -> None:
    root = ledger.enqueue(NewJob("root")).id
    first, second = made_by(ledger.at(START + 1), root, root), made_by(ledger.at(START + 2), root, root)
    below = made_by(ledger.at(START + 3), first, root)
    ledger.enqueue(NewJob("another"))

    assert outline(ledger, root) == [(root, 0), (first, 1), (below, 2), (second, 1)]
    links = {link.job.id: link.children for link in chain(ledger, root).links}
    assert links == {root: [first, second], first: [below], second: [], below: []}


def test_a_job_that_made_nothing_is_a_chain_of_one(ledger: Ledger) -> None:
    alone = ledger.enqueue(NewJob("root")).id

    assert outline(ledger, alone) == [(alone, 0)]


def test_a_given_trace_has_as_many_tops_as_it_has_jobs_of_yours(ledger: Ledger) -> None:
    jobs = [ledger.enqueue(NewJob("a", fields={"trace": "order-7"})).id for _ in range(2)]

    assert outline(ledger, "order-7") == [(job, 0) for job in sorted(jobs)]


def test_what_a_job_that_has_gone_made_stands_at_the_top(ledger: Ledger) -> None:
    Retention(ledger).set({"succeeded": Keep(most=1)})
    root = ledger.enqueue(NewJob("root")).id
    child = made_by(ledger, root, root)
    lease = claim(ledger)
    ledger.settle(lease, Succeed())
    ledger.settle(claim(ledger), Succeed())
    ledger.reap()

    assert ledger.get_many([root]) == []
    assert outline(ledger, root) == [(child, 0)]
    assert chain(ledger, root).jobs[0].parent == root


def test_a_trace_in_another_tenant_is_another_part_of_it(app: Tenure, worker: InlineWorker) -> None:
    @app.task("leaf")
    def leaf() -> None: ...

    @app.task("outer")
    def outer() -> None:
        leaf.using(tenant="acme").enqueue()

    root = outer.enqueue()
    worker.run()

    assert [job.task for job in app.jobs.chain(root.id).jobs] == ["outer"]
    (there,) = app.jobs.chain(root.id, tenant="acme").jobs
    assert (there.task, there.parent) == ("leaf", root.id)


def test_an_unknown_trace_is_not_found_and_an_impossible_one_refused(ledger: Ledger) -> None:
    child = made_by(ledger, "01J00000000000000000000000", "order-7")

    for trace in ("nobody", child, "01J00000000000000000000000"):
        with pytest.raises(NotFound, match="no job of trace"):
            chain(ledger, trace)
    with pytest.raises(BadInput, match="is not allowed"):
        chain(ledger, "a/b")
    for limit in (0, 1_001):
        with pytest.raises(BadInput, match="limit"):
            chain(ledger, "order-7", limit=limit)
    of = ("chain", "acme", "order-7")
    odd = [
        cursors.write(place, of)
        for place in ("", "1:x", f"-1:{NOWHERE}", f"{1 << 53}:{NOWHERE}", f"x:{NOWHERE}")
    ]
    for cursor in ("x", "!!", "MTox", "LTE6MDFKMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw", *odd):
        with pytest.raises(BadInput, match="not one this list gave"):
            chain(ledger, "order-7", cursor=cursor)
    for others in (("chain", "other", "order-7"), ("chain", "acme", "order-8")):
        with pytest.raises(BadInput, match="is of another list"):
            chain(ledger, "order-7", cursor=cursors.write(f"1:{NOWHERE}", others))
    assert chain(ledger, "order-7", cursor=cursors.write(f"1:{NOWHERE}", of)).jobs


def test_a_long_chain_comes_in_parts_that_neither_skip_nor_repeat(ledger: Ledger) -> None:
    """Some were made in the same millisecond; each has made the next, so the tree is as deep as the chain is long."""
    root = last = ledger.enqueue(NewJob("root")).id
    made = [root]
    for at in range(60):
        last = made_by(ledger.at(START + at // 7), last, root)
        made.append(last)

    seen: list[str] = []
    cursor = None
    while True:
        part = chain(ledger, root, limit=13, cursor=cursor)
        seen += [job.id for job in part.jobs]
        ledger.cancel(seen[-1])
        cursor = part.next_cursor
        if cursor is None:
            break

    assert seen == made
    assert [depth for _, depth in outline(ledger, root)] == list(range(61))


# -- the bundle --------------------------------------------------------------------------------------------------------

SECRETS = {
    "positional": "hunter2-positional",
    "named": "s3cr3t-named",
    "nested": "t0k3n-nested",
    "number": 998877665544,
    "result": "key-of-the-result",
    "note": "Bearer abcdefghijklmnop",
    "url": "pa55-of-the-url",
    "error": "q-in-the-error",
}


def fail_with_secrets(app: Tenure, worker: InlineWorker) -> str:
    """A job that has secrets wherever one can be, and one below it."""

    @app.task("charge", retry=Retry(1))
    def charge(ctx: Ctx, customer: str, password: str, options: dict[str, Any], *, api_key: str) -> None:
        ctx.note(
            request=f"POST / Authorization: {SECRETS['note']}", response=f"token={options['auth']['token']}"
        )
        result.enqueue(customer)
        raise ValueError(
            f"{customer} with {password}, {api_key}, password={SECRETS['error']}, {options['pin']['secret']}"
        )

    @app.task("result")
    def result(customer: str) -> dict[str, Any]:
        return {
            "customer": customer,
            "secret": SECRETS["result"],
            "at": f"postgres://shop:{SECRETS['url']}@db/shop",
        }

    options = {
        "auth": {"token": SECRETS["nested"]},
        "pin": {"secret": SECRETS["number"]},
        "shown": [1, b"\x00"],
    }
    job = charge.enqueue("ada", str(SECRETS["positional"]), options, api_key=str(SECRETS["named"]))
    worker.run()
    return job.id


def entries(data: bytes) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


def test_a_bundle_tells_everything_but_the_secrets(app: Tenure, worker: InlineWorker) -> None:
    job_id = fail_with_secrets(app, worker)

    found = entries(bundle(app.jobs.chain(job_id), app.registry, app.about()))

    assert [name.rpartition("-")[0] for name in found][4:] == ["jobs/0001", "jobs/0002"]
    assert list(found)[:4] == ["manifest.json", "versions.json", "settings.json", "chain.json"]
    everything = json.dumps(found, ensure_ascii=False)
    assert [name for name, secret in SECRETS.items() if str(secret) in everything] == []
    charge = next(job for name, job in found.items() if job_id in name and name.startswith("jobs/"))
    assert charge["args"] == [
        {"customer": "ada"},
        {"password": MASK},
        {"options": {"auth": {"token": MASK}, "pin": {"secret": MASK}, "shown": [1, {"base64": "AA=="}]}},
    ]
    (attempt,) = charge["attemptList"]
    assert attempt["error"]["message"].startswith(f"ada with {MASK}, {MASK}, password={MASK}, {MASK}")
    assert "raise ValueError" in attempt["stack"]
    assert (
        attempt["request"] == f"POST / Authorization: {MASK} {MASK}" or "Authorization" in attempt["request"]
    )
    assert charge["why"]["verdict"] == "state_dead"
    assert found["manifest.json"]["jobs"] == 2
    assert found["versions.json"]["durability"] == app.store.facts.durability


def test_arguments_of_an_unknown_task_are_masked_where_their_names_are_not_known(
    app: Tenure, worker: InlineWorker
) -> None:
    job_id = fail_with_secrets(app, worker)

    found = entries(bundle(app.jobs.chain(job_id), Registry(), {}))

    charge = next(job for name, job in found.items() if job_id in name and name.startswith("jobs/"))
    assert (charge["args"], charge["kwargs"]) == ([MASK] * 3, {"api_key": MASK})
    everything = json.dumps(found, ensure_ascii=False)
    assert [name for name, secret in SECRETS.items() if str(secret) in everything] == []


def test_the_same_chain_makes_the_same_bytes(app: Tenure, worker: InlineWorker) -> None:
    job_id = fail_with_secrets(app, worker)

    one, other = (bundle(app.jobs.chain(job_id), app.registry, app.about()) for _ in range(2))

    assert one == other


def test_a_bundle_has_a_bound_and_names_what_it_left_out(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "MOST_BYTES", 12_000)
    root = ledger.enqueue(NewJob("root")).id
    for _ in range(9):
        made_by(ledger, root, root)

    found = entries(bundle(chain(ledger, root), Registry(), {}))

    omitted = found["manifest.json"]["omitted"]
    assert 1 < len(omitted) < 10
    assert not set(omitted) & set(found)
    assert len(found) + len(omitted) == 2 + 10


def test_long_values_and_many_attempts_are_cut(ledger: Ledger) -> None:
    fields = {"max_attempts": "100"}
    root = ledger.enqueue(
        NewJob("root", pack_args([], {"rows": list(range(999)), "text": "x" * 99_000}), fields=fields)
    ).id
    for at in range(40):
        moment = ledger.at(START + at * 10)
        moment.settle(claim(moment), Fail(f"no {at}"))

    (job,) = [
        job for name, job in entries(bundle(chain(ledger, root), Registry(), {})).items() if "jobs/" in name
    ]

    assert job["kwargs"]["rows"][-1] == "… 799 more"
    assert job["kwargs"]["text"].endswith("… (99,000 characters)")
    assert (len(job["attemptList"]), job["attemptsLeftOut"]) == (25, 15)
    assert job["attemptList"][-1]["error"]["message"] == "no 39"


# -- what is a secret --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "X-Api-Key",
        "accessToken",
        "client_secret",
        "AUTHORIZATION",
        "db.passwd",
        "privateKey",
        "Cookie",
    ],
)
def test_names_of_secrets_are_known_in_every_spelling(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["customer", "key", "api", "idempotencyKey", "author", "pass", "", "keys", "access"]
)
def test_other_names_are_not(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("password=hunter2 and more", f"password={MASK} and more"),
        ("{'api_key': 'k-1', 'a': 1}", f"{{'api_key': {MASK}, 'a': 1}}"),
        ('"client_secret" : "a b c", x', f'"client_secret" : {MASK}, x'),
        ("X-Api-Key: zzz", f"X-Api-Key: {MASK}"),
        ("curl -H 'Authorization: Bearer abcdef12'", f"curl -H 'Authorization: {MASK} {MASK}'"),
        ("redis://:pw@host:6379/0", f"redis://:{MASK}@host:6379/0"),
        ("see eyJhbGciOi.eyJzdWIiOj.c2ln here", f"see {MASK} here"),
        ("ghp_abcdefghijklmnop1234 AKIAABCDEFGHIJKLMNOP", f"{MASK} {MASK}"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", MASK),
        ("the token of our esteem; a secret garden", "the token of our esteem; a secret garden"),
    ],
)
def test_what_looks_like_a_secret_is_masked(text: str, masked: str) -> None:
    assert Redaction().text(text) == masked


def test_a_value_that_was_masked_by_its_name_is_masked_wherever_it_comes_again() -> None:
    redaction = Redaction()
    redaction.learn(
        {
            "login": {"password": ["first-one", {"deep": "second-one"}], "user": "ada"},
            "pin_token": 123456,
        }
    )

    assert redaction.masked({"why": "first-one/second-one of ada", "n": 123456, "m": 123457}) == {
        "why": f"{MASK}/{MASK} of ada",
        "n": MASK,
        "m": 123457,
    }
    assert redaction.masked({"first-one": 1, "b": b"x second-one"}) == {MASK: 1, "b": MASK}


def test_short_values_are_no_secrets_elsewhere() -> None:
    redaction = Redaction()
    redaction.learn({"token": "abc", "secret": True, "password": None})

    assert redaction.masked(["abcdef", True, None]) == ["abcdef", True, None]
