"""A named lease says who may touch a thing. Its fence goes into the write, so that even a late holder does no harm."""

import sqlite3

import pytest

from tenure import Tenure
from tenure.scripts.errors import LeaseTaken, StaleFence


@pytest.fixture
def stock() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE stock (sku TEXT PRIMARY KEY, qty INTEGER, fence INTEGER)")
    database.execute("INSERT INTO stock VALUES ('sku-17', 10, 0)")
    return database


def take(stock: sqlite3.Connection, pieces: int, fence: int) -> bool:
    """Take pieces out of the stock, unless a later holder has written."""
    sql = "UPDATE stock SET qty = qty - ?, fence = ? WHERE sku = 'sku-17' AND fence <= ?"
    return stock.execute(sql, (pieces, fence, fence)).rowcount == 1


def test_one_at_a_time(app: Tenure) -> None:
    with app.lease("stock:sku-17"):
        with pytest.raises(LeaseTaken), app.lease("stock:sku-17"):
            pass
        with app.lease("stock:sku-18"):
            pass

    with app.lease("stock:sku-17"):
        pass


def test_a_holder_that_was_overtaken_cannot_write(app: Tenure, stock: sqlite3.Connection) -> None:
    with app.lease("stock:sku-17") as early:
        pass
    with app.lease("stock:sku-17") as late:
        late.require(take(stock, 1, late.fence))

    with pytest.raises(StaleFence):
        early.require(take(stock, 5, early.fence))
    assert stock.execute("SELECT qty FROM stock").fetchone() == (9,)
