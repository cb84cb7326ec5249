"""The command line: `tenure NOUN VERB`. Each command's module is loaded when that command is asked for."""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from importlib import import_module

import click

from .. import __version__

_COMMANDS = {
    "dev": ("dev:dev", "Run server, scheduler, worker and API together, for development."),
    "demo": ("demo:demo", "See the main job work: an import with progress, a cron, a killed worker."),
    "worker": ("run:worker", "Run jobs."),
    "scheduler": ("run:scheduler", "Fire schedules."),
    "api": ("serve:api", "Serve the HTTP API on this machine."),
    "background": ("background:background", "Start, list, watch, cancel and retry background tasks."),
    "jobs": ("jobs:jobs", "List, show and watch jobs; retry, skip, cancel, reschedule and confirm them."),
    "instances": ("instances:instances", "Suspend, resume and end workflow instances."),
    "hold": ("hold:hold", "Hold jobs of a tenant, a pool or a task, and release them."),
    "failures": ("failures:failures", "See what dead and failed jobs have in common."),
    "chain": ("chain:chain", "Show all jobs of a trace, or make a bundle of them to hand on."),
    "why": ("why:why", "Say why a job does not run or a schedule did not fire, and what would change that."),
    "replay": ("replay:replay", "Retry many dead or failed jobs at a pace, chosen by conditions."),
    "cron": (
        "cron:cron",
        "List, show, store, change, pause, run and delete schedules; explain cron expressions.",
    ),
    "calendars": ("calendars:calendars", "List, show, store and delete calendars of excluded times."),
    "tenants": (
        "tenants:tenants",
        "List tenants; disable and enable their scheduling; say how long their jobs stay.",
    ),
    "migrate": ("migrate:migrate", "Take schedules over from rq-scheduler, and give them back."),
    "archive": ("archive:archive", "Keep in a database what Redis lets go; check it."),
    "status": ("status:status", "Show the server, the workers and how many jobs there are."),
    "config": ("config:config", "Show the settings."),
    "explain": ("explain:explain", "Say what an error code means and what to do."),
}


class Commands(click.Group):
    """A group that knows its commands by name and loads one when it is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(f".{module}", __name__), name)
        assert isinstance(command, click.Command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for arg in args:
            if arg.encode("utf-8", "ignore").decode() != arg:
                ctx.fail(f"{arg!r:.80} is not valid text: arguments must be UTF-8.")
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], _COMMANDS, 1)
            meant = f"Did you mean {near[0]!r}?" if near else f"The commands are {', '.join(_COMMANDS)}."
            ctx.fail(f"No such command {args[0]!r:.40}. {meant}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        """Run it; what goes wrong is said in words on stderr and becomes an exit code, never a traceback."""
        try:
            answer = super().invoke(ctx)
            sys.stdout.flush()
        except (click.exceptions.Exit, click.ClickException, click.Abort):
            raise
        except (Exception, KeyboardInterrupt) as exc:
            from .problems import report  # a run that works does not pay for it

            ctx.exit(report(exc))
        return answer


@click.group(
    "tenure",
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit: 0 ok, 1 failed, 2 usage, 3 not found, 4 refused or conflict, 5 Redis unreachable.",
)
@click.version_option(__version__, message="tenure %(version)s")
def root() -> None:
    """Tenure: jobs, schedules and leases in Redis.

    Settings come from TENURE_* and tenure.toml (see: tenure config show); without TENURE_REDIS_URL an embedded
    server is used.
    """


def main() -> None:
    """The entry point of the `tenure` script."""
    if sys.stdout is None:  # closed by the caller: nobody wants to read it
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for as long as we live
    try:
        root(prog_name="tenure")
    except KeyboardInterrupt:
        sys.exit(130)
