import { html, type Assets, type Html } from "@devplat/web-kit";
import { BRAND } from "../../../brand.ts";
import { plainPage } from "./layout.ts";

/** `/` for a browser without a session, where one is needed. */
export function lockedPage(assets: Assets): Html {
  return plainPage(
    assets,
    "Locked",
    html`<h1>Locked</h1>
      <p>
        Other users of this host could reach this page too, so the daemon lets a browser in only through a
        link of yours:
      </p>
      <pre class="code" tabindex="0" aria-label="Command">${BRAND.command} open</pre>
      <p class="hint">The link works once, for 30 seconds.</p>`,
  );
}

export function unlockedPage(assets: Assets): Html {
  return plainPage(
    assets,
    "Unlocked",
    html`<h1>Unlocked</h1>
      <p>This browser may use the daemon now. <a href="/">Continue</a></p>`,
    { seconds: 0, url: "/" },
  );
}

/** @param used the link was redeemed before, and the session that it opened has been ended for that */
export function linkRefusedPage(assets: Assets, used: boolean): Html {
  return plainPage(
    assets,
    "Link refused",
    used
      ? html`<h1>This link was used before</h1>
          <p class="banner bad" role="alert">
            It was opened before. If that was not you, another person has seen the link. The session that it
            opened has been ended.
          </p>
          <p>Get a new link with <code>${BRAND.command} open</code>.</p>`
      : html`<h1>This link does not work</h1>
          <p>A link works once, for 30 seconds. Get a new one with <code>${BRAND.command} open</code>.</p>`,
  );
}
