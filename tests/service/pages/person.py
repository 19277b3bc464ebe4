"""Somebody at a browser, without the browser: keeps the cookie, sends the form token, says where forms come from."""

from __future__ import annotations

import re
from typing import Any

from httpx import Response

from tests.service.inside import Client, Service

OWN = {"sec-fetch-site": "same-origin"}
_FORM_TOKEN = re.compile(r'name="form_token" value="([A-Za-z0-9_-]{43})"')
SGD = {
    "s0.mechanism": "gaussian:0", "s0.m.noise_multiplier": "1.1", "s0.count": "10000", "s0.sampler": "poisson",
    "s0.q.rate": "0.01", "delta": "1e-6", "unit": "person", "adjacency": "add-remove",
}  # fmt: skip
GAUSSIAN = {"s0.mechanism": "gaussian:0", "s0.m.noise_multiplier": "20", "delta": "1e-6"}


class Person:
    """One person; `cookie` is what the browser keeps."""

    def __init__(self, service: Service, cookie: str = "") -> None:
        self.service, self.cookie, self.form_token = service, cookie, ""

    @classmethod
    def of(cls, service: Service, client: Client) -> Person:
        """Logged in with a token."""
        person = cls(service)
        assert person.login(client.token or "").status_code == 303
        return person

    def _request(self, method: str, path: str, headers: dict[str, str], **more: Any) -> Response:
        sent = {**headers, **({"cookie": f"__Host-privloss={self.cookie}"} if self.cookie else {})}
        found = self.service.http.request(method, path, headers=sent, **more)
        kept = found.headers.get("set-cookie", "")
        if kept.startswith("__Host-privloss="):
            self.cookie = kept.partition("=")[2].partition(";")[0]
        token = _FORM_TOKEN.search(found.text)
        if token:
            self.form_token = token[1]
        return found

    def get(self, path: str, **headers: str) -> Response:
        return self._request("GET", path, headers)

    def post(self, path: str, fields: dict[str, Any], headers: dict[str, str] = OWN, **more: Any) -> Response:
        """With the form token, unless the fields have one."""
        if self.cookie and not self.form_token:
            self.get("/ui/ledger")
        given = {"form_token": self.form_token} if self.form_token and "form_token" not in fields else {}
        return self._request("POST", path, headers, data={**given, **fields}, **more)

    def login(self, token: str) -> Response:
        self.form_token = ""
        return self._request("POST", "/ui/login", OWN, data={"token": token})
