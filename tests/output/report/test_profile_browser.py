"""The page of a profile in a real browser."""

from __future__ import annotations

import pytest

from tests.output.report.pages import COMPLETE, choose, marks, texts, wait_until
from tests.profiles.synthetic import HOSTILE


def press(page, selector):
    """Press a button as a keyboard does."""
    from selenium.webdriver.common.keys import Keys

    page.find_element("css selector", selector).send_keys(Keys.ENTER)


def filter_by(page, name, value):
    choose(page, f"[name={name}]", value)
    wait_until(page, "document.getElementById('status').textContent.includes(' of ')")
    wait_until(page, COMPLETE)


@pytest.fixture
def page(profile_page):
    return profile_page


def test_every_figure_is_drawn_and_names_stay_text(page):
    drawn = marks(page)
    assert set(drawn) == {"time", "causes", "timeline"}
    assert drawn["timeline"] > 80
    assert page.execute_script("return document.querySelectorAll('main script').length") == 0
    shown = set(texts(page, "[data-table=builds] tbody th"))
    assert set(HOSTILE) <= shown
    assert any(HOSTILE[2] in text for text in texts(page, ".tree span"))
    page.execute_script(
        "const m = document.querySelector('#figure-timeline .role-mark path[aria-label*=script]')"
        " || document.querySelectorAll('#figure-timeline .mark-rect path')[8];"
        " m.dispatchEvent(new PointerEvent('pointermove', {bubbles: true}));"
        " m.dispatchEvent(new MouseEvent('mousemove', {bubbles: true}))"
    )
    assert page.execute_script("return document.querySelectorAll('img, iframe').length") == 0
    assert page.execute_script("return window.alerted") is None


def test_filters_narrow_timeline_and_tables(page):
    page.find_element("name", "function").send_keys("دالة")
    wait_until(page, "document.getElementById('status').textContent.includes(' of ')")
    wait_until(page, COMPLETE)
    assert set(texts(page, "[data-table=builds] tbody th")) == {HOSTILE[2]}
    press(page, "#filters [type=reset]")
    wait_until(page, "document.getElementById('status').textContent === ''")
    wait_until(page, COMPLETE)
    filter_by(page, "stage", "load")
    heads = texts(page, "[data-table=builds] thead button")
    assert "load" in heads
    assert "compile" not in heads
    loads = texts(page, f"[data-table=builds] tbody td:nth-child({heads.index('load') + 1})")
    assert loads
    assert "–" not in loads


def window(page):
    wait_until(page, "document.getElementById('figure-timeline').dataset.to")
    shown = "document.getElementById('figure-timeline').dataset"
    return page.execute_script(f"return [Number({shown}.from), Number({shown}.to)]")


def test_the_timeline_is_zoomed_with_the_keyboard_and_the_mouse(page):
    from selenium.webdriver.common.action_chains import ActionChains

    begin, end = window(page)
    assert begin == 0
    labels = texts(page, "#figure-timeline .role-axis-label text")
    press(page, "#figure-timeline [data-zoom=in]")
    press(page, "#figure-timeline [data-zoom=in]")
    wait_until(page, f"document.getElementById('figure-timeline').dataset.to < {end * 0.7}")
    first, last = window(page)
    assert last - first == pytest.approx((end - begin) / 4)
    assert "from" in texts(page, "#figure-timeline .shown")[0]
    wait_until(
        page,
        "[...document.querySelectorAll('#figure-timeline .role-axis-label text')]"
        f".map(e => e.textContent).join() !== {','.join(labels)!r}",
    )
    chart = page.find_element("css selector", "#figure-timeline svg")
    ActionChains(page).drag_and_drop_by_offset(chart, -100, 0).perform()
    wait_until(page, f"document.getElementById('figure-timeline').dataset.from > {first}", 10)
    # What is shown stays when a filter draws the figure anew.
    moved = window(page)
    filter_by(page, "stage", "compile")
    assert window(page) == moved
    press(page, "#figure-timeline [data-zoom=all]")
    wait_until(page, "document.getElementById('figure-timeline').dataset.from === '0'")
    assert window(page) == [begin, end]


def test_a_table_is_sorted_and_the_tree_opens_with_the_keyboard(page):
    press(page, "[data-table=functions] [data-column=builds]")
    place = texts(page, "[data-table=functions] thead button").index("builds")
    column = texts(page, f"[data-table=functions] tbody td:nth-child({place + 1})")
    counts = [int(text) for text in column]
    assert counts == sorted(counts, reverse=True)
    page.execute_script("document.querySelectorAll('.tree details').forEach(d => d.open = false)")
    press(page, ".tree summary")
    assert page.execute_script("return document.querySelector('.tree details').open")
