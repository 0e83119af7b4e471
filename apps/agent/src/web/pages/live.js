// Says so when the page no longer follows the daemon: otherwise an old state would look like the present one.
// Runs as a deferred script after htmx.
const notice = document.getElementById("live-lost");

document.addEventListener("htmx:sse:error", () => {
  notice.hidden = false;
});
document.addEventListener("htmx:sse:after:connection", () => {
  notice.hidden = true;
});
