"""How soon the page answers: from the last key to epsilon, the curves and the theorems, in headless Chromium.

    python -m bench.page --times 20

Noisy SGD (Gaussian noise on Poisson samples, 10 000 steps). A new noise multiplier is typed, keys 80 ms apart; each
time is from the last key's event to the change of that part of the page, taken by the page itself.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from tests.service.outside import Process, prepared
from tests.service.pages.browser.found import FLAGS, chromium

_NOISE = '[id="s0.m.noise_multiplier"]'
_THERE = """() => new Promise(done => {
  const look = () => window.took.theorems === undefined ? setTimeout(look, 20) : done();
  look();
})"""
_WATCH = """() => {
  window.took = {};
  let key = 0;
  const typed = () => { key = performance.now(); window.took = {}; };
  document.getElementById("calculator").addEventListener("input", typed, true);
  for (const part of ['answer', 'curves', 'theorems'])
    new MutationObserver(() => { window.took[part] ??= performance.now() - key; })
      .observe(document.getElementById(part), {childList: true});
}"""


def measured(page: Page, times: int) -> dict[str, list[float]]:
    """Milliseconds of every part, for plans that were never asked before."""
    found: dict[str, list[float]] = {"answer": [], "curves": [], "theorems": []}
    page.evaluate(_WATCH)
    for number in range(times):
        page.fill(_NOISE, "")
        page.locator(_NOISE).press_sequentially(f"1.{100 + 7 * number}", delay=80)
        page.evaluate(_THERE)
        for part, took in page.evaluate("window.took").items():
            found[part].append(took)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        place = str(Path(home) / "privloss.db")
        prepared(place)
        running = Process(place, Path(home) / "log")
        try:
            running.await_ready()
            browser = playwright.chromium.launch(executable_path=chromium(), args=[*FLAGS])
            page = browser.new_page()
            page.goto(f"{running.place}/ui/calculator")
            found = measured(page, times)
            browser.close()
        finally:
            running.end()
    print(f"load {os.getloadavg()[0]:.1f}; milliseconds after the last key")
    for part, took in found.items():
        worst = sorted(took)[max(int(0.9 * len(took)) - 1, 0)]
        print(f"{part:<9} median {statistics.median(took):6.0f}   9 of 10 within {worst:6.0f}")


if __name__ == "__main__":
    main()
