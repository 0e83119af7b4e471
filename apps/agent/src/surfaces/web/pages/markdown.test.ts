import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { renderMarkdown } from "./markdown.ts";

async function rendered(text: string): Promise<string> {
  return String(await renderMarkdown(text));
}

describe("renderMarkdown", () => {
  it("gives nothing for an empty text", async () => {
    assert.equal(await renderMarkdown(" \n"), undefined);
  });

  it("renders emphasis, lists and links", async () => {
    const text = await rendered("**Ask** [us](https://help.example.test/x)\n\n- one");
    assert.match(text, /<strong>Ask<\/strong>/);
    assert.match(text, /<a href="https:\/\/help\.example\.test\/x">us<\/a>/);
    assert.match(text, /<li>one<\/li>/);
  });

  it("shows HTML as text", async () => {
    const text = await rendered("<script>alert(1)</script> <b onclick=x>b</b>");
    assert.doesNotMatch(text, /<script|<b /);
    assert.match(text, /&lt;script&gt;/);
  });

  it("makes no link that runs something, and loads no image [agent 26.18]", async () => {
    const text = await rendered(
      "[a](javascript:alert(1)) [b](data:text/html,x) ![c](https://x.example.test/c.png)",
    );
    assert.doesNotMatch(text, /href="(?:javascript|data):/);
    assert.doesNotMatch(text, /<img/);
  });
});
