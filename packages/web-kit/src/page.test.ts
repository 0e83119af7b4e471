import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Assets, addCommonAssets } from "./assets.ts";
import { html } from "./html.ts";
import { page } from "./page.ts";

const assets = new Assets();
addCommonAssets(assets);

describe("page", () => {
  it("has no script unless asked for one", async () => {
    const text = String(await page({ title: "T", assets, body: html`<p>x</p>` }));
    assert.doesNotMatch(text, /<script|htmx/);
    assert.match(text, /<html lang="en">/);
  });

  it("loads scripts from this origin, before the body, without inline scripts", async () => {
    const text = String(await page({ title: "T", assets, body: html``, scripts: [] }));
    const scripts = text.match(/<script[^>]*>/g) ?? [];
    assert.equal(scripts.length, 2);
    for (const script of scripts) assert.match(script, /^<script src="\/static\/[\w.-]+\.js">$/);
    assert.doesNotMatch(text, /<style|style="| on\w+="/);
  });

  it("escapes the title and the address of a refresh", async () => {
    const text = String(
      await page({ title: "<b>", assets, body: html``, refresh: { seconds: 3, url: '"/>' } }),
    );
    assert.match(text, /<title>&lt;b&gt;<\/title>/);
    assert.match(text, /content="3; url=&quot;\/&gt;"/);
  });
});
