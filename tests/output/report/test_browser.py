"""The page in a real browser."""

from __future__ import annotations

import base64
import itertools
import re

import pytest
from axe_core_python.selenium import Axe

from harness.frame.startup import STACKED
from harness.output.report.page import render
from tests.output.report.pages import COMPLETE, choose, emulate, marks, reported, texts, wait_until
from tests.output.report.synthetic import HOSTILE, frame

FIGURES = 9


def pointed_at(page):
    """Return what the tooltip says of the first bar of the first figure."""
    page.execute_script(
        "const bar = document.querySelector('#figure-stages svg .mark-rect.role-mark path');"
        "for (const type of ['pointerover', 'pointermove'])"
        " bar.dispatchEvent(new PointerEvent(type, {bubbles: true}))"
    )
    return wait_until(page, "document.querySelector('#vg-tooltip-element')?.innerText", 10)


def test_every_figure_is_drawn_says_its_units_and_can_be_read_as_a_table(page):
    drawn = marks(page)
    assert len(drawn) == FIGURES
    assert all(count > 1 for count in drawn.values()), drawn
    labels = texts(page, "#figure-scaling [aria-label^='Y-axis'] .role-axis-label text")
    assert {"10 ms", "100 ms", ""} <= set(labels)
    assert "90 ms" not in labels
    page.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    for name in page.execute_script(
        "return [...document.querySelectorAll('[data-figure]')].map(f => f.dataset.figure)"
    ):
        wait_until(page, f"document.querySelector('#figure-{name} details tbody tr')")
    captions = page.execute_script(
        "return [...document.querySelectorAll('table')].every(t => t.caption.textContent &&"
        " t.querySelectorAll('thead th[scope=col][aria-sort]').length)"
    )
    assert captions
    history = texts(page, "#figure-history details tbody tr")
    assert len(history) == 6
    said = pointed_at(page)
    assert re.search(r"time:?\s+[\d.]+ (ms|s)\b", said), said


def test_hostile_names_stay_text(page):
    assert page.execute_script("return document.querySelectorAll('main script').length") == 0
    assert page.execute_script("return document.querySelectorAll('main b, main i').length") == 0
    page.execute_script(
        "[...document.querySelectorAll('button.more')].forEach(b => b.click())"
        " || document.querySelectorAll('details').forEach(d => d.open = true)"
    )
    shown = set(texts(page, "[data-table=cases] tbody th"))
    assert set(HOSTILE) <= shown
    labels = " ".join(texts(page, "#figure-stages svg text"))
    assert "<!-- size=" in labels
    assert any(name in pointed_at(page) for name in HOSTILE)
    assert page.execute_script("return document.querySelectorAll('img, iframe').length") == 0


def test_an_inline_handler_and_a_foreign_script_would_be_refused(chromium, hostile_page, tmp_path):
    broken = tmp_path / "broken.html"
    attack = '<img src="https://example.invalid/x.png"><script>window.broken = 1</script></main>'
    broken.write_text(hostile_page.replace("</main>", attack, 1), encoding="utf-8")
    chromium.get_log("browser")
    chromium.get(broken.as_uri())
    wait_until(chromium, COMPLETE)
    assert chromium.execute_script("return window.broken") is None
    said = " ".join(entry["message"] for entry in chromium.get_log("browser"))
    assert "script-src" in said
    assert "img-src" in said


def test_a_filter_acts_on_figures_and_tables_and_says_where_nothing_fits(page):
    page.find_element("name", "workload").send_keys("GOOD.work")
    wait_until(page, "document.getElementById('status').textContent.startsWith('20 of')")
    wait_until(page, COMPLETE)
    assert set(texts(page, "[data-table=cases] tbody th")) == {"good.Work"}
    labels = " ".join(texts(page, "#figure-stages svg text"))
    assert "good.Work size=4096" in labels
    assert "script" not in labels
    assert texts(page, "#figure-history [data-pick=name] option")[0].startswith("good.Work")
    choose(page, "[name=stage]", "compile")
    wait_until(page, "document.getElementById('status').textContent.startsWith('4 of')")
    wait_until(page, COMPLETE)
    heads = texts(page, "[data-table=cases] thead button")
    assert "compile" in heads
    assert "trace" not in heads
    page.find_element("name", "workload").send_keys("no such workload")
    wait_until(page, "document.querySelector('#figure-stages .empty')")
    wait_until(page, COMPLETE)


@pytest.mark.nightly
def test_what_a_filter_changed_says_what_is_said_when_it_is_drawn_anew(page):
    said = (
        "return [...document.querySelectorAll('.chart')].filter(c => c.getClientRects().length)"
        ".map(c => [...c.querySelectorAll('path, text')]"
        ".map(e => e.ariaLabel || e.textContent).filter(Boolean).sort())"
    )
    drawn = page.execute_script(said)
    for name, value in (("stage", "compile"), ("one_case", "good.Work size=64")):
        choose(page, f"[name={name}]", value)
        wait_until(page, f"{COMPLETE} && location.search.includes('{name}=')")
        before, drawn = drawn, page.execute_script(said)
        page.refresh()
        wait_until(page, COMPLETE)
        assert drawn == page.execute_script(said) != before, name


def test_a_browser_that_cannot_unpack_the_data_is_told_so(page):
    script = {"source": "delete window.DecompressionStream"}
    added = page.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", script)
    try:
        page.refresh()
        status = wait_until(page, "document.getElementById('status').textContent")
    finally:
        page.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)
    assert status == "Figures and tables need a browser of 2023 or later."


@pytest.mark.nightly
def test_a_search_is_one_step_back_however_often_its_typist_paused(page):
    before = page.execute_script("return history.length")
    for typed, whole in (("GOOD", "GOOD"), (".wo", "GOOD.wo"), ("rk", "GOOD.work")):
        page.find_element("name", "workload").send_keys(typed)
        wait_until(page, f"location.search === '?workload={whole}'")
    assert page.execute_script("return history.length") == before + 1
    page.back()
    wait_until(page, f"{COMPLETE} && !location.search")
    assert page.find_element("name", "workload").get_attribute("value") == ""


def shown_sections(page):
    return page.execute_script(
        "return [...document.querySelectorAll('main > section[id]')].filter(s => !s.hidden)"
        ".map(s => s.id)"
    )


@pytest.mark.nightly
def test_a_case_has_a_page_of_its_own_with_an_address(page):
    everything = shown_sections(page)
    page.find_element("link text", "good.Work").click()
    wait_until(page, COMPLETE)
    name = page.find_element("id", "one-case").text
    assert re.fullmatch(r"good\.Work size=\d+", name)
    assert page.title == f"{name} · Benchmarks of box"
    assert page.current_url.endswith(f"?one_case={name.replace(' ', '+').replace('=', '%3D')}")
    assert shown_sections(page) == ["stages", "verdicts", "samples", "history", "facts"]
    summary = page.find_element("css selector", "#figure-stages .summary").text
    assert re.fullmatch(r"Of \d+ rows 5 fit the filters\.", summary)
    heads = texts(page, "[data-table=cases] thead button")
    assert heads[:2] == ["trace", "lower"]
    assert "first_call" not in heads
    choose(page, "#figure-samples [data-pick=stage]", "lower")
    wait_until(page, COMPLETE)
    address = page.current_url
    page.back()
    page.back()
    wait_until(page, f"{COMPLETE} && !location.search")
    assert shown_sections(page) == everything
    assert page.title == "Benchmarks of box"
    # Who is sent the address sees the same.
    page.get(address)
    wait_until(page, COMPLETE)
    assert shown_sections(page) == ["stages", "verdicts", "samples", "history", "facts"]
    chosen = "document.querySelector('#figure-samples [data-pick=stage]').value"
    assert page.execute_script(f"return {chosen}") == "lower"
    assert marks(page)["samples"] == 16


@pytest.mark.nightly
def test_a_view_is_a_link_and_what_the_report_lacks_is_said(page):
    page.find_element("link text", "Fastest growing").click()
    wait_until(page, f"{COMPLETE} && location.hash === '#scaling'")
    exponents = [float(text) for text in texts(page, "[data-table=growth] tbody td:nth-child(3)")]
    assert exponents == sorted(exponents, reverse=True)
    file = page.current_url.partition("#")[0]
    page.get(f"{file}?one_case=gone.Case&change=same")
    wait_until(page, COMPLETE)
    assert page.find_element("id", "status").text == "Not in this report: gone.Case."
    assert set(texts(page, "[data-table=verdicts] tbody td:nth-child(4)")) == {"same"}
    page.find_element("css selector", "button[type=reset]").click()
    wait_until(page, "!location.search")


def test_any_two_nights_stand_side_by_side(page):
    table = "#history [data-pair] table"
    assert len(texts(page, f"{table} tbody tr")) == 20
    choose(page, "[data-moment=before]", texts(page, "[data-moment=before] option")[0])
    wait_until(page, COMPLETE)
    # From the middle on the first workload's compiles take half as long again.
    ratios = [float(text.split()[0]) for text in texts(page, f"{table} td:nth-child(5)")[:4]]
    assert texts(page, f"{table} td:nth-child(2)")[:4] == ["compile"] * 4
    assert all(1.4 < ratio < 1.6 for ratio in ratios)
    assert "pair.before=2026-01-01" in page.current_url


@pytest.mark.nightly
def test_of_many_cases_those_that_take_longest_are_drawn(show):
    rows = frame([f"family.Work{number}" for number in range(50)], sizes=(64,))
    number = rows["workload"].str.removeprefix("family.Work").astype(int)
    rows["value"] = 1e-3 * (1 + number * 7 % 50)  # no two alike
    page = show(render(reported(rows)))
    for chosen in ("", "compile"):
        wait_until(page, COMPLETE)
        kept = rows[rows["stage"].isin([chosen] if chosen else STACKED)]
        longest = kept.groupby("workload")["value"].sum().nlargest(20)
        drawn = texts(page, "#figure-stages [aria-label^='Y-axis'] .role-axis-label text")
        assert drawn == [f"{name} size=64" for name in longest.index], chosen
        choose(page, "[name=stage]", "compile")
        wait_until(page, "location.search === '?stage=compile'")


def test_a_long_table_is_sorted_and_unfolded_and_the_focus_stays(page):
    from selenium.webdriver.common.keys import Keys

    def button():
        return page.find_element("css selector", "[data-table=cases] [data-column=compile]")

    def column():
        cells = texts(page, "[data-table=cases] tbody td:nth-child(5)")
        scale = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
        return [float(t.split()[0]) * scale[t.split()[1]] for t in cells if t != "–"]

    button().send_keys(Keys.ENTER)
    assert column() == sorted(column(), reverse=True)
    head = "document.querySelector('[data-table=cases] [aria-sort=descending]').textContent"
    assert page.execute_script(f"return {head}") == "compile"
    focused = page.execute_script("return document.activeElement.dataset.column")
    assert focused == "compile"
    page.switch_to.active_element.send_keys(Keys.SPACE)
    assert column() == sorted(column())
    caption = "document.querySelector('[data-table=cases] caption').textContent"
    assert page.execute_script(f"return {caption}").endswith("(20 of 44)")
    page.execute_script("document.querySelector('[data-table=cases] .more').click()")
    assert page.execute_script(f"return {caption}").endswith("(44)")
    assert page.switch_to.active_element.text == "Show the first 20"


def test_dark_follows_the_system_and_the_button(page):
    colour = "return getComputedStyle(document.body).backgroundColor"
    assert page.execute_script(colour) == "rgb(255, 255, 255)"
    emulate(page, prefers_color_scheme="dark")
    assert page.execute_script(colour) == "rgb(21, 24, 27)"
    assert page.find_element("id", "theme").text == "Light theme"
    page.find_element("id", "theme").click()
    assert page.execute_script(colour) == "rgb(255, 255, 255)"
    assert page.find_element("id", "theme").text == "Dark theme"


BROKEN_WORDS = """
const broken = [];
for (const cell of document.querySelectorAll("[data-table=cases] tbody th")) {
  const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  for (let text; cell.textContent.startsWith("good.") && (text = texts.nextNode());)
    for (const word of text.data.matchAll(/\\S+/g)) {
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      if (range.getClientRects().length > 1) broken.push(word[0]);
    }
}
return broken;
"""
"""Words of the first table of which a part is on another line."""


def test_what_a_table_has_no_room_for_is_folded_under_its_row(either):
    for width in (390, 1280):
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
        either.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        either.refresh()
        wait_until(either, COMPLETE)
        assert either.execute_script("return document.documentElement.scrollWidth") <= width
        wide = (
            "[...document.querySelectorAll('.scroll')]"
            ".filter(e => e.scrollWidth > e.clientWidth).map(e => e.innerText)"
        )
        assert either.execute_script(f"return {wide}") == []
        if "Profile of" not in either.title:
            either.execute_script("document.querySelector('[data-table=cases] .more').click()")
            assert either.execute_script(BROKEN_WORDS) == []
            numbers = "[data-table=cases] tbody tr:not(.fold):first-child td.number"
            assert len(texts(either, numbers)) >= (2 if width < 500 else 4)
            first = texts(either, "[data-table=cases] tbody th")[-1]
            assert ("size=" in first) == (width < 500)  # its case is below a workload
    table = "[data-table=verdicts], [data-table=causes]"
    for turn in either.find_elements("css selector", f":is({table}) tbody .turn"):
        row = turn.find_element("xpath", "ancestor::tr/following-sibling::tr[1]")
        # Remedies are open from the start, reasons are not.
        is_open = turn.get_attribute("aria-expanded") == "true"
        assert is_open == row.is_displayed() == ("Profile of" in either.title)
        either.execute_script("arguments[0].click()", turn)
        assert row.is_displayed() != is_open
        break
    else:
        pytest.fail("no row has more than fits")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    ("either", "view"),
    [
        pytest.param("page", "", marks=pytest.mark.nightly),
        pytest.param("page", "?one_case=good.Work+size%3D64", marks=pytest.mark.nightly),
        ("page", "?workload=nothing"),
        ("profile_page", ""),
    ],
    indirect=["either"],
)
def test_who_does_not_see_it_or_has_no_mouse_can_read_it(either, view):
    """By axe-core's rules; dark colours differ in contrast alone."""
    address = either.current_url
    either.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})  # what judges it is a script
    try:
        for colours, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
            emulate(either, prefers_color_scheme=colours)
            if colours == "light":
                either.get(address + view)
            wait_until(either, COMPLETE)
            either.execute_script(
                "document.querySelectorAll('details').forEach(d => d.open = true)"
            )
            found = Axe().run(either, options=rules)
            wrong = [(rule["id"], rule["nodes"][0]["html"]) for rule in found["violations"]]
            assert wrong == [], colours
            assert len(found["passes"]) > (30 if colours == "light" else 0)
    finally:
        either.execute_cdp_cmd("Page.setBypassCSP", {"enabled": False})


def test_headings_are_in_order_and_controls_are_labelled_and_not_printed(either):
    levels = either.execute_script(
        "return [...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    unlabelled = either.execute_script(
        "return [...document.querySelectorAll('input, select')].filter(e => !e.labels.length)"
    )
    assert unlabelled == []
    emulate(either, "print")
    shown = (
        "[...document.querySelectorAll('#filters, .zoom')].map(e => getComputedStyle(e).display)"
    )
    assert set(either.execute_script(f"return {shown}")) == {"none"}
    printed = base64.b64decode(either.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert printed.startswith(b"%PDF")
    assert printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ") >= 2
