// Runs in a page, where it gives a list of texts: buttons, links and fields that reach out of their card or of a box that
// clips them, tables that reach out of their card, texts that are cut off, and a page that scrolls sideways. Lengths are
// rounded: a fraction of a pixel is not seen.
(() => {
  const found = [];
  const root = document.documentElement;
  const name = (element) => {
    const text = element.getAttribute("aria-label") ?? element.textContent;
    const words = text.replaceAll(/\s+/g, " ").trim();
    return `${element.tagName.toLowerCase()}.${element.className} "${words.slice(0, 40)}"`;
  };
  const isShown = (element) => {
    const { width, height } = element.getBoundingClientRect();
    return element.checkVisibility({ visibilityProperty: true }) && width > 1 && height > 1;
  };
  const scrolls = (element) => /auto|scroll/.test(getComputedStyle(element).overflowX);
  if (root.scrollWidth > root.clientWidth) {
    found.push(`the page scrolls sideways by ${root.scrollWidth - root.clientWidth}`);
  }
  const parts =
    "a, button, input:not([type=hidden]), select, textarea, summary, .card .table, .badge, .status";
  for (const element of document.querySelectorAll(parts)) {
    if (!isShown(element) || element.classList.contains("skip")) continue;
    const { left, right, top, bottom } = element.getBoundingClientRect();
    if (right > root.clientWidth + 1 || left < -1) found.push(`${name(element)} is out of the window`);
    let around = element.parentElement;
    // What scrolls by itself, as a block of code does, is reached by scrolling it.
    for (; around !== null && around !== root && !scrolls(around); around = around.parentElement) {
      const { overflowX, overflowY } = getComputedStyle(around);
      const clips = overflowX !== "visible" || overflowY !== "visible";
      if (!clips && !around.matches(".card, .topbar, .banner")) continue;
      const box = around.getBoundingClientRect();
      const over = Math.max(box.left - left, right - box.right, box.top - top, bottom - box.bottom);
      if (Math.round(over) > 0)
        found.push(`${name(element)} is out of ${name(around).slice(0, 30)} by ${over}`);
    }
  }
  for (const button of document.querySelectorAll("main button, main a.button")) {
    if (!isShown(button)) continue;
    button.scrollIntoView({ block: "center" });
    const { left, top, width, height } = button.getBoundingClientRect();
    const hit = document.elementFromPoint(left + width / 2, top + height / 2);
    if (hit === null || !button.contains(hit)) found.push(`${name(button)} cannot be clicked`);
  }
  for (const element of document.querySelectorAll(".card, .card th, .card td, .card dd, .banner, .topbar")) {
    if (!isShown(element) || scrolls(element) || element.closest("thead") !== null) continue;
    const more = element.scrollWidth - element.clientWidth;
    if (more > 1 && element.clientWidth > 0) found.push(`${name(element)} holds ${more} more than is shown`);
  }
  return found;
})();
