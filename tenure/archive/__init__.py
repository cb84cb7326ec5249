"""What Redis lets go, kept in a database of yours (`pip install '.[archive]'`): fire records, logs, ended jobs.

    TENURE_ARCHIVE_URL=postgresql+psycopg://…   or sqlite:////var/lib/tenure/archive.db

    tenure archive run          # copies what is new; any number of these processes, on any machine
    tenure archive check        # are the tables and their indexes as they must be?

An archiver reads what is new in Redis, writes it to the database and notes how far it came, rows and note in one
transaction. Each row has an id that is worked out from what it is: killed anywhere, nothing is lost, and nothing is
there twice. What is asked for and is not in Redis any more is read from here, by the same calls; a database that cannot
be reached is then an error, `ARCHIVE_UNREACHABLE`, and never an empty list.

What is in the database stays: each table has a `month` (YYYYMM, UTC) by which you may delete.

While the database is away, rows go to a spool on this machine's disk (`TENURE_SPOOL`), and from there to the database
when it is back, with the same ids. That matters to succeeded and canceled jobs, which Redis keeps for a day; records
and log entries stay there for thirteen months.
"""

from __future__ import annotations

from ..scripts.errors import MissingExtra, install

try:
    import sqlalchemy as _  # noqa: F401
except ImportError:
    raise MissingExtra("the archive needs SQLAlchemy 2", hint=install("archive")) from None

from .archiver import Archiver
from .sink import Archive
from .spool import Spool

__all__ = ["Archive", "Archiver", "Spool"]
