import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { FORMAT_NAMES, documentFormat, type EditOptions, type IniDialect } from "../src/index.ts";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");

/** Text of the code block after a label, in a section. */
function block(section: string, label: string): string {
  const match = new RegExp(`^${label}[^\\n]*:\\n\`\`\`\\S+\\n([\\s\\S]*?)^\`\`\``, "m").exec(section);
  assert.ok(match?.[1] !== undefined, `no block "${label}"`);
  return match[1];
}

for (const name of FORMAT_NAMES) {
  test(`README ${name}: edit gives the result of the example`, () => {
    const section = readme.split(/^## /m).find((part) => part.startsWith(`${name}\n`));
    assert.ok(section !== undefined, `no section for ${name}`);
    const options = JSON.parse(/^Content, with `(.*)`:$/m.exec(section)?.[1] ?? "{}") as EditOptions & {
      dialect?: IniDialect;
    };
    const format = documentFormat(name, options);
    const { text } = format.edit(block(section, "Before"), format.parse(block(section, "Content")), options);
    assert.equal(text, block(section, "After"));
  });
}
