"use strict";
// Moves a chart's parameters `from` and `to`, the ends of its x axis: buttons, drag, Ctrl and wheel.
window.zoomable = (node, view, spec, before) => {
  const given = (name) => spec.params.find((one) => one.name === name).value;
  const whole = [given("from"), given("to")];
  const least = (whole[1] - whole[0]) * 1e-7;
  const state = before || { shown: [...whole] };
  let waiting = 0;
  const text = (seconds) => (seconds >= 1 ? `${Number(seconds.toPrecision(4))} s`
    : seconds >= 1e-3 ? `${Number((seconds * 1e3).toPrecision(4))} ms` : `${Number((seconds * 1e6).toPrecision(4))} µs`);
  const apply = () => {
    const [from, to] = state.shown;
    const all = from <= whole[0] && to >= whole[1];
    node.querySelector(".shown").textContent = all ? "" : `${text(to - from)} from ${text(from)} on`;
    if (waiting) return;
    waiting = requestAnimationFrame(() => {
      waiting = 0;
      node.dataset.from = state.shown[0];
      node.dataset.to = state.shown[1];
      state.view.signal("from", state.shown[0]).signal("to", state.shown[1]).runAsync();
    });
  };
  const show = (from, to) => {
    const length = Math.min(Math.max(to - from, least), whole[1] - whole[0]);
    const begin = Math.min(Math.max(from, whole[0]), whole[1] - length);
    state.shown = [begin, begin + length];
    apply();
  };
  const zoom = (factor, at) => {
    const [from, to] = state.shown;
    const middle = at ?? (from + to) / 2;
    show(middle - (middle - from) * factor, middle + (to - middle) * factor);
  };
  const move = (share) => {
    const [from, to] = state.shown;
    show(from + (to - from) * share, to + (to - from) * share);
  };
  state.view = view;
  const chart = node.querySelector(".chart");
  const drawing = chart.querySelector("svg");
  // Where a pointer is, in seconds.
  const at = (event) => {
    const left = drawing.getBoundingClientRect().left + state.view.origin()[0];
    return state.shown[0] + ((event.clientX - left) / state.view.width()) * (state.shown[1] - state.shown[0]);
  };
  drawing.style.touchAction = "pan-y";
  drawing.style.cursor = "grab";
  drawing.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, at(event));
  }, { passive: false });
  drawing.addEventListener("dblclick", (event) => { event.preventDefault(); zoom(0.25, at(event)); });
  drawing.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    let last = event.clientX;
    const moved = (next) => {
      move((last - next.clientX) / state.view.width());
      last = next.clientX;
    };
    const ended = () => {
      window.removeEventListener("pointermove", moved);
      for (const name of ["pointerup", "pointercancel"]) window.removeEventListener(name, ended);
      drawing.style.cursor = "grab";
    };
    drawing.style.cursor = "grabbing";
    window.addEventListener("pointermove", moved);
    for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, ended);
  });
  if (!before) {
    const ways = {
      in: () => zoom(0.5),
      out: () => zoom(2),
      earlier: () => move(-0.5),
      later: () => move(0.5),
      all: () => show(...whole),
    };
    for (const button of node.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", ways[button.dataset.zoom]);
    }
  }
  apply();
  return state;
};
