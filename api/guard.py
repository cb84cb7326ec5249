"""Who may come in, and what every answer tells a browser. Without credentials only this machine is served.

A page of another site that the user has open could still call us, through a name it points at this machine (DNS
rebinding) or a form it sends here (CSRF): so the Host must be a loopback name, and the Origin of a change must be it.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address, ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..scripts.errors import TenureError
from .problems import problem
from .refusals import CrossOrigin, LoopbackOnly, WrongHost

SAFE = ("GET", "HEAD", "OPTIONS")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::([0-9]{1,5}))?")
_PORTS = {"http": "80", "https": "443"}

ANSWER_HEADERS = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


class Guard:
    """Refuses whoever is not from this machine, and puts the headers for browsers on every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        with_headers = _with_headers(send)
        try:
            check(scope)
        except TenureError as exc:
            await problem(exc)(scope, receive, with_headers)
            return
        await self.app(scope, receive, with_headers)


class AnswerHeaders:
    """Puts the headers for browsers on every answer, and refuses nobody: who may come in is known elsewhere."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, _with_headers(send) if scope["type"] == "http" else send)


def _with_headers(send: Send) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in ANSWER_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return with_headers


def check(scope: Scope) -> None:
    """Return if the request may come in. Raises LoopbackOnly, WrongHost or CrossOrigin."""
    headers = Headers(scope=scope)
    _check_client(scope.get("client"), headers)
    hosts = headers.getlist("host")
    host = hosts[0] if len(hosts) == 1 else ""
    if not is_loopback(_host(host)[0]):
        raise WrongHost(
            f"the request is for host {host!r:.80}; without credentials it must be this machine",
            hint="call it as http://localhost or http://127.0.0.1",
        )
    for origin in headers.getlist("origin"):
        if scope["method"] not in SAFE and not _same(origin, scope["scheme"], host):
            raise CrossOrigin(
                f"a page of {origin!r:.80} asks for a change at {host!r:.80}",
                hint="only pages served from here may; leave the header Origin out in scripts",
            )


def _check_client(client: tuple[str, int] | None, headers: Headers) -> None:
    """The peer, and whoever a proxy says it speaks for: a proxy on this machine must not open it to the world."""
    speaks_for = [
        part.strip()
        for line in headers.getlist("x-forwarded-for")
        for part in line.split(",")
        if part.strip()
    ]
    unreadable = [name for name in ("forwarded", "x-real-ip") if name in headers]
    for address in [client[0] if client else "an unknown address", *speaks_for, *unreadable]:
        if not is_loopback_address(address):
            raise LoopbackOnly(
                f"a request from {address!r:.60} was refused: without credentials only this machine is served",
                hint="call it from the machine it runs on, for example through ssh -L",
            )


def is_loopback(name: str) -> bool:
    """Whether a host name means this machine. Names under `.localhost` never leave it (RFC 6761)."""
    return name == "localhost" or name.endswith(".localhost") or is_loopback_address(name.strip("[]"))


def is_loopback_address(text: str) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def _host(host: str) -> tuple[str, str]:
    """The name and the port of a Host header; an empty name for what is none."""
    found = _HOST.fullmatch(host.lower())
    return (found[1], found[2] or "") if found else ("", "")


def _same(origin: str, scheme: str, host: str) -> bool:
    found = re.fullmatch(r"(https?)://(.+)", origin.lower())
    if not found or found[1] != scheme:
        return False
    name, port = _host(found[2])
    wanted_name, wanted_port = _host(host)
    usual = _PORTS[scheme]
    return bool(name) and (name, port or usual) == (wanted_name, wanted_port or usual)
