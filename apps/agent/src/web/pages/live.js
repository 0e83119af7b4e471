// Says so when the page no longer follows the daemon: otherwise an old state would look like the present one.
function tellLost(lost) {
  document.getElementById("live-lost").hidden = !lost;
}

document.addEventListener("htmx:sse:error", () => tellLost(true));
document.addEventListener("htmx:sse:after:connection", () => tellLost(false));
