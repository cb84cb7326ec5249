"""Why a planned instant did not fire: the closed list of reasons, in words."""

from __future__ import annotations

from collections.abc import Mapping

DISABLED = "SystemTaskSchedulingDisabled"
UNOBSERVED = "unobserved"
ZONE_UNAVAILABLE = "zone_unavailable"
DST_GAP = "dst_gap"
"""Also of a fire that was moved out of a gap."""

SENTENCES: Mapping[str, str] = {
    DISABLED: "scheduling of the tenant was disabled, and this scheduler did not run it",
    UNOBSERVED: "scheduling of the tenant was disabled, and no scheduler was there to see it pass",
    "paused": "the schedule was paused",
    "superseded": "the schedule was changed before it could fire",
    "deleted": "the schedule was deleted before it could fire",
    "misfire": "it was found too late, and the misfire policy says not to run what is late",
    "coalesced": "it was overtaken by a newer instant of its trigger, which ran for it too",
    "overlap": "the job of the fire before had not ended, and the overlap policy is skip",
    DST_GAP: "the clocks went forward over it, and its trigger skips what they leave out",
    "dst_overlap": "the clocks went back over it: it came twice, and the other pass counts",
    ZONE_UNAVAILABLE: "no scheduler that came by could read the time zone of its trigger",
    "queue_full": "one fire was waiting for the job before it already",
}

_IN_LOGS: Mapping[str, str] = {
    DISABLED: "Scheduling of this tenant is disabled: this scheduler did not run it. "
    "该租户的定时任务调度已停用，本调度器未执行此次任务。",  # noqa: RUF001
}


def log_sentence(reason: str) -> str:
    """What the execution log says of a skipped instant. Of a disabled tenant no more than is known here: another
    scheduler, an older one say, may have run it.
    """
    if reason in _IN_LOGS:
        return _IN_LOGS[reason]
    words = SENTENCES.get(reason, reason)
    return f"{words[:1].upper()}{words[1:]}."
