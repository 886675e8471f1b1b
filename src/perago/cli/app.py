"""Where the commands come together, and where every error becomes one sentence."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from perago import __version__
from perago.cli import (
    check,
    checkout,
    dev,
    diff,
    doctor,
    extract,
    gc,
    init,
    inspect,
    log,
    register,
    repo,
    run,
    runs,
    start,
    status,
)
from perago.cli.exits import INTERRUPTED, exit_code
from perago.cli.screen import complain
from perago.errors import PeragoError

app = typer.Typer(
    name="perago",
    help="Each task attempt is a transaction on a versioned workspace.\n\n"
    "Start with [bold]perago init demo[/bold], then [bold]cd demo[/bold] and "
    "[bold]perago run workflow.json tasks[/bold].",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_START = "Start"
_LOOK = "Look"
_KEEP = "Keep tidy"

app.command("init", rich_help_panel=_START)(init.init)
app.command("check", rich_help_panel=_START)(check.check)
app.command("run", rich_help_panel=_START)(run.run)
app.command("extract", rich_help_panel=_START)(extract.extract)
app.command("register", rich_help_panel=_START)(register.register)
app.command("start", rich_help_panel=_START)(start.start)
app.command("status", rich_help_panel=_LOOK)(status.status)
app.command("runs", rich_help_panel=_LOOK)(runs.runs)
app.command("log", rich_help_panel=_LOOK)(log.log)
app.command("inspect", rich_help_panel=_LOOK)(inspect.inspect)
app.command("diff", rich_help_panel=_LOOK)(diff.diff)
app.command("checkout", rich_help_panel=_LOOK)(checkout.checkout)
app.add_typer(repo.app, name="repo", rich_help_panel=_START)
app.command("doctor", rich_help_panel=_KEEP)(doctor.doctor)
app.command("gc", rich_help_panel=_KEEP)(gc.gc)
app.add_typer(dev.app, name="dev", rich_help_panel=_START)


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"perago {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exit codes are in ``docs/reference/exit-codes.md``."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        app(given)
    except PeragoError as error:
        complain(error, as_json="--json" in given)
        sys.exit(exit_code(error))
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader has seen enough ("perago log | head"): not a failure.
        sys.stderr.close()
        sys.exit(0)
