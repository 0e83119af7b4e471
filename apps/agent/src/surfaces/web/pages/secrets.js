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

// The page that answers a form would stay in the history together with what was typed. Loading it again sends nothing.
document.addEventListener("DOMContentLoaded", () => history.replaceState(null, "", location.href));

// The daemon does not read a larger form, and could not give its text back: it stays where it was typed.
document.addEventListener("submit", (event) => {
  const form = event.target;
  const limit = Number(form.dataset.limit ?? Infinity);
  const body = new URLSearchParams(new FormData(form)).toString();
  // The browser sends each line end as two characters.
  const lineEnds = body.split("%0A").length - 1;
  if (body.length + lineEnds * "%0D".length <= limit) return;
  event.preventDefault();
  form.querySelector("[data-too-large]")?.remove();
  const words = document.createElement("p");
  words.className = "banner bad";
  words.dataset.tooLarge = "";
  words.setAttribute("role", "alert");
  words.textContent = "Not sent: the text is too large. A secret has at most 1 MiB.";
  form.prepend(words);
});
