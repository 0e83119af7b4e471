import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hostCookieName, readCookie, sessionCookie } from "./cookies.ts";

describe("readCookie", () => {
  it("finds a cookie among others", () =>
    assert.equal(readCookie("a=1; session=abc ;b=2", "session"), "abc"));
  it("ignores a name that only ends with the wanted name", () =>
    assert.equal(readCookie("xsession=1", "session"), undefined));
  it("takes the first of two", () => assert.equal(readCookie("s=1; s=2", "s"), "1"));
  it("is undefined without a header or without a cookie of the name", () => {
    assert.equal(readCookie(undefined, "s"), undefined);
    assert.equal(readCookie("", "s"), undefined);
    assert.equal(readCookie("s", "s"), undefined);
  });
});

describe("hostCookieName", () => {
  it("has the __Host- prefix by https, and no prefix by http", () => {
    assert.deepEqual([hostCookieName("s", true), hostCookieName("s", false)], ["__Host-s", "s"]);
  });
});

describe("sessionCookie", () => {
  it("cannot be read by scripts or sent by other sites", () => {
    const cookie = sessionCookie({
      name: "s",
      value: "v",
      secure: true,
      maxAgeSeconds: 60,
      sameSite: "Strict",
    });
    assert.equal(cookie, "s=v; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure");
  });
  it("is Lax and not Secure if the page was sent by http", () => {
    const cookie = sessionCookie({ name: "s", value: "", secure: false, path: "/auth", maxAgeSeconds: 0 });
    assert.equal(cookie, "s=; Path=/auth; Max-Age=0; HttpOnly; SameSite=Lax");
  });
});
