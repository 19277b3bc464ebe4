"""Where a service is, and whether a token may be sent there.

>>> Address.of("https://budget.example.org/privloss")
Address(secure=True, host='budget.example.org', port=443, path='/privloss')
>>> Address.of("http://budget.example.org")
Traceback (most recent call last):
...
privloss.errors.InvalidInput: db = 'http://budget.example.org': plain http would show the token to the network; \
use https, or http to this machine (127.0.0.1, localhost, [::1]).
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from privloss.errors import InvalidInput


@dataclass(frozen=True)
class Address:
    """A service: whether it is spoken to through TLS, its host and port, and the path its routes begin with."""

    secure: bool
    host: str
    port: int
    path: str

    @classmethod
    def of(cls, text: str) -> Address:
        """Read one; the message of a refusal shows no more than scheme and host, lest a password be among the rest."""
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise InvalidInput("db = ...: is no address of a service, https://host[:port][/path].") from None
        shown = f"{parts.scheme}://{host or ''}"
        if parts.scheme not in ("https", "http") or not host or not text.isascii() or not text.isprintable():
            raise InvalidInput(f"db = {shown!r}: must be the address of a service, https://host[:port][/path].")
        if parts.username is not None or parts.query or parts.fragment:
            raise InvalidInput(f"db = {shown!r}: takes no user, query or fragment; the token is given as token=...")
        if parts.scheme == "http" and not loopback(host):
            raise InvalidInput(
                f"db = {shown!r}: plain http would show the token to the network; use https, or http to this machine "
                "(127.0.0.1, localhost, [::1])."
            )
        secure = parts.scheme == "https"
        return cls(secure, host, port or (443 if secure else 80), parts.path.rstrip("/"))

    @property
    def shown(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}{self.path}"


def loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
