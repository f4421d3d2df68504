#!/usr/bin/env python3
"""Reports in a real browser (headless Chromium): they load, filter, open a trajectory and restore a view
from its address, without a console message or a network request; hostile texts stay texts.

    browser.py PTXBENCH ROOT SCREENSHOTS
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    from selenium import webdriver
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    sys.exit("browser.py: no selenium in this Python; run scripts/setup.sh")

WAIT_S = 60
HOSTILE = '</script><script>window.pwned = 1</script><img src=x onerror="window.pwned = 2">"\'`${window.pwned = 3}'
BIDI = "if (admin\u202e \u2066// not\u2069) \u200b{"


class Browser:
    def __init__(self, binary, driver, folder, size=(1440, 1000)):
        options = webdriver.ChromeOptions()
        options.binary_location = binary
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--force-device-scale-factor=1", f"--user-data-dir={folder}", f"--window-size={size[0]},{size[1]}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = webdriver.ChromeService(executable_path=driver)
        self.driver = webdriver.Chrome(service=service, options=options)
        self.messages, self.requests = [], []

    def open(self, page, address=""):
        # A blank page between: only the hash differing would not load the page again.
        self.driver.get("about:blank")
        self.driver.get(page.as_uri() + "#" + address)
        self.until(lambda: self.js("return document.documentElement.dataset.ready"), "the page is not ready")

    def go(self, address):
        """Another view of the page that is open."""
        self.js("document.documentElement.dataset.ready = ''; location.hash = arguments[0]", address)
        self.until(lambda: self.js("return document.documentElement.dataset.ready"), f"no view {address}")

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def until(self, condition, what):
        WebDriverWait(self.driver, WAIT_S, poll_frequency=0.05).until(lambda _: condition(), what)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.js("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def theme(self, name):
        for _ in range(3):
            if self.js("return document.documentElement.dataset.theme") == name:
                return
            self.one("#theme").click()

    def settle(self):
        self.until(lambda: self.js("return [...document.querySelectorAll('.chart')].filter(c => c.visibleNow)"
                                   ".every(c => c.querySelector('svg') || c.classList.contains('nothing'))"), "plots are not drawn")

    def collect(self):
        self.messages += [m for m in self.driver.get_log("browser") if m["level"] in ("WARNING", "SEVERE")]
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])


checks = 0


def check(condition, what):
    global checks
    checks += 1
    if not condition:
        raise AssertionError(what)


def run(*arguments, codes=(0,)):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True)
    if done.returncode not in codes:
        sys.exit(f"browser.py: {' '.join(map(str, arguments))}: exit {done.returncode}: {done.stderr}")


def published(browser, page, shots):
    browser.open(page)
    check(browser.text("h1") == "Published results", "the title")
    check(browser.text(".tile b") == "13,674", "the number of turns")
    browser.settle()
    browser.driver.save_screenshot(shots / "overview_light.png")
    drawn = browser.js("return document.querySelector('#plot-levels').data.length")
    check(drawn >= 7, "the plot of levels has its levels")
    # Every plot draws; an image of each kind can be saved without leaving the page.
    for plot in ("rates", "levels", "alluvial", "repairs", "best", "fast", "tokens", "dates", "sizes"):
        browser.js("document.getElementById('plot-' + arguments[0]).scrollIntoView()", plot)
        browser.until(lambda: browser.js("return !!document.querySelector('#plot-' + arguments[0] + ' svg')", plot), plot)
        check(browser.js("return document.getElementById('plot-' + arguments[0]).data.length", plot) > 0, plot)
    for kind, start in (("svg", "data:image/svg+xml"), ("png", "data:image/png;base64,iVBOR")):
        image = browser.driver.execute_async_script(
            "Plotly.toImage(document.getElementById('plot-levels'), {format: arguments[0], width: 600, height: 400})"
            ".then(arguments[1], e => arguments[1](String(e)))", kind)
        check(image.startswith(start) and len(image) > 4000, f"a plot as {kind}")
    # A filter changes the tiles, the plots and the address.
    browser.js("window.scrollTo(0, 0)")
    browser.one("details[data-facet=model] summary").click()
    browser.one("details[data-facet=model] input[value='Gemini 3.1 Pro']").click()
    browser.until(lambda: browser.text(".tile b") == "1,472", "the filter by model")
    check("model=Gemini" in browser.driver.current_url, "the address holds the filter")
    browser.one("body").send_keys(Keys.ESCAPE)
    check(not browser.all("details.facet[open]"), "Escape closes the choices")
    browser.one("input[value=arch]").click()
    browser.until(lambda: "measure=arch" in browser.driver.current_url, "the measure")
    browser.theme("dark")
    browser.settle()
    browser.driver.save_screenshot(shots / "overview_dark.png")


def tables(browser, page, shots):
    browser.open(page, "view=results")
    check("105 of 105" in browser.text("main .note"), "all results")
    browser.driver.save_screenshot(shots / "results.png")
    browser.go("view=turns")
    rows = browser.all(".bigtable tbody tr:not(.spacer)")
    check(20 < len(rows) < 120, f"only rows in view exist, not {len(rows)}")
    check(browser.one(".bigtable table").get_attribute("aria-rowcount") == "13675", "rows are counted")
    [h for h in browser.all(".bigtable th button") if h.text == "speed-up"][0].click()
    check(browser.all("th[aria-sort=descending]")[0].text.startswith("speed-up"), "sorted by speed-up")
    check("1.012" in browser.all(".bigtable tbody tr")[0].text, "the fastest turn is on top")
    browser.one("#f-q").send_keys("timeout")
    browser.until(lambda: browser.text("main .note").startswith("1,721 of"), "the search")
    browser.one("#f-q").clear()
    browser.one("#f-q").send_keys("mha_bwd_d64")
    browser.until(lambda: "320 of" in browser.text("main .note"), "the search for a task")
    browser.js("const s = document.querySelector('#f-level'); s.value = '3'; s.dispatchEvent(new Event('change'))")
    browser.until(lambda: "320 of" not in browser.text("main .note"), "the filter by level")
    address = browser.driver.current_url.split("#", 1)[1]
    before = browser.text("main")
    browser.driver.save_screenshot(shots / "turns.png")
    browser.open(page, address)
    check(browser.text("main") == before, "the address restores the view")
    # Scrolling far down and keys.
    browser.go("view=turns")
    browser.js("document.querySelector('.bigtable').scrollTop = 1e7")
    browser.until(lambda: "gqa" in browser.text(".bigtable tbody") or "Qwen3.6-27B-s6" in browser.text(".bigtable tbody"), "the last rows")
    browser.js("document.querySelector('.bigtable').scrollTop = 0; document.querySelector('.bigtable').focus()")
    ActionChains(browser.driver).send_keys(Keys.HOME, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER).perform()
    browser.until(lambda: browser.all(".trajectory"), "Enter opens the trajectory")
    check(len(browser.all(".chip")) == 8, "its eight turns")
    check(browser.one(".chip[aria-pressed=true]").text.startswith("turn 2"), "the chosen turn")
    ActionChains(browser.driver).move_to_element(browser.one(".chip[aria-pressed=true]")).click().send_keys(Keys.ARROW_RIGHT).perform()
    browser.until(lambda: browser.one(".chip[aria-pressed=true]").text.startswith("turn 3"), "the arrow key goes on")
    browser.driver.back()
    browser.until(lambda: browser.all(".bigtable"), "going back leads to the table")


def others(browser, page, shots):
    browser.open(page, "view=compare")
    check(browser.js("return document.querySelector('#plot-compare').data[0].x.length") > 5, "comparisons are drawn")
    browser.js("const s = document.querySelector('#compare-a'); s.value = 'GLM-5.2'; s.dispatchEvent(new Event('change'))")
    check("GLM-5.2" in browser.text(".bigtable tbody tr"), "the comparison chosen")
    browser.driver.save_screenshot(shots / "compare.png")
    browser.go("view=tables")
    check(len(browser.all(".bigtable")) == 6, "six tables")
    browser.go("view=notes")
    check(browser.text("main").count("published-differs") == 4, "the four rows that differ are named")
    check("Wilson" in browser.text("main"), "the definitions are there")
    browser.driver.save_screenshot(shots / "notes.png")
    browser.driver.set_window_size(500, 900)
    for view in ("overview", "turns", "notes"):
        browser.go("view=" + view)
        wide = browser.js("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        check(wide <= 1, f"{view} is {wide} pixels too wide for a narrow window")
        browser.driver.save_screenshot(shots / f"narrow_{view}.png")
    browser.driver.set_window_size(1440, 1000)


def verdict(turn, source, **more):
    document = {"version": 1, "level": 2, "reason": "race" + HOSTILE, "message": "message " + HOSTILE, "label": "Runtime error",
                "tag": "H", "definition": "gemm" + HOSTILE, "workload": HOSTILE, "arch": "sm_90a", "axes": {"M": 1},
                "candidate": {"name": "bad.cu", "file": "bad.cu", "first_line": 1, "hash": "0", "source": source},
                "findings": [{"kind": "race", "severity": "fatal", "message": "finding " + HOSTILE, "hint": HOSTILE,
                              "source": {"file": "helper.h", "line": 9, "inlined_at": [{"file": "bad.cu", "line": 2}]}}],
                "diagnostics": [{"severity": "warning", "tool": "nvcc", "source": {"file": "bad.cu", "line": 3}, "message": HOSTILE}],
                "feedback": HOSTILE, "notes": [HOSTILE], "evidence": {"families": {HOSTILE: {"static": 1, "warps": 2, "threads": 3, "required": True}}},
                "trajectory": {"run": "run" + HOSTILE, "model": "model <b>" + HOSTILE + "%{x}", "id": "id" + HOSTILE, "turn": turn}}
    return {**document, **more}


def hostile(browser, program, folder, shots):
    runs = folder / "runs"
    runs.mkdir()
    first = ["int a;", HOSTILE, BIDI, *(f"line {i};" for i in range(40)), "last;"]
    second = [*first[:30], "added <b>line</b>", *first[30:-1]]
    for turn, lines in enumerate((first, second)):
        (runs / f"turn_{turn}.json").write_text(json.dumps(verdict(turn, "\n".join(lines))), encoding="utf-8")
    page = folder / "hostile.html"
    run(program, "report", runs, "--html", page, "--title", "<b>" + HOSTILE)
    browser.open(page, "view=trajectory&t=0&turn=0&pane=source")
    check(HOSTILE in browser.text("h1"), "the title is text")
    check(browser.text("#L2 code") == HOSTILE, "the source's line is shown as it is")
    check(browser.text("#L3 code") == "if (admin⟦U+202E⟧ ⟦U+2066⟧// not⟦U+2069⟧) ⟦U+200B⟧{", "hidden characters are shown")
    order = browser.js("return [...document.querySelectorAll('.source > *')].slice(0, 6).map(n => n.className)")
    check(order == ["line", "line hit", "finding fatal", "line hit", "finding warning", "line"], f"findings follow their lines: {order}")
    browser.driver.save_screenshot(shots / "source.png")
    browser.go("view=trajectory&t=0&turn=1&pane=diff")
    check([n.text for n in browser.all(".diff .plus code")] == ["added <b>line</b>"], "the added line")
    check([n.text for n in browser.all(".diff .minus code")] == ["last;"], "the removed line")
    check("unchanged lines" in browser.text(".diff .fold"), "what did not change is folded")
    browser.driver.save_screenshot(shots / "changes.png")
    browser.go("view=trajectory&t=0&turn=1&pane=verdict")
    check(browser.text(".verdict").count(HOSTILE) >= 5, "verdict, hint, notes and feedback are text")
    for view in VIEWS:
        browser.go("view=" + view)
        if view == "overview":
            for chart in browser.all(".chart"):
                browser.js("arguments[0].scrollIntoView(); arguments[0].draw()", chart)
        check(browser.js("return window.pwned === undefined && !document.querySelector('main img, main script, main b > b')"), f"{view}: markup came alive")


VIEWS = ("overview", "results", "turns", "compare", "tables", "notes", "trajectory")


def evaluated(browser, program, root, folder, shots):
    """Real verdicts: what `make demo` judges, and a candidate that fails."""
    for candidate, code in (("gemm_bf16.md", 0), ("wrong_tx_count.cu", 1)):
        file, page = folder / (candidate + ".json"), folder / (candidate + ".html")
        run(program, "eval", root / "examples/candidates" / candidate, "--task", "gemm_n7168_k5120", "--json", file, codes=(code,))
        run(program, "report", file, "--html", page)
        browser.open(page, "view=trajectory&t=0&pane=source")
        source = browser.text(".source")
        check("__global__" in source and len(browser.all(".line")) > 50, f"{candidate}: the source")
        if code == 1:
            check("deadlock" in browser.text(".finding.fatal"), "the finding stands at its line")
            check(browser.one(".line.hit").text.strip().startswith("56"), "line 56, as eval says")
        browser.driver.save_screenshot(shots / f"verdict_{code}.png")
        browser.go("view=trajectory&t=0&pane=verdict")
        check("wgmma.mma_async" in browser.text(".verdict"), f"{candidate}: the instructions")
        browser.go("view=overview")
        check(browser.text(".tile b") == "1", f"{candidate}: one turn")


def main(program, root, shots):
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not binary or not driver:
        sys.exit("browser.py: no chromium or chromedriver on PATH; run scripts/setup.sh")
    shots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        page = folder / "published.html"
        run(program, "report", root / "examples/published/turns.csv.gz", "--html", page, "--title", "Published results")
        browser = Browser(binary, driver, folder / "profile")
        try:
            for part in (lambda: published(browser, page, shots), lambda: tables(browser, page, shots), lambda: others(browser, page, shots),
                         lambda: hostile(browser, program, folder, shots), lambda: evaluated(browser, program, root, folder, shots)):
                part()
                browser.collect()
            check(len(browser.requests) > 10, "requests are seen at all")
            strange = [r for r in browser.requests if not r.startswith(("file://" + str(folder), "data:", "blob:", "about:", "chrome://"))]
            check(not strange, f"network requests: {strange[:3]}")
            check(not browser.messages, f"console: {browser.messages[:3]}")
        except Exception:
            browser.driver.save_screenshot(shots / "failure.png")
            raise
        finally:
            browser.driver.quit()
    print(f"{checks} checks passed; screenshots in {shots}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve())
