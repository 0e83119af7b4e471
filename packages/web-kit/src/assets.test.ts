import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Assets, addCommonAssets } from "./assets.ts";

describe("Assets", () => {
  it("serves a file under a name with the digest of its content", () => {
    const assets = new Assets();
    addCommonAssets(assets);
    const path = assets.path("kit.css");
    assert.match(path, /^\/static\/kit\.[0-9a-f]{8}\.css$/);
    assert.equal(assets.find(path)?.type, "text/css; charset=utf-8");
    assert.equal(assets.find("/static/kit.css"), undefined);
  });

  it("refuses a name that was not added and an ending that it cannot serve", () => {
    assert.throws(() => new Assets().path("none.css"), RangeError);
    assert.throws(() => new Assets().add("a.html", new URL(import.meta.url)), TypeError);
  });
});

describe("kit.css", () => {
  it("loads nothing from elsewhere", () => {
    const assets = new Assets();
    addCommonAssets(assets);
    const css = assets.find(assets.path("kit.css"))?.body.toString() ?? "";
    assert.ok(css.length > 0);
    assert.doesNotMatch(css, /url\(|@import/);
  });
});
