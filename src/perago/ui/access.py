"""Who may ask the page for what (Z4). Pure: a request comes in as values, an answer goes out."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Sent with every response: nothing is loaded from elsewhere, framed, guessed or kept."""
READING: Final = frozenset({"GET", "HEAD"})
OPEN: Final = "/static/"
"""The look of the page itself; there is nothing of a user in it."""
_AGAIN: Final = "open the address that 'perago ui' printed, or start it again for a new one"


@dataclass(frozen=True, slots=True)
class AccessKeys:
    """The secrets of one start: the token of the address, the cookie's value, that of forms."""

    token: str
    session: str
    form: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What counts of a request; texts that were not given are empty."""

    method: str
    path: str
    host: str
    origin: str = ""
    cookie: str = ""
    token: str = ""
    form: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """How the page was started."""

    hosts: frozenset[str]
    """The names and ports under which it is served."""
    origins: frozenset[str]
    keys: AccessKeys
    changes: bool = False
    """Whether more than looking is allowed."""


@dataclass(frozen=True, slots=True)
class Allow:
    """Go on."""


@dataclass(frozen=True, slots=True)
class Enter:
    """Give the cookie, and send the browser to the same place without the token."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Send the browser, which has the cookie, to the same place without the token."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Answer with one sentence and do nothing."""

    status: int
    why: str


Verdict = Allow | Enter | Leave | Deny


def judge(asked: Asked, rules: Rules, *, token_used: bool) -> Verdict:
    """Decide on one request. The token lets one browser in, once."""
    if asked.host not in rules.hosts:
        return Deny(421, f"this page is not served as {asked.host!r}")
    if asked.method in READING and asked.path.startswith(OPEN):
        return Allow()
    known = same(asked.cookie, rules.keys.session)
    if asked.token:
        return Leave() if known else _judge_token(asked, rules, used=token_used)
    if not known:
        return Deny(403, f"this browser has not been let in; {_AGAIN}")
    return Allow() if asked.method in READING else _judge_change(asked, rules)


def _judge_token(asked: Asked, rules: Rules, *, used: bool) -> Verdict:
    if asked.method == "GET" and not used and same(asked.token, rules.keys.token):
        return Enter()
    return Deny(403, f"this address is not valid, or was used already; {_AGAIN}")


def _judge_change(asked: Asked, rules: Rules) -> Verdict:
    if asked.method != "POST":
        return Deny(405, f"{asked.method} is not used here")
    if not rules.changes:
        return Deny(403, "this page only shows")
    if asked.origin and asked.origin not in rules.origins:
        return Deny(403, "the form was sent from another page")
    if not same(asked.form, rules.keys.form):
        return Deny(403, "the form is of an earlier start of the page; reload it and try again")
    return Allow()


def same(given: str, secret: str) -> bool:
    """Compare in a time that says nothing about the secret; an empty text is never it."""
    return bool(given) and hmac.compare_digest(given.encode(), secret.encode())
