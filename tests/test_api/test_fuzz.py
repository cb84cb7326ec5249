"""Odd requests by the hundred: never a 5xx, never a traceback, always a problem that can be read."""

from __future__ import annotations

import json
import os
from random import Random
from typing import Any

from starlette.testclient import TestClient

CASES = int(os.environ.get("TENURE_API_FUZZ", "400"))
SEED = int(os.environ.get("TENURE_API_SEED", "20261201"))

ODD_TEXT = [
    *("", "x", "default", "orders.sync", "reports.daily", "pending", "@daily", "* * * * *", "0 0 2 * * ?"),
    *(
        "\0",
        "\x1b[31m",
        "\r\n",
        "\u202e",
        "{x}",
        "}{",
        ":",
        "*",
        "../..",
        "<script>",
        "'; DROP",
        "%00",
        "日本",
        "🚀",
    ),
    *("a" * 300, "9" * 400, "-1", "1e999", "NaN", "true", "null", "\ud800", "\uffff", "T" * 70_000),
]
ODD: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2**63 - 1,
        2**63,
        -(2**63),
        10**40,
        0.1,
        1e308,
        float("nan"),
        float("inf"),
    ),
    *([], {}, [[]], [{}], {"": ""}, {"a": {"b": [None]}}),
    *ODD_TEXT,
]
NAMES = [
    *(
        "task",
        "args",
        "kwargs",
        "tenant",
        "idempotencyKey",
        "idempotencyFields",
        "reason",
        "record",
        "binding",
    ),
    *(
        "triggers",
        "misfire",
        "overlap",
        "enabled",
        "runAt",
        "after",
        "priority",
        "generation",
        "revision",
        "force",
        "flow",
        "cron",
        "tz",
        "dst",
        "name",
        "every",
        "x",
        "",
        "\0",
        "TASK",
    ),
]
PATHS = [
    *(
        "/background-tasks",
        "/schedules/{}",
        "/background-tasks/{}/cancel",
        "/background-tasks/{}",
        "/jobs/{}",
        "/jobs/{}/why",
        "/jobs/{}/retry",
        "/jobs/{}/skip",
        "/jobs/{}/cancel",
        "/jobs/{}/reschedule",
        "/instances/{}",
        "/instances/{}/why",
        "/instances/{}/pause",
        "/instances/{}/resume",
        "/instances/{}/end",
    ),
    *(
        "/jobs",
        "/tasks",
        "/workers",
        "/jobs/summary",
        "/jobs/runtime-status",
        "/schedules",
        "/schedules/{}/next",
        "/schedules/{}/fires",
        "/background-tasks/{}/events",
    ),
    *("/readyz", "/livez", "/{}"),
]
QUERY = ["tenant", "limit", "cursor", "status", "task", "trigger", "count", "x"]


def value(random: Random, depth: int = 0) -> Any:
    if depth > 4 or random.random() < 0.6:
        return random.choice(ODD)
    if random.random() < 0.5:
        return [value(random, depth + 1) for _ in range(random.randrange(4))]
    return {
        random.choice(NAMES + ODD_TEXT[:20]): value(random, depth + 1) for _ in range(random.randrange(4))
    }


def body(random: Random) -> bytes:
    """A nearly right body, an odd one, or a damaged one."""
    content: dict[str, Any] = {"task": random.choice(["orders.sync", "reports.daily"])}
    if random.random() < 0.5:
        content["triggers"] = [{"cron": random.choice(["@daily", "0 0 2 * * ?"]), "x": value(random)}]
    for _ in range(random.randrange(4)):
        content[random.choice(NAMES)] = value(random)
    raw = json.dumps(content if random.random() < 0.8 else value(random), ensure_ascii=random.random() < 0.5)
    damaged = bytearray(raw.encode("utf-8", "surrogatepass"))
    for _ in range(random.choice([0, 0, 0, 1, 5])):
        if damaged:
            damaged[random.randrange(len(damaged))] = random.randrange(256)
    return bytes(damaged)


def headers(random: Random) -> list[tuple[bytes, bytes]]:
    found = [(b"content-type", b"application/json")]
    for name in (b"if-match", b"if-none-match", b"last-event-id", b"origin", b"content-encoding", b"x-odd"):
        if random.random() < 0.1:
            odd = random.choice(
                [b"", b"*", b'"1"', b"1", b"\xff\xfe", b"a" * 500, b"http://localhost", b"null"]
            )
            found.append((name, odd))
    return found


def test_no_odd_request_gets_a_5xx_or_a_traceback(client: TestClient) -> None:
    random = Random(SEED)
    for number in range(CASES):
        method = random.choice(["GET", "POST", "PUT", "POST", "PUT", "DELETE", "PATCH", "HEAD"])
        path = random.choice(PATHS).format(
            random.choice(["x", "a.b", "%00", "%F0%9F", "..", "a" * 500, "%2e%2e"])
        )
        query = [(random.choice(QUERY), random.choice(ODD_TEXT)[:2000]) for _ in range(random.randrange(3))]
        query = [(name, text.encode("utf-8", "replace").decode()) for name, text in query]
        content = body(random)

        answer = client.request(method, path, params=query, content=content, headers=headers(random))

        case = f"case {number} of seed {SEED}: {method} {path} {query} {content[:500]!r}"
        assert answer.status_code < 500, f"{case}\n{answer.text}"
        assert "Traceback" not in answer.text, case
        if answer.status_code >= 400 and method != "HEAD":
            assert answer.headers["content-type"] == "application/problem+json", case
            assert set(answer.json()) >= {"status", "code", "detail", "hint", "errors"}, case
        if answer.status_code == 200 and method != "HEAD":
            json.loads(answer.text)
