"""What a service is set to; checked before anything is opened."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from privloss.errors import InvalidInput
from privloss.numerics import check

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
_SECONDS = (
    "price_seconds", "rate", "receive_seconds", "keep_alive_seconds", "answer_seconds", "grace_seconds", "price_cpu",
)  # fmt: skip
CALCULATOR = ("loopback", "public", "off")  # who may use the calculator without a token


@dataclass(frozen=True)
class Settings:
    """Defaults suit one machine, without any configuration."""

    host: str = "127.0.0.1"
    port: int = 8080
    host_names: tuple[str, ...] = ()  # by which it is reached, besides the local ones
    tls_cert: Path | None = None
    tls_key: Path | None = None
    behind_proxy: tuple[str, ...] = ()  # addresses whose X-Forwarded-* are believed
    price_seconds: float = 10.0  # for one job of a worker
    price_workers: int = 2
    rate: float = 20.0  # requests a second of one token
    calculator: str = "loopback"
    metrics_port: int | None = None  # on this machine only, without a token

    # what no caller needs more of
    longest_body: int = 2**20
    longest_headers: int = 16 * 1024
    receive_seconds: float = 10.0
    keep_alive_seconds: float = 5.0
    answer_seconds: float = 30.0  # for which an answer waits for its client to read on
    grace_seconds: float = 30.0
    connections: int = 200
    threads: int = 16
    waiting: int = 64  # requests that wait for a thread; the next is told `busy`
    price_waiting: int = 16
    price_each: int = 2  # jobs of one token at once
    price_cpu: float = 20.0  # seconds of pricing of one token in a minute
    failed_logins: int = 10  # of one address in a minute

    def __post_init__(self) -> None:
        for name in _SECONDS:
            check.number(name, getattr(self, name), low=0, high=1e6, above=True)
        for name in ("price_workers", "connections", "threads", "waiting", "longest_body", "longest_headers"):
            check.count(name, getattr(self, name))
        for name in ("port", "metrics_port"):
            port = getattr(self, name)
            if port is not None and not 0 <= port <= 65535:
                raise InvalidInput(f"{name} = {port!r}: must be a port, 0 to 65535.")
        check.choice("calculator", self.calculator, CALCULATOR)
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidInput("tls: give a certificate and its key, or neither.")
        for each in self.behind_proxy:
            _network(each)

    def context(self) -> ssl.SSLContext:
        """TLS 1.2 or later, by the certificate."""
        found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        found.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            found.load_cert_chain(str(self.tls_cert), None if self.tls_key is None else str(self.tls_key))
        except OSError as problem:
            raise InvalidInput(f"tls: certificate and key cannot be used ({problem.strerror}).") from None
        return found

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    @property
    def tls(self) -> bool:
        return self.tls_cert is not None

    @property
    def names(self) -> frozenset[str]:
        """Every Host that is answered, without its port."""
        return frozenset(name.lower() for name in (*LOCAL_NAMES, *self.host_names))

    @property
    def public_calculator(self) -> bool:
        """Whether the calculator answers without a token. Behind a proxy everybody comes from this machine."""
        local = self.loopback and not self.behind_proxy
        return self.calculator == "public" or (self.calculator == "loopback" and local)


def _network(address: str) -> None:
    """Whoever is believed is named: no pattern, no name that somebody else may resolve."""
    try:
        found = ipaddress.ip_network(address)
    except ValueError:
        raise InvalidInput(f"behind_proxy = {address!r}: must be the address of a proxy, or its network.") from None
    if found.prefixlen == 0:
        raise InvalidInput(f"behind_proxy = {address!r}: would believe everybody.")
