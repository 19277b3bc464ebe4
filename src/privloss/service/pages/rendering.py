"""Templates and static files. Every value in a template is escaped; static files are read once, and have names that
change with their content, so that a browser may keep them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from privloss.service import access
from privloss.service.pages import words
from privloss.service.pages.visits import Visit

STATIC = "/ui/static/"
_MEDIA = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
_FOREVER = {"cache-control": "public, max-age=31536000, immutable"}


@dataclass(frozen=True)
class Static:
    """A file as it is sent."""

    content: bytes
    media: str

    def response(self) -> Response:
        return Response(self.content, headers=_FOREVER, media_type=self.media)


def _static() -> tuple[dict[str, Static], dict[str, str]]:
    """Files by the path they are served at, and these paths by the files' names."""
    files: dict[str, Static] = {}
    paths: dict[str, str] = {}
    for each in resources.files("privloss.service.pages").joinpath("static").iterdir():
        name, _, kind = each.name.rpartition(".")
        content = each.read_bytes()
        path = f"{STATIC}{name}.{hashlib.sha256(content).hexdigest()[:16]}.{kind}"
        files[path], paths[each.name] = Static(content, _MEDIA[kind]), path
    return files, paths


FILES, _PATHS = _static()
_ENVIRONMENT = Environment(
    loader=PackageLoader("privloss.service.pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=False,
)
_ENVIRONMENT.globals.update(
    static=lambda name: _PATHS[name], up=words.up, down=words.down, spent=words.spent, left=words.left
)
_ENVIRONMENT.filters.update(moment=words.moment, day=words.day, sort_parts=words.sort_parts)


def page(
    visit: Visit, template: str, code: int = 200, headers: dict[str, str] | None = None, /, **more: Any
) -> Response:
    """A page, or a part of one, for this visitor."""
    caller = visit.caller
    shown = {
        "visit": visit,
        "caller": caller,
        "may": lambda action: access.allowed(caller, action),
        "known": caller.role != access.NOBODY,
        "calculates": access.allowed(caller, "calculate")
        and (caller.role != access.NOBODY or visit.services.settings.public_calculator),
        "form_token": "" if visit.session is None else visit.session.form,
        **more,
    }
    return HTMLResponse(_ENVIRONMENT.get_template(template).render(shown), code, headers)
