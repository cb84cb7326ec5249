"""What is understood, what is refused, and in what words and time."""

from __future__ import annotations

import pickle
import time
import tracemalloc
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.scheduler.cron import BadCron, CronExpression
from tenure.scripts.errors import BadInput

REFUSED = [
    ("0 0 32 * *", "day-of-month", 5, "32 is above 31"),
    ("77 * * * *", "minute", 1, "77 is above 59"),
    ("-1 * * * *", "minute", 1, "-1 is below 0"),
    ("0 24 * * *", "hour", 3, "24 is above 23"),
    ("0 0 * 13 *", "month", 7, "13 is above 12"),
    ("0 0 * * 8", "day-of-week", 9, "8 is above 7"),
    ("0 0 1,2,99 * *", "day-of-month", 9, "99 is above 31"),
    ("0-99999999/1 * * * *", "minute", 1, "99999999 is above 59"),
    ("*/1/1/1 * * * *", "minute", 1, "'*/1/1/1' has more than one step"),
    ("*/0 * * * *", "minute", 1, "a step of 0 goes nowhere"),
    ("*/90 * * * *", "minute", 1, "step 90 is above 59"),
    ("/5 * * * *", "minute", 1, "nothing stands before '/'; write '*/5'"),
    ("1,,2 * * * *", "minute", 3, "a list member is empty"),
    ("5/ * * * *", "minute", 1, "'5/' has no number after '/'"),
    ("0 0 * FOO *", "month", 7, "'FOO' is not one of JAN to DEC"),
    ("0 MON * * *", "hour", 3, "'MON' is not a number"),
    ("0 $5 * * *", "hour", 3, "'$' has no meaning here"),
    ("0 0 * * *\n", "day-of-week", 10, "'\\n' has no meaning here"),
    ("? * * * *", "minute", 1, "'?' stands alone, and in the day fields only"),
    ("0 0 * * L", "day-of-week", 9, "'L' needs a weekday here, as in '5L' for the last Friday"),
    ("0 0 * * FRI#6", "day-of-week", 9, "6 after '#' is not 1 to 5"),
    ("0 0 L-31 * *", "day-of-month", 5, "L-31 is above L-30"),
    ("0 0 0 * * *", "day-of-week", 11, "with seconds (Quartz), one of the two day fields must be '?'"),
    ("0 0 0 ? * ?", "day-of-week", 11, "'?' may stand in one day field only"),
    ("0 0 0 ? * 0", "day-of-week", 11, "0 is below 1"),
    (
        "0 0 0 ? * MON-FRI/2",
        "day-of-week",
        11,
        "a step after a name is not taken by Quartz; write the range in numbers",
    ),
    ("0 0 0 9W,13 * ?", "day-of-month", 7, "'9W' may not stand in a list"),
    ("0 0 0 * * ? 1969", "year", 13, "1969 is below 1970"),
    ("0 0 0 * * ? 2126", "year", 13, "2126 is above 2125"),
    ("0 0 0 * * ? 2030-2020", "year", 13, "the range 2030-2020 runs backwards"),
    ("0 0 0 * * ? * *", "expression", 15, "8 fields; crontab has 5, Quartz 6 or 7"),
    ("0 0", "expression", 3, "2 fields; crontab has 5, Quartz 6 or 7"),
    ("", "expression", 1, "it is empty"),
    ("@reboot", "expression", 1, "'@reboot' is not one of @yearly, "),
    ("0 0 1 \u0130 *", "expression", 7, "only ASCII characters have a meaning"),
    ("0 0 31 2 *", "expression", None, "no date from 1970 to 2125 satisfies all fields; it never fires"),
    (
        "0 0 0 ? 2 SUN#5 2023",
        "expression",
        None,
        "no date from 1970 to 2125 satisfies all fields; it never fires",
    ),
    ("* * * 31 4 ?", "expression", None, "no date from 1970 to 2125 satisfies all fields; it never fires"),
]


@pytest.mark.parametrize(("text", "field", "position", "rule"), REFUSED, ids=[it[0] for it in REFUSED])
def test_a_refusal_names_field_position_and_rule(
    text: str, field: str, position: int | None, rule: str
) -> None:
    with pytest.raises(BadCron) as refusal:
        CronExpression(text)

    assert refusal.value.field == field
    assert refusal.value.position == position
    assert refusal.value.rule.startswith(rule)
    assert f"{field}: {rule}" in str(refusal.value)


def test_a_refusal_is_a_value_error_and_bad_input_with_a_code() -> None:
    with pytest.raises(BadInput) as refusal:
        CronExpression("0 0 32 * *")

    assert isinstance(refusal.value, ValueError)
    assert refusal.value.code == "BAD_CRON"
    assert str(refusal.value) == "day-of-month: 32 is above 31 (at character 5)"
    assert str(pickle.loads(pickle.dumps(refusal.value))) == str(refusal.value)


COSTLY = [
    "0 0 31 2 *",
    "* * * 31 4 ?",
    "0-99999999/1 * * * *",
    "1," * 32_768,
    "1," * 120 + "1 * * * *",
    "*/1" * 80 + " * * * *",
    "9" * 250 + " * * * *",
    "* " * 20_000,
    "0 0 0 ? 2 SUN#5 2023",
    "A" * 256,
    "\u0130" * 256,
]


@pytest.mark.parametrize("text", COSTLY, ids=[text[:20] for text in COSTLY])
def test_a_refusal_is_quick_and_small_whatever_the_text(text: str) -> None:
    tracemalloc.start()
    with pytest.raises(BadCron):
        CronExpression(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    taken: list[float] = []
    for _ in range(3):
        began = time.perf_counter()
        with pytest.raises(BadCron):
            CronExpression(text)
        taken.append(time.perf_counter() - began)

    assert peak < 1_000_000
    assert min(taken) < 0.005


def test_a_thousand_that_never_fire_are_all_refused_in_time() -> None:
    began = time.perf_counter()
    for minute in range(1000):
        with pytest.raises(BadCron, match="never fires"):
            CronExpression(f"{minute % 60} {minute % 24} 31 2 *")

    assert time.perf_counter() - began < 5


@given(st.text(alphabet="0123456789*/-,?LW#@ \tJANFRISUT+x\u0130", max_size=40))
@settings(max_examples=500, deadline=None)
def test_any_text_is_understood_or_refused(text: str) -> None:
    try:
        cron = CronExpression(text)
    except BadCron:
        return
    found = cron.next(datetime(1970, 1, 1, tzinfo=UTC))
    assert found is not None
    assert cron.describe() != ""
    assert cron.describe("zh") != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("@monthly", "0 0 1 * *"),
        ("@annually", "@yearly"),
        ("0 0 * jan sun", "0 0 * 1 0"),
        ("0 0 * * sat-sun", "0 0 * * 6,0"),
        ("0 0 ? * *", "0 0 * * *"),
        ("0 0 * * mon-fri/2", "0 0 * * 1,3,5"),
        ("007 00 * * *", "7 0 * * *"),
        ("0 /10 * * * ?", "0 */10 * * * ?"),
        ("0 */0 * * * ?", "0 * * * * ?"),
        ("0 5/0 * * * ?", "0 5 * * * ?"),
        ("0 0 0 28-2/2 * ?", "0 0 0 28,30,1 * ?"),
        ("0 0 0 ? * L", "0 0 0 ? * SAT"),
        ("0 0 0 ? * 7-1", "0 0 0 ? * SAT,SUN"),
        ("0 0 0 ? NOV-FEB 2", "0 0 0 ? 11,12,1,2 MON"),
    ],
)
def test_two_spellings_mean_the_same(one: str, other: str) -> None:
    window = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 3, 1, tzinfo=UTC)

    assert list(CronExpression(one).between(*window)) == list(CronExpression(other).between(*window))


def test_a_date_or_a_weekday_will_do_in_crontab() -> None:
    found = CronExpression("* * 13 * Fri").between(
        datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
    )

    assert sorted({it.day for it in found}) == [1, 8, 13, 15, 22, 29]


def test_equal_expressions_are_equal_and_travel() -> None:
    one = CronExpression(" 0  0 * * mon ", "Europe/Berlin", "skip")

    assert one == CronExpression("0 0 * * MON", "Europe/Berlin", "skip")
    assert one != CronExpression("0 0 * * MON", "Europe/Berlin")
    assert hash(one) == hash(CronExpression("0 0 * * MON", "Europe/Berlin", "skip"))
    assert repr(one) == "CronExpression('0 0 * * MON', tz='Europe/Berlin', dst='skip')"
    assert pickle.loads(pickle.dumps(one)) == one


def test_a_wrong_policy_and_a_naive_datetime_are_refused() -> None:
    with pytest.raises(BadInput, match="'sometimes' is not one of standard, skip, quartz"):
        CronExpression("@daily", dst="sometimes")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="has no time zone"):
        CronExpression("@daily").next(datetime(2026, 5, 1))


@pytest.mark.parametrize(
    ("text", "english", "chinese"),
    [
        ("0 0 2 ? * MON-FRI", "at 02:00, Monday to Friday", "周一至周五 02:00"),
        ("@daily", "at 00:00, every day", "每天 00:00"),
        ("*/5 * * * *", "every 5 minutes", "每 5 分钟"),
        ("* * * ? * *", "every second", "每秒"),
        ("30 * * * *", "at minute 30 of every hour", "每小时 30分"),
        ("*/7 * * * *", "at minute 0 to 59 in steps of 7 of every hour", "每小时 0分至59分 步长 7"),
        (
            "*/10 8-18 * * 1-5",
            "every 10 minutes, in hour 8 to 18, Monday to Friday",
            "周一至周五 8时至18时 每 10 分钟",
        ),
        ("0 0 12 L * ?", "at 12:00, on the last day of the month", "每月最后一天 12:00"),
        (
            "0 0 12 15W 6 ? 2027",
            "at 12:00, on the weekday nearest to day 15 of the month, in June, in 2027",
            "2027年 6月 离当月15日最近的工作日 12:00",
        ),
        ("0 0 12 ? * FRI#2", "at 12:00, on the second Friday of the month", "每月第二个周五 12:00"),
        (
            "30 8,20 13 * fri",
            "at 08:30 and 20:30, on day 13 of the month or on Friday",
            "每月13日或每周五 08:30、20:30",
        ),
        (
            "4 23-37 0-3 ? * 6 2079-2097",
            "at second 4, at minute 23 to 37, in hour 0 to 3, on Friday, in 2079 to 2097",
            "2079至2097年 每周五 0时至3时 23分至37分 第4秒",
        ),
    ],
)
def test_an_expression_is_told_in_words(text: str, english: str, chinese: str) -> None:
    cron = CronExpression(text)

    assert cron.describe() == english
    assert cron.describe("zh") == chinese
