import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hostCookieName, readCookie, sessionCookie } from "./cookies.ts";

describe("readCookie", () => {
  it("finds one among others", () => assert.equal(readCookie("a=1; session=abc ;b=2", "session"), "abc"));
  it("does not take a name that only ends alike", () =>
    assert.equal(readCookie("xsession=1", "session"), undefined));
  it("takes the first of two", () => assert.equal(readCookie("s=1; s=2", "s"), "1"));
  it("is undefined without a header or a value's name", () => {
    assert.equal(readCookie(undefined, "s"), undefined);
    assert.equal(readCookie("", "s"), undefined);
    assert.equal(readCookie("s", "s"), undefined);
  });
});

describe("hostCookieName", () => {
  it("has by https the prefix that keeps sibling names from setting it, and by http none", () => {
    assert.deepEqual([hostCookieName("s", true), hostCookieName("s", false)], ["__Host-s", "s"]);
  });
});

describe("sessionCookie", () => {
  it("is out of reach of scripts and of other sites", () => {
    const cookie = sessionCookie({
      name: "s",
      value: "v",
      secure: true,
      maxAgeSeconds: 60,
      sameSite: "Strict",
    });
    assert.equal(cookie, "s=v; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure");
  });
  it("is Lax and without Secure where the page came by http", () => {
    const cookie = sessionCookie({ name: "s", value: "", secure: false, path: "/auth", maxAgeSeconds: 0 });
    assert.equal(cookie, "s=; Path=/auth; Max-Age=0; HttpOnly; SameSite=Lax");
  });
});
