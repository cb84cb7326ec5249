"""At three in the morning the bank was away. What died of it is one group, and is retried with one word."""

from tenure import Retry, Tenure
from tenure.testing import InlineWorker


def test_what_died_of_one_thing_is_seen_as_one_and_retried_at_a_pace(
    app: Tenure, worker: InlineWorker
) -> None:
    bank_is_there = False

    @app.task("bank.pay", retry=Retry(1))
    def pay(order: int) -> str:
        if not bank_is_there:
            raise ConnectionError(f"no answer to payment {order} after 30.0 s")
        return f"paid {order}"

    @app.task("mail.send", retry=Retry(1))
    def send(to: str) -> None:
        raise ValueError(f"no such address: {to!r}")

    jobs = [pay.enqueue(order) for order in (7, 81, 4001)]
    letter = send.enqueue("nobody@example")
    worker.run()

    groups = {group.template: group for group in app.jobs.failures().items}
    assert {template: group.count for template, group in groups.items()} == {
        "no answer to payment # after # s": 3,
        "no such address: '…'": 1,
    }

    bank_is_there = True
    preview = app.jobs.replay_preview(fingerprint=groups["no answer to payment # after # s"].key)
    assert [job.id for job in preview.jobs] == [job.id for job in jobs]
    app.jobs.replay(preview, rate=20, reason="the bank is back")
    worker.run(later="1s")

    assert [job.result() for job in jobs] == ["paid 7", "paid 81", "paid 4001"]
    assert letter.get().status == "dead", "it died of something else"
    (deed,) = jobs[0].get().history
    assert (deed.verb, deed.reason) == ("replay", "the bank is back")
