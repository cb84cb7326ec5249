"""Who hears what is published."""

from __future__ import annotations

from typing import Any


class Listener:
    """Hears a channel from the moment it is made."""

    def __init__(self, redis: Any, channel: str) -> None:
        self.redis, self.channel = redis, channel
        self.line = redis.pubsub()
        self.line.subscribe(channel)
        assert self.line.get_message(timeout=30), "the server has not answered"

    def heard(self) -> list[str]:
        """What was said since this was asked last, to a mark of our own."""
        self.redis.publish(self.channel, "mark")
        said: list[str] = []
        while "mark" not in said:
            message = self.line.get_message(timeout=30)
            assert message, "the channel is silent"
            if message["type"] == "message":
                said.append(message["data"].decode())
        return said[:-1]
