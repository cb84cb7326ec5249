"""How fast the demo's import goes: slow enough to be watched, and no slower."""

from __future__ import annotations

from dataclasses import dataclass

LASTS_S = 12.0
LONGEST_PAUSE_S = 0.12
CHUNKS = 60
LARGEST_CHUNK = 5_000
LARGE = 500_000  # rows that take long enough by themselves


@dataclass(frozen=True, slots=True)
class Pace:
    """Rows in a chunk, and the pause after each row as if it asked a slow service."""

    chunk: int
    pause_s: float

    @classmethod
    def of(cls, rows: int) -> Pace:
        """So that an import of `rows` rows lasts about twelve seconds; a large one has its own work instead."""
        chunk = min(max(1, -(-rows // CHUNKS)), LARGEST_CHUNK)
        pauses_s = LASTS_S * max(0.0, 1 - rows / LARGE)
        return cls(chunk, min(LONGEST_PAUSE_S, pauses_s / max(1, rows)))

    def in_words(self, rows: int) -> str:
        chunks = f"in chunks of {self.chunk:,}" if rows > self.chunk else "in one chunk"
        if not self.pause_s:
            return f"{chunks}, without a pause"
        each = f"{self.pause_s * 1000:.3g} ms"
        return f"{chunks}, with a pause of {each} a row ({self.pause_s * rows:.0f} s in all) so that one can watch"
