// Values that were revealed are hidden again after this time, in milliseconds.
const HIDE_AFTER_MS = 30_000;

// Editing is offered only where it works.
document.documentElement.classList.add("scripted");

function hide(value) {
  const masked = document.createElement("span");
  masked.className = "masked";
  masked.textContent = "••••••••";
  value.replaceWith(masked);
}

// Values come with the page and later, one by one; each is hidden by its own clock, in the browser, so that a daemon
// that has gone cannot keep one on the screen.
const timed = new WeakSet();
function hideLater() {
  for (const value of document.querySelectorAll("[data-revealed]")) {
    if (timed.has(value)) continue;
    timed.add(value);
    setTimeout(() => {
      hide(value);
      if (document.querySelector("[data-revealed]") === null) forgetReveal();
    }, HIDE_AFTER_MS);
  }
}

// Loading the page again must not show the values again.
function forgetReveal() {
  const url = new URL(location.href);
  if (!url.searchParams.has("reveal")) return;
  url.searchParams.delete("reveal");
  history.replaceState(null, "", url);
}

// A row that was turned into inputs gets the focus; the browser's own autofocus works only once on a page.
function focusNew() {
  const input = document.querySelector("[data-focus]");
  input?.removeAttribute("data-focus");
  input?.focus();
}

new MutationObserver(() => {
  hideLater();
  focusNew();
}).observe(document, { childList: true, subtree: true });
