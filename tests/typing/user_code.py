"""A user's own code, as type checkers see it: nothing here runs. `test_typing.py` checks it with mypy and pyright.

Each `type: ignore[...]` is a mistake that a checker must find: mypy tells of one that is not needed.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import assert_type

from tenure import Continue, Ctx, Done, Retry, Skip, TaskCall, Tenure, TenureError
from tenure.handles import Job

app = Tenure()


@app.task("invoices.rebuild", retry=Retry(5), timeout="30m")
def rebuild(customer_id: int, deep: bool = False) -> int:
    return customer_id


@app.task("mail.send")
async def send(to: str) -> str:
    return to


@app.task("mail.digest")
async def digest(ctx: Ctx, to: str) -> str | None:
    return to


@app.cron("reports.daily", "0 0 2 ? * MON-FRI", tz="Asia/Shanghai", pool="outbound")
def daily(ctx: Ctx) -> None: ...


@app.background("orders.sync", startable=True, timeout="5m")
def sync(ctx: Ctx, shop: str) -> Continue | Done[int]:
    return Done(7) if shop else Continue({"after": 1}, done=1)


@app.background("orders.prune")
def prune(shop: str) -> Continue | Done[list[str]] | Skip:
    return Skip("nothing to do")


@app.background("orders.count")
async def count(ctx: Ctx) -> Done[int]:
    return Done(1)


@app.task("orders.check", pausable=True, cleared_on_end=True)
def check(order: int) -> bool | Skip:
    return True


def a_task_is_the_function_it_was(ctx: Ctx) -> None:
    assert_type(rebuild(3), int)
    assert_type(rebuild(customer_id=3, deep=True), int)
    assert_type(sync(ctx, "north"), Continue | Done[int])
    daily(ctx)
    rebuild("3")  # type: ignore[arg-type]
    daily()  # type: ignore[call-arg]


def a_job_has_the_result_of_its_task() -> None:
    assert_type(rebuild.enqueue(3), Job[int])
    assert_type(rebuild.enqueue(3).result(), int)
    assert_type(send.enqueue("ann").result(timeout="5s"), str)
    assert_type(digest.enqueue("ann").result(), str | None)
    assert_type(sync.enqueue("north").result(), int)
    assert_type(sync.enqueue(shop="north").result(), int)
    assert_type(prune.enqueue("north").result(), list[str])
    assert_type(count.enqueue().result(), int)
    assert_type(check.enqueue(1).result(), bool)
    rebuild.enqueue("3")  # type: ignore[arg-type]
    rebuild.enqueue()  # type: ignore[call-arg]
    sync.enqueue()  # type: ignore[call-overload]


async def async_code_has_it_too(ctx: Ctx) -> None:
    assert_type(await send("ann"), str)
    assert_type(await digest(ctx, to="ann"), str | None)
    job = await rebuild.aenqueue(3)
    assert_type(job, Job[int])
    assert_type(await job.aresult(timeout="5s"), int)
    assert_type(await (await sync.aenqueue("north")).aresult(), int)


def options_are_typed() -> None:
    urgent = rebuild.using(tenant="acme", priority=0, after="5m", idempotency_key="rebuild:7")
    assert_type(urgent.enqueue(3, deep=True).result(), int)
    assert_type(sync.using(at=datetime.now(UTC)).enqueue("north").result(), int)
    rebuild.using(tenant=5)  # type: ignore[arg-type]
    rebuild.using(at="tomorrow")  # type: ignore[arg-type]
    rebuild.using(tennant="acme")  # type: ignore[call-arg]


def calls_are_typed() -> None:
    assert_type(rebuild.call(3), TaskCall[int])
    assert_type(app.enqueue_many([rebuild.call(n) for n in range(3)]), list[Job[int] | TenureError])
    assert_type(sync.call("north"), TaskCall[int])


def mistakes_of_registration_are_found() -> None:
    app.task("a", retry=5)  # type: ignore[arg-type]
    app.background("b", startable="yes")  # type: ignore[arg-type]
    app.cron("c", "@daily", retries=3)  # type: ignore[call-arg]
    app.task(rebuild)  # type: ignore[arg-type]
    Tenure("redis://localhost")  # type: ignore[arg-type]


def jobs_take_each_others_place(jobs: list[Job[int]]) -> Job[object]:
    return jobs[0]
