"""Where the commands come together, and where every error becomes one sentence."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, NoReturn

import typer

from perago import __version__
from perago.cli import (
    branch,
    cancel,
    check,
    checkout,
    conform,
    dev,
    diff,
    doctor,
    extract,
    gc,
    graph,
    human,
    init,
    inspect,
    ledger,
    log,
    new,
    register,
    repo,
    report,
    restart,
    run,
    runs,
    schema,
    start,
    status,
    submit,
    ui,
    verify,
    watch,
)
from perago.cli.exits import FAILED, INTERRUPTED, exit_code
from perago.cli.help import Group, StyledCommand
from perago.cli.screen import complain
from perago.errors import PeragoError, RuntimeConfigError, UsageError
from perago.redaction import hide

app = typer.Typer(
    name="perago",
    cls=Group,
    help="Each task attempt is a transaction on a versioned workspace.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_START, _STEER, _LOOK, _KEEP = "Start", "Steer", "Look", "Keep tidy"
_COMMANDS: Final[Mapping[str, Sequence[Callable[..., None]]]] = {
    _START: (
        init.init,
        check.check,
        run.run,
        extract.extract,
        schema.schema,
        register.register,
        start.start,
    ),
    _STEER: (submit.submit, watch.watch, cancel.cancel, restart.restart),
    _LOOK: (
        status.status,
        runs.runs,
        log.log,
        inspect.inspect,
        diff.diff,
        checkout.checkout,
        graph.graph,
        report.report,
        ui.ui,
        verify.verify,
    ),
    _KEEP: (doctor.doctor, conform.conform, gc.gc),
}
for _panel, _functions in _COMMANDS.items():
    for _function in _functions:
        app.command(_function.__name__, cls=StyledCommand, rich_help_panel=_panel)(_function)
app.add_typer(new.app, name="new", rich_help_panel=_START)
app.add_typer(repo.app, name="repo", rich_help_panel=_START)
app.add_typer(branch.app, name="branch", rich_help_panel=_START)
app.add_typer(dev.app, name="dev", rich_help_panel=_START)
app.add_typer(human.app, name="human", rich_help_panel=_STEER)
app.add_typer(ledger.app, name="ledger", rich_help_panel=_LOOK)


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


EXTRA_OF: Final = {
    "conductor": "conductor",
    "httptools": "lakefs",
    "obstore": "lakefs",
    "pyarrow": "data",
    "pyspark": "spark",
    "quickjs": "javascript",
    "jinja2": "ui",
    "starlette": "ui",
    "uvicorn": "ui",
    "urllib3": "lakefs",
}
"""Packages that a bare installation does not have, and the extra that brings each."""


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
    except (RecursionError, OverflowError) as error:
        # Whatever it was, somebody gave something that is too deep or too large for us.
        note = UsageError(f"an input is too deep or too large: {error}", remedy="give less")
        complain(note, as_json="--json" in given)
        sys.exit(exit_code(note))
    except ModuleNotFoundError as error:
        if (extra := EXTRA_OF.get(str(error.name).partition(".")[0])) is None:
            _confess()
        absent = RuntimeConfigError(
            f"this command needs the package {error.name!r}", remedy=f"install 'perago[{extra}]'"
        )
        complain(absent, as_json="--json" in given)
        sys.exit(exit_code(absent))
    except BrokenPipeError:
        # The reader has seen enough ("perago log | head"): not a failure.
        sys.stderr.close()
        sys.exit(0)
    except Exception:  # noqa: BLE001 - whatever it is
        _confess()


def _confess() -> NoReturn:
    """Show a bug of ours with its place, but no key with it (V8)."""
    sys.stderr.write(hide(traceback.format_exc()))
    sys.exit(FAILED)
