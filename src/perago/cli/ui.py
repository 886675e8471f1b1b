"""``perago ui``: the history of this home in a browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from perago.cli.screen import AsJson, emit_keys, note, plain, say


def ui(
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 0,
    opened: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser of this machine.")
    ] = False,
    home: Annotated[
        Path | None, typer.Option(help="Show this home instead of the configured one.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to serve on; others than this machine need TLS.")
    ] = "127.0.0.1",
    certificate: Annotated[
        Path | None, typer.Option("--tls-cert", help="Certificate (PEM) to serve with.")
    ] = None,
    key: Annotated[Path | None, typer.Option("--tls-key", help="Its private key (PEM).")] = None,
    proxy: Annotated[
        str,
        typer.Option(
            "--behind-proxy",
            metavar="ADDRESS",
            help="Public address of a proxy in front, such as https://data.example.com.",
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show runs, attempts, versions and what changed between them, live.

    The address holds a token that lets one browser in, once. The page only reads. Ctrl-C ends it.
    """
    from dataclasses import replace
    from threading import Thread

    from perago.app.local import settings_here
    from perago.ui.serving import Serving, open_browser, serve

    settings = settings_here()
    if home is not None:
        settings = replace(settings, home=home)

    def begun(address: str) -> None:
        if as_json:
            emit_keys({"address": address})
        else:
            say(f"the page is at  {plain(address)}")
            say("[dim]the address works once, in one browser; Ctrl-C ends the page[/dim]")
        sys.stdout.flush()
        if opened:
            # A browser in this terminal would wait for the page, which waits for us.
            Thread(target=open_browser, args=(address, absent), daemon=True).start()

    def absent() -> None:
        note("no browser was found here: open the address yourself")

    serve(settings, Serving(host, port, certificate, key, proxy), begun)
