"""The application that the workers of these tests run: each task is one way a task can behave."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tenure import Budgets, Continue, Ctx, Done, Permanent, Retry, RetryAfter, Skip, Tenure

app = Tenure()
quick = Retry(3, delay="10ms", cap="20ms")
SECRET = "the shop's own secret"
app.mask(SECRET)


def write(path: str, *words: object) -> None:
    with Path(path).open("a") as file:
        file.write(" ".join(map(str, words)) + "\n")


@app.task("noop")
def noop() -> None: ...


@app.task("echo")
def echo(value: Any) -> Any:
    return value


@app.task("calls")
def calls(ctx: Ctx) -> str:
    """Note what is asked and answered, and make another job."""
    ctx.note(request="POST /orders", response={"status": 201})
    return echo.enqueue(ctx.trace).id


@app.task("mark")
def mark(ctx: Ctx, path: str) -> None:
    write(path, ctx.job_id, ctx.fence, ctx.attempt, os.getpid())


@app.task("nap", timeout="20s")
def nap(ctx: Ctx, path: str, seconds: float) -> str:
    write(path, ctx.fence, os.getpid())
    time.sleep(seconds)
    write(path, "woke")
    return "rested"


@app.task("other.pool", pool="outbound")
def other_pool() -> str:
    return "outbound"


@app.task("async")
async def coroutine(ctx: Ctx, seconds: float) -> int:
    left_behind = asyncio.create_task(asyncio.sleep(60))
    await asyncio.sleep(seconds)
    assert not left_behind.done()
    return ctx.attempt


@app.task("raises", retry=quick)
def raises(text: str) -> None:
    raise ValueError(text)


class NoSuchCustomer(LookupError): ...


@app.task("picky", retry=Retry(3, permanent=(LookupError,)), aliases=("old.picky",))
def picky(kind: str) -> str:
    match kind:
        case "listed":
            raise NoSuchCustomer("c7")
        case "said":
            raise Permanent("closed for good")
        case _:
            return kind


@app.task("skips")
def skips() -> None:
    raise Skip("nothing new")


@app.task("refused")
def refused() -> None:
    raise RetryAfter("1h", "come back later")


@app.task("large")
def large() -> bytes:
    return bytes(300_000)


@app.task("odd")
def odd() -> object:
    return object()


class Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class Unreadable(Exception, metaclass=Nameless):
    def __str__(self) -> str:
        raise SystemExit(7)

    __repr__ = __str__


@app.task("odd.error", retry=Retry(1))
def odd_error(kind: str) -> object:
    """Raises or returns what is hard to tell of."""
    match kind:
        case "half a character":
            raise RuntimeError("sur \udc80")
        case "unreadable":
            raise Unreadable
        case "reason":
            raise Skip(7)  # type: ignore[arg-type]
        case "delay":
            error = RetryAfter("1s")
            error.delay_ms = "soon"  # type: ignore[assignment]
            raise error
        case "cursor":
            return Continue("notadict")  # type: ignore[arg-type]
        case "unstorable cursor":
            return Continue({"at": [1, object()]})
        case _:
            return Continue({}, done=-1)


@app.background("interrupted", retry=quick)
def interrupted(ctx: Ctx, way: str) -> Continue | None:
    """Fails once in its second chunk, or after a checkpoint."""
    if ctx.attempt == 2:
        return None
    if way == "chunk":
        if ctx.chunk == 1:
            os._exit(1)
        return Continue({"at": 40}, done=40, total=100)
    ctx.checkpoint({"at": 1}, message="no counts" * 200)
    raise ValueError("once")


@app.task("swallows", timeout="300ms", retry=Retry(1))
def swallows(path: str) -> None:
    write(path, os.getpid())
    while True:
        try:
            time.sleep(60)
        except BaseException:
            write(path, "told")


@app.task("polite", timeout="300ms", retry=Retry(1))
def polite() -> None:
    time.sleep(60)


@app.task("polite.async", timeout="300ms", retry=Retry(1))
async def polite_async() -> None:
    await asyncio.sleep(60)


@app.task("holds.gil", timeout="300ms", retry=Retry(1))
def holds_gil(path: str) -> None:
    write(path, os.getpid())
    sum(range(10**12))


@app.task("segfault")
def segfault() -> None:
    ctypes.string_at(0)


@app.task("overflow")
def overflow() -> None:
    """Recursion through C, which no limit of Python's stops in time."""
    sys.setrecursionlimit(1 << 30)

    @ctypes.CFUNCTYPE(None)
    def again() -> None:
        again()

    again()


@app.task("hog", retry=Retry(1))
def hog() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, hard))
    try:
        bytearray(1 << 32)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@app.task("exit")
def exits(code: int) -> None:
    os._exit(code)


@app.task("exit.once")
def exits_once(ctx: Ctx) -> str:
    if ctx.attempt == 1:
        os._exit(1)
    return "second try"


@app.task("grandchild")
def grandchild(path: str) -> None:
    """Leaves behind a process that holds all the pipes of its parent."""
    if os.fork() == 0:
        write(path, os.getpid())
        time.sleep(600)
    while not (Path(path).exists() and Path(path).read_text()):
        time.sleep(0.001)
    os._exit(9)


@app.task("starts.process")
def starts_process(path: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    write(path, os.getpid(), child.pid)
    time.sleep(600)


@app.background("chunks")
def chunks(ctx: Ctx, path: str, last: int) -> Continue | Done[int]:
    seen = ctx.cursor.get("seen", 0) + 1
    write(path, ctx.chunk, ctx.fence, ctx.attempt)
    return (
        Done(seen)
        if seen == last
        else Continue({"seen": seen}, done=seen, total=last, message=f"chunk {seen}")
    )


@app.background("steps", pausable=True)
def steps(ctx: Ctx, path: str, last: int) -> Continue | Done[int]:
    """A chunk for each step, which waits for a file that lets it go on."""
    seen = ctx.cursor.get("seen", 0)
    write(path, "step", seen, ctx.attempt)
    try:
        while not Path(f"{path}.{seen}").exists():
            ctx.check()
            time.sleep(0.005)
    except Exception as exc:
        write(path, type(exc).__name__)
        raise
    return Done(seen) if seen == last else Continue({"seen": seen + 1}, done=seen + 1, total=last)


@app.background("checkpoints", retry=quick)
def checkpoints(ctx: Ctx, path: str) -> int:
    seen = ctx.cursor.get("seen", 0)
    write(path, "from", seen)
    for at in range(seen, 4):
        ctx.checkpoint({"seen": at + 1}, done=at + 1, total=4, message=f"at {at + 1}")
        if at == 1 and ctx.attempt == 1:
            os._exit(1)
    return int(ctx.cursor["seen"])


@app.background("reports")
def reports(ctx: Ctx, path: str, rounds: int) -> None:
    for at in range(rounds):
        ctx.report(doing=at + 1, total=rounds, message=f"row {at + 1}", log=f"line {at + 1}")
    write(path, os.getpid())
    while not Path(path + ".go").exists():
        time.sleep(0.005)


@app.background("talks", unit="rows", retry=Retry(1))
def talks(ctx: Ctx, token: str) -> None:
    """Shows secrets wherever it can: the application's, its own, and one by its name."""
    ctx.mask(token)
    for at in range(3):
        ctx.stage(f"stage {at} {token}")
        ctx.warn(f"{token} or {SECRET}, password=tiger99")
    ctx.report(message=f"{token} {SECRET}")
    raise ValueError(f"{token} {SECRET}: refused")


@app.background("spills", retry=Retry(1))
def spills(ctx: Ctx, password: str) -> None:
    """Shows an argument of its own whose name says that it is a secret."""
    ctx.report(message=f"as {password}", log=f"as {password}")
    raise ValueError(f"{password}: refused by postgresql://u:pw@db/x")


@app.background("spills.beside", retry=Retry(1))
async def spills_beside(ctx: Ctx, password: str) -> None:
    spills(ctx, password)


@app.background("tracks", retry=quick)
def tracks(ctx: Ctx, path: str, last: int) -> int:
    """An item is written when its chunk has ended; the process dies once, in the middle of a chunk."""
    done: list[int] = []
    for row in ctx.track(range(last), every="20ms"):
        time.sleep(0.003)
        done.append(row)
        if row == last // 2 and ctx.attempt == 1:
            os._exit(1)
    write(path, *done)
    return last


@app.background("slow.chunk", retry=Retry(1), budgets=Budgets(time="300ms"), timeout="60s")
def slow_chunk(way: str) -> None:
    """Works for longer than its budget allows, and may not let itself be told."""
    while True:
        try:
            time.sleep(60)
        except BaseException:
            if way == "told":
                raise


@app.background("slow.beside", retry=Retry(1), budgets=Budgets(time="300ms"), timeout="60s", pool="io")
async def slow_beside() -> None:
    await asyncio.sleep(60)


@app.background("greedy", retry=Retry(1), budgets=Budgets(memory="200MB"), timeout="60s")
def greedy(way: str) -> int:
    """Takes more memory than its budget allows: for a moment, or until it is told to stop, or killed."""
    taken = b"x" * 300_000_000
    if way == "moment":
        return len(taken)
    while True:
        try:
            time.sleep(60)
        except BaseException:
            if way == "told":
                raise


@app.background("frugal", budgets=Budgets(memory="200MB"))
def frugal() -> None: ...


@app.background("frugal.beside", budgets=Budgets(memory="200MB"), pool="io")
async def frugal_beside() -> None: ...


@app.task("greedy.beside", pool="io")
async def greedy_beside(path: str) -> None:
    """Holds much memory in its lane until the file is there."""
    taken = b"x" * 300_000_000
    write(path, len(taken))
    await until(path + ".go")


@app.background("grows", retry=Retry(1), budgets=Budgets(tree=200))
def grows(path: str) -> None:
    """Makes two jobs that run side by side: one counts 150 steps, then the other 100."""
    for first in (True, False):
        counts.enqueue(path, first)


@app.background("nests", retry=Retry(1), budgets=Budgets(tree=30))
def nests(ctx: Ctx, levels: int) -> None:
    """Counts ten steps, and so does each of as many jobs below it, one below the other."""
    ctx.step(10)
    if levels:
        nests.enqueue(levels - 1)


@app.background("makes")
def makes(task: str) -> str:
    """Makes a job that crosses its budget."""
    return {"slow.chunk": slow_chunk, "greedy": greedy}[task].enqueue("deaf").id


@app.task("counts", retry=Retry(1))
def counts(ctx: Ctx, path: str, first: bool) -> None:
    write(path, "here")
    while len(Path(path).read_text().split()) < (2 if first else 3):
        time.sleep(0.005)
    for _ in range(150 if first else 100):
        ctx.step()
        time.sleep(0 if first else 0.02)
    write(path, "counted")


@app.task("checks", timeout="60s")
def checks(ctx: Ctx, path: str) -> None:
    write(path, "started", os.getpid())
    try:
        while True:
            ctx.check()
            time.sleep(0.005)
    except Exception as exc:
        write(path, type(exc).__name__)
        raise


@app.task("deaf", timeout="60s")
def deaf(path: str) -> None:
    """Never asks whether it may go on, and lets itself be interrupted."""
    write(path, "started", os.getpid())
    try:
        time.sleep(600)
    except BaseException as exc:
        write(path, type(exc).__name__)
        raise


@app.task("forks")
def forks() -> str:
    """Comes to its end in two processes."""
    return "child" if os.fork() == 0 else "parent"


@app.task("burns")
def burns(seconds: float) -> None:
    """Holds the GIL in C for a tenth of a second at a time, and never lets go of its CPU."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(4_000_000))


# Coroutines that run side by side. Another process that looks at the files sees who was there, and when.

app.pool("io", lane="async(20)", slots=1)


async def until(path: str) -> None:
    while not Path(path).exists():
        await asyncio.sleep(0.005)


@app.task("meets", pool="io", timeout="30s")
async def meets(path: str, company: int) -> int:
    """Ends when so many of its kind have begun."""
    write(path, os.getpid())
    while len(Path(path).read_text().split()) < company:
        await asyncio.sleep(0.005)
    return os.getpid()


@app.task("mark.beside", pool="io")
async def mark_beside(ctx: Ctx, path: str) -> None:
    await asyncio.sleep(0)
    mark(ctx, path)


@app.task("nap.beside", pool="io", timeout="20s")
async def nap_beside(ctx: Ctx, path: str, seconds: float) -> None:
    write(path, ctx.fence, os.getpid())
    await asyncio.sleep(seconds)


@app.task("waits", pool="io", timeout="60s")
async def waits(ctx: Ctx, path: str) -> int:
    """Ends when the file `path.go` is there."""
    write(path, ctx.job_id, "began", os.getpid())
    try:
        await until(path + ".go")
    except BaseException as exc:
        write(path, ctx.job_id, type(exc).__name__, ctx.lost)
        raise
    write(path, ctx.job_id, "ended", os.getpid())
    return os.getpid()


@app.task("waits.blocking", pool="io", timeout="60s")
def waits_blocking(ctx: Ctx, path: str) -> int:
    """The same as a plain function."""
    write(path, ctx.job_id, "began", os.getpid())
    while not Path(path + ".go").exists():
        time.sleep(0.005)
    write(path, ctx.job_id, "ended", os.getpid())
    return os.getpid()


@app.task("stays", pool="io", timeout="60s", retry=quick)
async def stays(ctx: Ctx, path: str) -> None:
    """Cannot be told to stop."""
    write(path, ctx.job_id, "began", os.getpid())
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            write(path, ctx.job_id, "told")


@app.task("leaves.stubborn", pool="io", timeout="60s", retry=quick)
async def leaves_stubborn(ctx: Ctx, path: str) -> None:
    """Comes to its end, and leaves something behind that does not."""

    async def left_behind() -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                write(path, ctx.job_id, "told")

    task = asyncio.create_task(left_behind())
    write(path, ctx.job_id, "began", os.getpid())
    await asyncio.sleep(0.01)
    assert not task.done()


@app.task("spins", pool="io", timeout="60s")
async def spins(ctx: Ctx, path: str) -> None:
    """Is always at work, and blocks nobody for long."""
    write(path, ctx.job_id, "began", os.getpid())
    while not Path(path + ".go").exists():
        time.sleep(0.02)
        await asyncio.sleep(0)


@app.task("blocks", pool="io", timeout="60s", retry=quick)
async def blocks(ctx: Ctx, path: str, seconds: float) -> None:
    """Holds the event loop."""
    write(path, ctx.job_id, "began", os.getpid())
    time.sleep(seconds)


@app.task("ends.process", pool="io")
async def ends_process(ctx: Ctx, path: str) -> None:
    write(path, ctx.job_id, "began", os.getpid())
    await until(path + ".die")
    os._exit(7)


@app.task("exits", pool="io", retry=Retry(1))
async def exits_beside(inner: bool) -> None:
    async def leave() -> None:
        sys.exit(3)

    if inner:
        await asyncio.create_task(leave())
    await leave()


@app.task("forks.beside", pool="io")
async def forks_beside(path: str) -> str:
    return "child" if os.fork() == 0 else "parent"


seen_by_job: contextvars.ContextVar[str] = contextvars.ContextVar("seen_by_job", default="")


@app.task("starts.others", pool="io")
async def starts_others(ctx: Ctx, path: str) -> str:
    """Leaves a task behind that never ends by itself; it is over when the job is."""

    async def left_behind() -> None:
        try:
            await asyncio.sleep(600)
        finally:
            write(path, ctx.job_id, "left", seen_by_job.get() == ctx.job_id)

    before = seen_by_job.get()
    seen_by_job.set(ctx.job_id)
    task = asyncio.create_task(left_behind())
    await asyncio.sleep(0)
    assert not task.done()
    return before


@app.background("counts.beside", pool="io", retry=quick)
async def counts_beside(ctx: Ctx, to: int, other_way: bool = False) -> int:
    for at in range(ctx.cursor.get("at", 0), to):
        ctx.report(doing=at, message=f"at {at}")
        if other_way:
            ctx.checkpoint({"at": at + 1}, done=at + 1, total=to)
        else:
            await ctx.acheckpoint({"at": at + 1}, done=at + 1, total=to)
    return int(ctx.cursor["at"])


@app.task("size.beside", pool="io")
async def size_beside(data: str) -> int:
    return len(data)
