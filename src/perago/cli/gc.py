"""``perago gc``: what dead attempts left here and on lakeFS, and versions past their retention."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from perago.cli.exits import exit_code
from perago.cli.screen import AsJson, emit, plain, say
from perago.protocol.printable import size

if TYPE_CHECKING:
    from perago.app.cleanup import StagingDecision
    from perago.app.local import Home
    from perago.errors import PeragoError


@dataclass(frozen=True, slots=True)
class Skipped:
    """What could not be looked at, why, and what to do about it."""

    what: str
    why: str
    remedy: str


@dataclass(slots=True)
class Garbage:
    """What goes, or would go; ``kept`` says why a directory or a staging branch stays."""

    deleted: bool
    directories: list[str] = field(default_factory=list)
    branches: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    unfinished: list[str] = field(default_factory=list)
    """Branches whose half-done replacement is completed, or would be (K3)."""
    objects: int = 0
    commits: int = 0
    bytes: int = 0
    skipped: list[Skipped] = field(default_factory=list)


def gc(
    repositories: Annotated[
        list[str] | None,
        typer.Option(
            "--repo",
            "-r",
            help="Also look at this lakeFS repository, asking Conductor; repeatable.",
        ),
    ] = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Really delete; without it, only show.")
    ] = False,
    older_than: Annotated[
        str, typer.Option(help="Keep replaced versions at least this long, such as 12h or 7d.")
    ] = "7d",
    staging_age: Annotated[
        str | None,
        typer.Option(
            help="With --repo: keep staging branches of tasks that Conductor does not know this "
            "long; as PERAGO_WORKSPACE_GC_TTL when left out.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Remove orphaned directories, staging branches of ended attempts, and unreachable content."""
    from perago.app.local import home_here, settings_here
    from perago.errors import RuntimeConfigError

    age = _seconds("--older-than", older_than)
    ttl = settings_here().gc_ttl_seconds
    staging = ttl if staging_age is None else _seconds("--staging-age", staging_age)
    home = home_here()
    found = Garbage(delete)
    for each in _judged(home, repositories or [], staging, delete=delete):
        name = f"{each.repository}/{each.branch}"
        if each.verdict.remove:
            found.branches.append(name)
        else:
            found.kept[name] = each.verdict.why
    _fenced(repositories or [], staging, found)
    problem = None
    if home.path.is_dir() or not repositories:
        problem = _tidy_here(home.existing(), age, ttl, found)
    if as_json:
        emit(asdict(found))
    else:
        _show(found)
    if problem is not None and not isinstance(problem, RuntimeConfigError):
        raise typer.Exit(exit_code(problem))


def _seconds(option: str, text: str) -> float:
    from perago.errors import UsageError
    from perago.settings import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{option} {text!r}", remedy=str(error)) from None


def _judged(
    home: Home, repositories: list[str], age: float, *, delete: bool
) -> list[StagingDecision]:
    """Ask Conductor about every staging branch first; only then is any of them removed."""
    if not repositories:
        return []
    from perago.app.cleanup import conductor_leftovers, drop_branches, executions_in_progress
    from perago.app.local import conductor_of, lakefs_here, settings_here

    client, store = conductor_of(settings_here()), lakefs_here()
    try:
        busy = executions_in_progress(home) if home.path.is_dir() else set()
        found = [
            each
            for repository in repositories
            for each in conductor_leftovers(store, client, repository, age, busy)
        ]
        if delete:
            drop_branches(
                store, ((each.repository, each.branch) for each in found if each.verdict.remove)
            )
    finally:
        client.close()
        store.close()
    return found


def _fenced(repositories: list[str], age: float, found: Garbage) -> None:
    """Tidy what the hard fence has left: half-done replacements and scratch branches."""
    if not repositories:
        return
    from perago.app.cleanup import drop_branches, finish_replacements, forgotten_scratch
    from perago.app.local import lakefs_here

    store = lakefs_here()
    for repository in repositories:
        finished = finish_replacements(store, repository, dry_run=not found.deleted)
        found.unfinished += [f"{repository}/{branch}" for branch in finished]
        scratch = list(forgotten_scratch(store, repository, age))
        found.branches += [f"{repository}/{branch}" for _, branch in scratch]
        if found.deleted:
            drop_branches(store, scratch)
    store.close()


def _tidy_here(home: Home, age: float, ttl: float, found: Garbage) -> PeragoError | None:
    """Tidy what runs without Conductor left; return why lakeFS could not be asked."""
    from perago.app.cleanup import drop_branches, orphaned_branches, sweep_rooms

    attempt_dirs = sweep_rooms(home, ttl, dry_run=not found.deleted)
    branches = orphaned_branches(home)
    if found.deleted:
        drop_branches(home.store, branches)
    problem = _tidy_lakefs(home, branches, found)
    freed = home.store.collect(age, dry_run=not found.deleted)
    found.directories += [str(each.path) for each in attempt_dirs if each.removed]
    found.kept |= {str(each.path): each.why for each in attempt_dirs if not each.removed}
    names = (f"{repository}/{branch}" for repository, branch in branches)
    found.branches += [name for name in names if name not in found.branches]
    found.objects, found.commits, found.bytes = freed.objects, freed.commits, freed.bytes_freed
    return problem


def _tidy_lakefs(home: Home, branches: list[tuple[str, str]], found: Garbage) -> PeragoError | None:
    """Add the branches that runs of this home left on lakeFS; the rest does not depend on it."""
    from perago.app.cleanup import drop_branches, lakefs_orphans, lakefs_repositories
    from perago.app.local import lakefs_here
    from perago.errors import NotFoundError, PeragoError

    repositories = lakefs_repositories(home)
    if not repositories:
        return None
    problem: PeragoError | None = None
    for repository, ended in repositories.items():
        try:
            with closing(lakefs_here()) as store:
                orphans = lakefs_orphans(store, repository, ended)
                if found.deleted:
                    drop_branches(store, orphans)
            branches += orphans
        except NotFoundError:
            continue  # The repository is gone, and all its branches with it.
        except PeragoError as error:
            name = f"staging branches of {repository} on lakeFS"
            found.skipped.append(Skipped(name, error.message, error.remedy))
            problem = problem or error
    return problem


def _show(found: Garbage) -> None:
    verb = "deleted" if found.deleted else "would delete"
    say(
        f"{verb} attempt directories: {len(found.directories)},"
        f" staging branches: {len(found.branches)}"
    )
    for branch in found.unfinished:
        done = "completed" if found.deleted else "would complete"
        say(f"{done} the unfinished replacement on {plain(branch)}")
    for name, why in found.kept.items():
        say(f"[dim]kept {plain(name)}: {plain(why)}[/dim]")
    say(
        f"{verb} {found.commits} unreachable commits and {found.objects} objects, "
        f"{size(found.bytes)}"
    )
    for each in found.skipped:
        said = f"{plain(each.what)}: {plain(each.why)}"
        say(f"[yellow]not looked at:[/yellow] {said}; {plain(each.remedy)}, then run it again")
    if not found.deleted:
        say("[dim]nothing was deleted; add --delete to do it[/dim]")
