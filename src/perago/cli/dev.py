"""``perago dev``: real servers for development and tests, made from the package registries."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perago.cli.help import Group, StyledCommand
from perago.cli.screen import AsJson, emit, emit_keys, fields, note, plain, say, table, when
from perago.protocol.printable import size

if TYPE_CHECKING:
    from rich.text import Text

    from perago.dev import Instance, ServerName, ServerStatus, Sources

app = typer.Typer(
    cls=Group,
    help="Run real lakeFS and Conductor servers on this machine.",
    no_args_is_help=True,
)
_STYLES = {"running": "green", "dead": "bold red", "stopped": "dim"}


class BlockStore(StrEnum):
    """Where lakeFS keeps the content of objects."""

    LOCAL = "local"
    S3 = "s3"


class Server(StrEnum):
    """The servers there are."""

    LAKEFS = "lakefs"
    CONDUCTOR = "conductor"
    S3 = "s3"


Name = Annotated[str, typer.Option("--name", help="Which instance; several can run side by side.")]


@app.command(cls=StyledCommand)
def up(
    name: Name = "default",
    lakefs: Annotated[bool, typer.Option("--lakefs", help="Start lakeFS.")] = False,
    conductor: Annotated[bool, typer.Option("--conductor", help="Start Conductor.")] = False,
    s3: Annotated[bool, typer.Option("--s3", help="Start the S3 store (versitygw).")] = False,
    blocks: Annotated[
        BlockStore, typer.Option(help="Where lakeFS keeps its blocks; s3 starts the S3 store too.")
    ] = BlockStore.LOCAL,
    docker: Annotated[
        bool,
        typer.Option("--docker", help="Take lakeFS and the S3 store from images. Untested."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Start servers: lakeFS and Conductor, or those that are named.

    The first time they are built or fetched, which takes minutes; after that, seconds.
    """
    from perago.dev import SERVERS, start
    from perago.dev.instance import USUAL

    asked = {"lakefs": lakefs, "conductor": conductor, "s3": s3}
    servers = [server for server in SERVERS if asked[server]] or list(USUAL)
    sources = _sources(quiet=as_json, docker=docker)
    found = start(name, _home(), servers, blocks=blocks.value, sources=sources)
    if as_json:
        emit_keys({**_described(found), **_keys(found)})
        return
    _show(found)
    _show_use(found)


@app.command(cls=StyledCommand)
def fetch(as_json: AsJson = False) -> None:
    """Build or fetch every server now, so that later starts take seconds."""
    from perago.dev.recipes import PROGRAMS

    sources = _sources(quiet=as_json)
    found = {name: str(sources.program(name)) for name in PROGRAMS}
    if as_json:
        emit(found)
    else:
        fields({name: plain(path) for name, path in found.items()})


@app.command(cls=StyledCommand)
def status(name: Name = "", as_json: AsJson = False) -> None:
    """Show each server: whether it runs, where, since when and how big it is."""
    from perago.dev import Instance, instances

    home = _home()
    found = [Instance(each, home) for each in ([name] if name else instances(home))]
    if as_json:
        emit([_described(instance) for instance in found])
        return
    if not found:
        say("no instance here; [bold]perago dev up[/bold] starts one")
    for instance in found:
        _show(instance)


@app.command(cls=StyledCommand)
def down(
    name: Name = "default",
    everything: Annotated[
        bool, typer.Option("--all", help="Stop every instance of this directory.")
    ] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="Remove data, keys and logs as well.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Stop servers; data, keys and logs stay for the next time."""
    from perago.dev import Instance, instances

    home = _home()
    found = [Instance(each, home) for each in (instances(home) if everything else [name])]
    for instance in found:
        if purge:
            instance.purge()
        else:
            instance.stop()
    if as_json:
        emit({"stopped": [instance.name for instance in found], "purged": purge})
        return
    for instance in found:
        rest = "its data are removed" if purge else f"logs and data stay in {instance.directory}"
        say(f"[bold]{plain(instance.name)}[/bold] is down; {plain(rest)}")


@app.command(cls=StyledCommand)
def logs(
    server: Annotated[Server | None, typer.Argument(help="Only this server's.")] = None,
    name: Name = "default",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Follow the log as it grows.")
    ] = False,
    count: Annotated[
        int, typer.Option("--lines", "-n", min=0, help="How many lines of each log.")
    ] = 50,
    as_json: AsJson = False,
) -> None:
    """Print what the servers wrote."""
    from perago.dev import Instance
    from perago.dev.logs import lines
    from perago.errors import UsageError

    if as_json and follow:
        raise UsageError("a document that never ends is not JSON", remedy="drop --follow or --json")
    instance = Instance(name, _home())
    chosen: list[ServerName] = [server.value] if server else list(instance.record.servers)
    paths = {str(each): instance.log(each) for each in chosen}
    if as_json:
        emit([{"server": source, "line": line} for source, line in lines(paths, count)])
        return
    for source, line in lines(paths, count, follow=follow):
        say(plain(line) if server else f"[dim]{source:<9}[/dim] {plain(line)}")


@app.command(cls=StyledCommand, context_settings={"allow_interspersed_args": False})
def shell(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND...",
            help="What to run; your own shell when left out.",
            show_default=False,
        ),
    ] = None,
    name: Name = "default",
) -> None:
    """Open a shell with lakectl on its PATH and the addresses and keys of the servers set.

    With a command, run only that: perago dev shell -- lakectl repo list
    """
    import os

    from perago.dev import Instance
    from perago.dev.shell import become, refuse_stopped, surroundings, tools_in

    instance = Instance(name, _home())
    refuse_stopped(instance.record)
    if "lakefs" in instance.record.servers and not tools_in(instance.tools):
        instance.find_tools()
    if not command:
        note(f"[dim]servers of {plain(name)} are set up in this shell; leave it with: exit[/dim]")
    become(command or [], surroundings(instance.record, instance.tools, os.environ))


def _home() -> Path:
    from perago.app.local import settings_here

    return settings_here().home


def _sources(*, quiet: bool, docker: bool = False) -> Sources:
    from perago.dev import Sources
    from perago.dev.progress import narrator

    seen = _home().absolute() if docker else None
    return Sources(narrator=narrator(quiet=quiet), docker=seen)


def _show(instance: Instance) -> None:
    say(f"[bold]{plain(instance.name)}[/bold]  {plain(instance.directory)}")
    rows = [
        (
            each.server,
            _state(each),
            each.version,
            each.port,
            each.pid or "-",
            when(each.since) if each.state != "stopped" else "-",
            size(each.memory_bytes) if each.memory_bytes else "-",
        )
        for each in instance.status()
    ]
    table(("server", "state", "version", "port", "pid", "since", "memory"), rows)
    _show_tools(instance)


def _show_tools(instance: Instance) -> None:
    """Say where the tools are; lakectl is for lakeFS only."""
    from perago.dev.shell import tools_in

    for tool, path in tools_in(instance.tools).items():
        say(f"[dim]{tool}[/dim] is {plain(path)}")


def _show_use(instance: Instance) -> None:
    """Say where the servers are and how to use them."""
    from perago.dev.endpoints import variables

    addresses = {
        str(each.server): each.url for each in instance.status() if each.state == "running"
    }
    say("\nwhere they are")
    fields({name: plain(url) for name, url in addresses.items()})
    if variables(instance.record):
        file = shlex.quote(str(instance.environment))
        say("\nto use them in this shell")
        say(f"  [bold]set -a; . {plain(file)}; set +a[/bold]")
        say("or in a new one, with lakectl on its PATH")
        option = "" if instance.name == "default" else f" --name {instance.name}"
        say(f"  [bold]perago dev shell{plain(option)}[/bold]")


def _state(each: ServerStatus) -> Text:
    from rich.text import Text

    return Text(each.state, style=_STYLES[each.state])


def _described(instance: Instance) -> dict[str, object]:
    from dataclasses import asdict

    from perago.dev.shell import tools_in

    return {
        "name": instance.name,
        "directory": str(instance.directory),
        "blocks": instance.record.blocks,
        "servers": [{**asdict(each), "url": each.url} for each in instance.status()],
        "tools": {tool: str(path) for tool, path in tools_in(instance.tools).items()},
    }


def _keys(instance: Instance) -> dict[str, object]:
    """Return what a program needs to use the servers; only ``up`` prints it."""
    from dataclasses import asdict

    from perago.dev.endpoints import variables

    return {
        "environment": variables(instance.record),
        "environment_file": str(instance.environment),
        "s3": asdict(instance.s3) if "s3" in instance.record.servers else None,
    }
