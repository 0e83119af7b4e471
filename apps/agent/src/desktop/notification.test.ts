import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { bodyMarkup, titleText, withoutControls } from "./notification.ts";

describe("texts of a notification", () => {
  it("control characters are stripped", () => {
    assert.equal(withoutControls("a\u0007b\u001b[31mc\u0000d\u007fe\u009bf"), "ab[31mcdef");
    assert.equal(withoutControls("one\r\ntwo\tthree\u2028four"), "one two three four");
    assert.equal(withoutControls(" \n\u0007 "), "");
  });

  it("characters that turn the direction of writing are stripped", () => {
    assert.equal(withoutControls("exe.\u202egpj\u202c \u2066a\u2069"), "exe.gpj a");
  });

  it("letters of every script and emoji stay", () => {
    for (const text of ["ä ß", "日本語", "שלום", "👩‍💻", "e\u0301"]) assert.equal(withoutControls(text), text);
  });

  it("markup becomes entities in the body, and letters that look alike in the title", () => {
    assert.equal(bodyMarkup('<a href="x">&amp;</a>'), '&lt;a href="x"&gt;&amp;amp;&lt;/a&gt;');
    assert.equal(titleText("<b>a & b</b>"), "‹b›a ＆ b‹/b›");
  });

  it("no text leaves a tag, an entity of its own or a control character [agent 29.8]", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        assert.doesNotMatch(titleText(text), /[<>&\p{Cc}]/u);
        assert.doesNotMatch(bodyMarkup(text), /[<>\p{Cc}]|&(?!(?:amp|lt|gt);)/u);
      }),
    );
  });
});
