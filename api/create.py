"""The API as an ASGI application: its paths, and who answers them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount

from ..scripts.errors import TenureError
from .background import Background
from .batches import BatchResource
from .calendars import CalendarResource
from .chain import ChainResource
from .events import Events
from .failures import FailureResource
from .guard import Guard
from .health import Health
from .holds import HoldResource
from .hub import Hub
from .instances import InstanceResource
from .jobs import Jobs
from .long_poll import LongPoll
from .needs import App
from .problems import CatchAll, on_error, on_http_error
from .progress_app import create_progress, everyone
from .replays import ReplayResource
from .retention import RetentionResource
from .routing import BySegments, resource
from .schedules import ScheduleResource
from .tasks import Tasks
from .tenants import Tenants
from .workers import Workers


def create_api(app: App) -> Starlette:
    """The API of an application, to be mounted or served as it is. It opens nothing before the first request.

    `state.hub.close()` ends all event streams, for servers that wait for them when they stop; under uvicorn this
    happens by itself.
    """
    hub, progress = Hub(app), create_progress(app, everyone)

    @asynccontextmanager
    async def lifespan(_api: Starlette) -> AsyncGenerator[None]:
        yield
        hub.close()
        progress.state.hub.close()

    api = Starlette(
        routes=[*routes(app, hub), Mount("/progress", progress)],
        middleware=[Middleware(Guard), Middleware(CatchAll)],
        exception_handlers={TenureError: on_error, HTTPException: on_http_error("/tasks")},
        lifespan=lifespan,
    )
    api.router.redirect_slashes = False
    api.state.hub = hub
    return api


def routes(app: App, hub: Hub) -> list[BaseRoute]:
    background, schedules, health = Background(app), ScheduleResource(app), Health(app)
    jobs, instances = Jobs(app), InstanceResource(app)
    batches, replays = BatchResource(app), ReplayResource(app)
    tenants, retention, chains = Tenants(app), RetentionResource(app), ChainResource(app)
    holds, calendars = HoldResource(app), CalendarResource(app)
    return [
        resource("/tasks", get=Tasks(app).list),
        resource("/background-tasks", get=background.list, post=background.start),
        BySegments("/background-tasks/{id}", LongPoll(app, hub).get),
        resource("/background-tasks/{id}/cancel", post=background.cancel),
        resource("/background-tasks/{id}/retry", post=background.retry),
        BySegments("/background-tasks/{id}/events", Events(app, hub).follow),
        resource("/jobs", get=jobs.list),
        resource("/jobs/summary", get=jobs.summary),
        resource("/jobs/runtime-status", get=jobs.runtime_status),
        resource("/jobs/failure-clusters", get=FailureResource(app).list),
        resource("/jobs/batch-retry", post=batches.retry),
        resource("/jobs/batch-skip", post=batches.skip),
        resource("/jobs/replay-preview", post=replays.preview),
        resource("/jobs/replay-dead", post=replays.apply),
        resource("/jobs/replays", get=batches.list),
        resource("/jobs/replays/{id}", get=batches.get),
        resource("/jobs/chain/{trace}", get=chains.get),
        resource("/jobs/chain/{trace}/diagnostic-bundle", get=chains.bundle),
        resource("/jobs/{id}", get=jobs.get),
        resource("/jobs/{id}/why", get=jobs.why),
        resource("/jobs/{id}/retry", post=jobs.retry),
        resource("/jobs/{id}/skip", post=jobs.skip),
        resource("/jobs/{id}/cancel", post=jobs.cancel),
        resource("/jobs/{id}/reschedule", post=jobs.reschedule),
        resource("/jobs/{id}/confirm", post=jobs.confirm),
        resource("/instances/{id}", get=instances.get),
        resource("/instances/{id}/why", get=instances.why),
        resource("/instances/{id}/pause", post=instances.pause),
        resource("/instances/{id}/resume", post=instances.resume),
        resource("/instances/{id}/end", post=instances.end),
        resource("/holds", get=holds.list, post=holds.add, delete=holds.remove),
        resource("/tenants/{tenant}/retention", get=retention.get, put=retention.put),
        resource("/workers", get=Workers(app).list),
        resource("/schedules", get=schedules.list),
        resource("/schedules/preview", post=schedules.preview),
        resource(
            "/schedules/{job_key}",
            get=schedules.get,
            put=schedules.put,
            patch=schedules.patch,
            delete=schedules.delete,
        ),
        resource("/schedules/{job_key}/pause", post=schedules.pause),
        resource("/schedules/{job_key}/resume", post=schedules.resume),
        resource("/schedules/{job_key}/run", post=schedules.run),
        resource("/schedules/{job_key}/backfill", post=schedules.backfill),
        resource("/schedules/{job_key}/dry-run", post=schedules.dry_run),
        resource("/schedules/{job_key}/next", get=schedules.next),
        resource("/schedules/{job_key}/fires", get=schedules.fires),
        resource("/schedules/{job_key}/logs", get=schedules.logs),
        resource("/schedules/{job_key}/why", get=schedules.why),
        resource("/calendars", get=calendars.list),
        resource("/calendars/{name}", get=calendars.get, put=calendars.put, delete=calendars.delete),
        resource("/tenants", get=tenants.list),
        resource("/tenants/{tenant}/scheduling", get=tenants.get, put=tenants.put),
        BySegments("/livez", health.livez),
        BySegments("/readyz", health.readyz),
    ]
