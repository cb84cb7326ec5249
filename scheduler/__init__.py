"""Schedules: cron, other triggers, misfires, and a record for every planned fire."""

from .cron import BadCron, CronExpression, Planned
from .job_key import JobKey

__all__ = ["BadCron", "CronExpression", "JobKey", "Planned"]
