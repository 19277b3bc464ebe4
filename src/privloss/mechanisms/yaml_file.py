"""Plan files in YAML: the same keys and rules as in JSON. Needs PyYAML, an optional package.

Read as YAML 1.2 reads numbers (1e-6 is one), and as strictly as JSON: no key twice, no references to other parts.
"""

from __future__ import annotations

import re
from typing import Any

from privloss.errors import InvalidPlan, MissingExtra

_NUMBER = re.compile(r"^[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$")


def decode_yaml(text: str) -> Any:
    """The contents of a plan file in YAML."""
    try:
        import yaml
    except ImportError:
        raise MissingExtra("plan files in YAML need PyYAML: pip install 'privloss[yaml]'.") from None
    try:
        return yaml.load(text, Loader=_loader(yaml))
    except yaml.YAMLError as problem:
        raise InvalidPlan(f"plan: is not YAML ({' '.join(str(problem).split())}).") from None
    except RecursionError:
        raise InvalidPlan("plan: is nested too deeply.") from None


def _loader(yaml: Any) -> Any:
    """PyYAML's safe loader, which takes 1e-6 for a word, lets keys come twice and follows references."""

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise InvalidPlan("plan: references (*name) are not read; write the part out.")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            seen = set()
            for key, _ in node.value:
                if key.value in seen:
                    raise InvalidPlan(f"{key.value}: is given twice in one object.")
                seen.add(key.value)
            found: dict[Any, Any] = super().construct_mapping(node, deep)
            return found

    Loader.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+.0123456789"))
    return Loader
