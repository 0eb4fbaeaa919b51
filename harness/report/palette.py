"""The colours of all charts, and what the page and the images draw them with."""

from typing import Any

from harness.stages.registry import STAGES

# Okabe and Ito's palette: told apart with any colour vision, and in print.
GREY, SKY, ORANGE, VERMILLION, GREEN = "#999999", "#56B4E9", "#E69F00", "#D55E00", "#009E73"
BLUE, PINK, OLIVE = "#0072B2", "#CC79A7", "#B8A100"

STAGE_COLOURS = {stage.name: stage.colour for stage in STAGES.values()}

PARTS = {
    "import": OLIVE,
    "backend": PINK,
    **{name: STAGE_COLOURS[name] for name in ("trace", "lower", "compile", "load")},
    "write": BLUE,
}
"""Of a process's time in a profile, in the order in which they happen."""

VERDICT_COLOURS = {
    "broken": PINK,
    "slower": VERMILLION,
    "faster": GREEN,
    "same": SKY,
    "unsure": ORANGE,
    "incomparable": GREY,
}

CONFIG: dict[str, Any] = {
    "background": None,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "titleFontWeight": "normal",
        "titleOpacity": 0.75,
        "domainColor": "currentColor",
        "domainOpacity": 0.3,
        "tickColor": "currentColor",
        "tickOpacity": 0.3,
        "gridColor": "currentColor",
        "gridOpacity": 0.12,
        "labelFontSize": 12,
        "titleFontSize": 12,
    },
    "legend": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "orient": "top",
        "columns": 8,
        "symbolType": "square",
        "labelFontSize": 12,
        "titleFontSize": 12,
    },
    "text": {"color": "currentColor"},
    "rule": {"color": "currentColor"},
}
"""The colour of text is the page's, so that dark, light and print need one drawing."""
