"""Services for the tests of this folder."""

from __future__ import annotations

from tests.service.conftest import place as place
from tests.service.conftest import server as server
from tests.service.conftest import serving as serving
from tests.service.conftest import sqlite as sqlite
from tests.service.conftest import sqlite_place as sqlite_place
from tests.service.conftest import workers as workers
