// Says so when the page no longer follows the daemon: otherwise an old state would look like the present one.
function tellLost(lost) {
  document.getElementById("live-lost").hidden = !lost;
}

document.addEventListener("htmx:sse:error", () => tellLost(true));
// A stream that has never begun is a plain request to htmx, and is not tried again.
for (const failed of ["htmx:error", "htmx:response:error"]) {
  document.addEventListener(failed, (event) => {
    if (event.target.hasAttribute?.("hx-sse:connect")) tellLost(true);
  });
}
document.addEventListener("htmx:sse:after:connection", () => tellLost(false));
