import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { isForm, parseForm, printForm } from "./form.ts";

const parse = (text: string) => parseForm(Buffer.from(text, "latin1"));

describe("parseForm", () => {
  it("reads names and values, plus signs as blanks, and percent-encoded bytes as UTF-8", () => {
    assert.deepEqual(
      parse("text=a+b%2Bc%0D%0a&x=%C3%BC&&y&=z"),
      new Map([
        ["text", "a b+c\r\n"],
        ["x", "ü"],
        ["y", ""],
        ["", "z"],
      ]),
    );
    assert.deepEqual(parse(""), new Map());
  });

  it("raw bytes that are UTF-8 count too, and a byte order mark stays", () => {
    assert.equal(parseForm(Buffer.from("text=ü"))?.get("text"), "ü");
    assert.equal(parse("text=%EF%BB%BFa")?.get("text"), "\uFEFFa");
  });

  for (const bytes of ["%ff", "%C3", "%ED%A0%80", "%C0%80", "\xff", "%F5%80%80%80"]) {
    it(`a value that is not UTF-8 is undefined: ${JSON.stringify(bytes)}`, () => {
      const fields = parse(`text=a${bytes}`);
      assert.equal(fields?.has("text"), true);
      assert.equal(fields?.get("text"), undefined);
    });
  }

  for (const text of ["a=1&a=2", "a=%", "a=%2", "a=%zz", "%=1", "%ff=1", "a=1&%61=2"]) {
    it(`a form that could be read in two ways is none: ${text}`, () => assert.equal(parse(text), undefined));
  }

  it("reads what is UTF-8 as the URL standard's own parser does", () => {
    const piece = fc.constantFrom("a", "=", "&", "+", "%41", "%26", "%C3%BC", "%00", "ü", "\t", "b=", "c=1&");
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const encoded = pieces.join("");
        const expected = [...new URLSearchParams(encoded)];
        const fields = parseForm(Buffer.from(encoded));
        const hasTwice = new Set(expected.map(([name]) => name)).size < expected.length;
        assert.deepEqual(fields && [...fields], hasTwice ? undefined : expected);
      }),
    );
  });

  it("gives back every text that was printed, byte for byte", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (text, other) => {
        const fields = parseForm(Buffer.from(printForm({ text, other })));
        assert.equal(fields?.get("text"), text);
        assert.equal(fields?.get("other"), other);
      }),
    );
  });
});

describe("isForm", () => {
  it("takes the forms' own type only", () => {
    assert.equal(isForm("application/x-www-form-urlencoded"), true);
    assert.equal(isForm("Application/X-WWW-Form-Urlencoded; charset=utf-8"), true);
    for (const type of [
      undefined,
      "",
      "text/plain",
      "application/json",
      "application/x-www-form-urlencodedx",
    ])
      assert.equal(isForm(type), false);
  });
});
