"""Every key Tenure writes: its name, its Redis type, what it holds and who removes it. Used by Python and Lua
alike.

All keys of a tenant share the hash tag `{tenant}` and so one Cluster slot; the index over tenants has the tag
`{@}`, which no tenant slug can be. Client text stands only in the last place of a name, so a name reads back
unambiguously.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from string import Formatter

from .errors import BadInput

_TENANT = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


@dataclass(frozen=True, slots=True)
class Key:
    """One family of keys: `pattern` is what follows the tenant's prefix."""

    name: str
    pattern: str
    type: str
    holds: str
    gone: str

    @property
    def parts(self) -> list[str]:
        return [field for _, field, _, _ in Formatter().parse(self.pattern) if field]


TENANT_KEYS = (
    Key(
        "meta",
        "meta",
        "hash",
        "tenant clock, where it began, due times told, claim turns, how long jobs are kept, how many have gone, "
        "how far archivers are, cuts of lists, the last deletion of a schedule, the last revision of a calendar",
        "with the tenant",
    ),
    Key("counts", "n", "hash", "number of jobs by task and state", "fields at 0 are removed"),
    Key(
        "figures",
        "fig",
        "hash",
        "running and dead jobs by pool, jobs that try again after an error by task, last claims of both",
        "fields at 0 are removed; a task's last claim with its last job",
    ),
    Key(
        "minute",
        "hour:{slot}",
        "hash",
        "a minute of the last hour: waits by pool and bucket, ended attempts by task",
        "used again 61 minutes later; 62 minutes",
    ),
    Key("row", "j:{id}", "hash", "a job, its attempts packed in fields", "retention"),
    Key("blob", "b:{field}:{id}", "string", "a value of a job over 512 bytes", "with the row"),
    Key("history", "h:{id}", "list", "what people did to a job, the newest 100 times", "with the row"),
    Key("errors", "e:{id}", "hash", "by attempt: error summary, stack, request, response", "with the row"),
    Key(
        "queue",
        "q:{line}",
        "zset",
        "pending jobs by priority and run_at: of a pool, or of a task that a gate holds back there",
        "the claim",
    ),
    Key(
        "waiters",
        "k:{line}:{key}",
        "zset",
        "pending jobs of a concurrency key, in the order of their line",
        "the claim",
    ),
    Key(
        "pace",
        "kr:{key}",
        "string",
        "starts that count for the rate limit of a concurrency key",
        "its time to live",
    ),
    Key(
        "gates",
        "gates",
        "hash",
        "holds of the tenant, pools and tasks; rate limits of tasks; tasks that workers do not know",
        "release, who finds them over",
    ),
    Key("hidden", "hid:{pool}", "zset", "those of them that no line shows", "when they are shown"),
    Key(
        "share",
        "ks:{key}",
        "hash",
        "a concurrency key: its limits, how many heads each line shows",
        "with its last job",
    ),
    Key(
        "holders", "kh:{key}", "hash", "fence of each holder of a concurrency key to its job", "settle, reap"
    ),
    Key(
        "lingering",
        "linger",
        "zset",
        "holders whose job was taken from them, by the end of their lease",
        "settle, reap",
    ),
    Key(
        "starts",
        "start",
        "zset",
        "pending jobs that were never started and have a latest start, by it",
        "the claim, reap, cancel",
    ),
    Key("running", "run", "zset", "leased jobs by lease expiry", "settle, reap, cancel"),
    Key("succeeded", "ok", "list", "succeeded jobs in the order they ended", "retention"),
    Key(
        "stopped",
        "x:{state}",
        "zset",
        "dead, failed, canceled, paused and waiting jobs by time",
        "retry, retention",
    ),
    Key(
        "journal",
        "log:{task}",
        "list",
        "jobs of a task in the order they were made",
        "retention, from the head",
    ),
    Key(
        "aside",
        "old:{task}",
        "zset",
        "jobs that stayed when the head of their journal was cut, by position",
        "with their rows",
    ),
    Key(
        "group",
        "g:{kind}:{value}",
        "zset",
        "jobs that share an instance, node, trace, record or label, by when they were made",
        "with their rows",
    ),
    Key(
        "instance",
        "in:{instance}",
        "hash",
        "of an instance that is suspended or ended: the flag, since when, by whom, how far its jobs follow",
        "resume; a day after its end, with its last job",
    ),
    Key(
        "instances",
        "ins",
        "zset",
        "instances the reaper has to visit, by when: their jobs follow the flag, or it has ended",
        "the end of the walk, the flag's own end",
    ),
    Key(
        "cluster",
        "fc:{fingerprint}",
        "zset",
        "dead and failed jobs of one kind of failure, by time",
        "with its last job",
    ),
    Key("clusters", "fails", "zset", "kinds of failure by when each was last seen", "with their last jobs"),
    Key(
        "samples",
        "fs",
        "hash",
        "kind of failure to when it was first seen, type, frame, template",
        "with their last jobs",
    ),
    Key(
        "notices",
        "nt",
        "hash",
        "deaths to tell of, by task and reason: since when, and until when nothing more is told",
        "a while after they were told, with the last dead job",
    ),
    Key(
        "batch",
        "ba:{id}",
        "hash",
        "a batch: one verb for many jobs, who, why, how far it is",
        "the newest 100 are kept",
    ),
    Key(
        "batch_jobs",
        "bj:{id}",
        "list",
        "the jobs of a batch and the generation each was seen in",
        "with the batch",
    ),
    Key("batch_skips", "bs:{id}", "hash", "the jobs that a batch has skipped, and why", "with the batch"),
    Key("batches", "batches", "zset", "batches by when they were made", "with the batch"),
    Key("batch_work", "bw", "zset", "running batches, by when a reaper is to go on with them", "their end"),
    Key("unique", "u", "hash", "idempotency key digest to job id", "the job's end or its row"),
    Key(
        "memo",
        "c:{pool}:{worker}",
        "string",
        "a worker's last claim of a pool, to answer it again if its reply was lost",
        "1 minute",
    ),
    Key(
        "progress",
        "p:{id}",
        "hash",
        "progress of a background task, and how far its business row follows",
        "with the row",
    ),
    Key(
        "lines",
        "pl:{id}",
        "list",
        "log lines of a background task, the newest 1,000, at most 256 KB",
        "with the row",
    ),
    Key("bound", "bd", "zset", "tasks whose business row may be behind, by when to look", "the binder"),
    Key(
        "bound_to",
        "bt",
        "hash",
        "binding and record to the task that was bound to it last",
        "with that task's row",
    ),
    Key(
        "schedule",
        "s:{job_key}",
        "hash",
        "a schedule: revision, definition, its last job; by trigger next and last fires, what it counts from, its "
        "calendar, who could not read its zone",
        "delete",
    ),
    Key(
        "revisions",
        "sr:{job_key}",
        "hash",
        "the newest 100 revisions of a schedule; of a deleted one that has records, its end",
        "delete; the end 400 days after it",
    ),
    Key(
        "recorded",
        "rt:{job_key}",
        "set",
        "triggers of which there are fire records, those that are no more among them",
        "400 days after the schedule",
    ),
    Key("schedules", "names", "zset", "JobKeys in the order of their names", "delete"),
    Key(
        "triggers",
        "t",
        "zset",
        "triggers by next fire, but those of paused schedules; calendars that have more to be planned anew",
        "fire, put, delete, pause",
    ),
    Key(
        "observed",
        "o",
        "zset",
        "triggers of a disabled tenant by the next planned instant that is to be observed",
        "fire, put, delete, pause",
    ),
    Key(
        "scheduling",
        "sw",
        "hash",
        "the scheduling switch: state, since, by, reason, until; which triggers follow it",
        "with the tenant",
    ),
    Key("groups", "pg", "hash", "paused groups of schedules: since when, by whom and why", "resume"),
    Key("calendar", "cal:{name}", "hash", "a calendar: revision, data, since when, by whom, why", "delete"),
    Key("calendars", "cals", "zset", "calendars in the order of their names", "delete"),
    Key(
        "planned_by",
        "cu:{name}",
        "zset",
        "triggers in a calendar, by the revision of it that their next instant was planned by",
        "put, delete",
    ),
    Key(
        "fires",
        "f:{month}:{trigger}:{job_key}",
        "list",
        "fire records of a trigger in a UTC month",
        "retention",
    ),
    Key(
        "entries",
        "xl:{month}:{job_key}",
        "list",
        "execution log of a schedule's fires of a UTC month: what was skipped, and how fired jobs ended",
        "431 days after its first entry",
    ),
    Key(
        "books",
        "books",
        "zset",
        "fire records and logs of a month, by the clock of their last record",
        "with the list, or when another begins",
    ),
    Key("lease", "l:{name}", "hash", "a named lease: owner, fence, expiry", "release, the reaper"),
    Key("leases", "leases", "zset", "named leases by expiry", "release, the reaper"),
    Key(
        "handover",
        "w:{name}",
        "list",
        "at most one wake-up for who waits for a named lease",
        "the waiter, or the lease's ttl",
    ),
)

INDEX_KEYS = (
    Key("tenants", "tenants", "set", "every tenant that ever had a job or a schedule", "never"),
    Key(
        "due",
        "i:{queue}",
        "zset",
        "tenants by the instant they next want a visit, in microseconds",
        "an empty visit",
    ),
    Key("seen", "v:{queue}", "hash", "the tenant clock at which that instant was told", "an empty visit"),
    Key("walk", "walk", "hash", "where the sweep is, how many tenants there were, the last census", "never"),
    Key("declared", "declared", "set", "schedules that code declares, by tenant and JobKey", "delete"),
    Key(
        "workers",
        "workers",
        "hash",
        "workers by name, each with its latest heartbeat",
        "heartbeats of others, ten minutes after it",
    ),
)

_BY_NAME = {key.name: key for key in TENANT_KEYS + INDEX_KEYS}


def check_tenant(tenant: str) -> str:
    """Return `tenant` if it is a slug, else refuse it: it becomes part of key names."""
    if not isinstance(tenant, str) or not _TENANT.fullmatch(tenant):
        raise BadInput(
            f"tenant {tenant!r:.80} is not a slug: lower-case letters, digits and '-', at most 63, no '-' first",
            hint="choose a slug such as 'acme' or 'team-7'",
        )
    return tenant


def check_namespace(namespace: str) -> str:
    """Return `namespace` if it may stand in front of every key, else refuse it."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,62}", namespace):
        raise BadInput(
            f"namespace {namespace!r:.80} is not allowed: lower-case letters, digits, '_' and '-', at most 63",
            hint="set TENURE_NAMESPACE to something like 'tn'",
        )
    return namespace


class _Names:
    """Key names under one hash tag."""

    __slots__ = ("base", "namespace")

    def __init__(self, namespace: str, tag: str) -> None:
        self.namespace = check_namespace(namespace)
        self.base = f"{namespace}:{{{tag}}}:"

    def __call__(self, family: str, /, **parts: str) -> str:
        return self.base + _BY_NAME[family].pattern.format(**parts)

    @property
    def home(self) -> str:
        """The key every script is routed by; scripts derive the others from it."""
        return self.base + "meta"


class Keys(_Names):
    """The key names of one tenant."""

    __slots__ = ("tenant",)

    def __init__(self, namespace: str, tenant: str) -> None:
        super().__init__(namespace, check_tenant(tenant))
        self.tenant = tenant


class Index(_Names):
    """The key names of the index over tenants."""

    __slots__ = ()

    def __init__(self, namespace: str) -> None:
        super().__init__(namespace, "@")


def wake_channel(namespace: str) -> str:
    """Channel of hints: `due POOL TENANT RUN_AT`, `stop POOL TENANT ID FENCE`, `hold TENANT KIND NAME`.

    Losing one costs at most a poll; of a hold, that what was claimed just before may still begin.
    """
    return f"{namespace}:wake"


def watch_channel(namespace: str) -> str:
    """Channel of `TENANT ID REVISION`, one message for each change of a background task."""
    return f"{namespace}:watch"


def parse(key: str) -> tuple[str, str, str, dict[str, str]]:
    """Take a key name apart: (namespace, tenant or "@", family, parts).

    Raises BadInput for a name that is not ours.
    """
    shape = re.fullmatch(r"([a-z0-9][a-z0-9_-]*):\{(@|[a-z0-9-]+)\}:(.*)", key, re.DOTALL)
    if shape:
        namespace, tenant, rest = shape.groups()
        for family in INDEX_KEYS if tenant == "@" else TENANT_KEYS:
            found = re.fullmatch(_regex(family), rest, re.DOTALL)
            if found:
                return namespace, tenant, family.name, found.groupdict()
    raise BadInput(f"key {key!r:.120} is not one of Tenure's", hint="see the key table in ARCHITECTURE.md")


def _regex(key: Key) -> str:
    pattern = ""
    for literal, field, _, _ in Formatter().parse(key.pattern):
        pattern += re.escape(literal)
        if field:
            last = field == key.parts[-1]
            pattern += f"(?P<{field}>{'.+' if last else '[^:]+'})"
    return pattern


def lua_keys() -> str:
    """The key table as a Lua constructor, for the scripts' prelude."""
    rows = []
    for key in TENANT_KEYS + INDEX_KEYS:
        pieces = ["base"]
        for literal, field, _, _ in Formatter().parse(key.pattern):
            pieces += [f"'{literal}'"] if literal else []
            pieces += [field] if field else []
        rows.append(f"  {key.name} = function({', '.join(key.parts)}) return {' .. '.join(pieces)} end,")
    return "\n".join(
        ["local base  -- the tenant's prefix, set at the start of each operation", "local K = {", *rows, "}"]
    )
