import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { xmlText } from "./xml-text.ts";

describe("xmlText", () => {
  it("gives content that a parser reads as the same text", () => {
    assert.equal(xmlText('<a href="x">&amp;</a>\r\n'), '&lt;a href="x"&gt;&amp;amp;&lt;/a&gt;&#13;\n');
    const names: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", "#13": "\r" };
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        const escaped = xmlText(text);
        assert.doesNotMatch(escaped, /[<>\r]/);
        assert.equal(
          escaped.replace(/&(#?\w+);/g, (_, name: string) => names[name] ?? assert.fail(name)),
          text,
        );
      }),
    );
  });
});
