import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { FORMAT_NAMES } from "@devplat/document-edit";
import { parse } from "yaml";
import { workspace, type Workspace } from "./workspace.test-kit.ts";
import { RETRY_NONE } from "./retry-scope.ts";

const guide = readFileSync(new URL("../../../../docs/agent/rules.md", import.meta.url), "utf8");
/** Column of the file after the sync, in the guide's code blocks. The file before it is on the left. */
const RIGHT_COLUMN = 52;

/** The secret of each example, and the file where its name matters. */
const EXAMPLES: Readonly<
  Record<string, { readonly fields: Record<string, string>; readonly file?: string }>
> = {
  yaml: { fields: { token: "new-token" } },
  json: { fields: { user: "ada", password: "s3cret" } },
  netrc: { fields: { user: "ada", token: "new-token" } },
  ini: { fields: { token: "new-token" }, file: ".npmrc" },
  toml: { fields: { token: "new-token" } },
  ssh_config: { fields: { host: "build.example", user: "ada" } },
  dotenv: { fields: { DATABASE_URL: "postgres://ada@db/app?sslmode=require#x" } },
  properties: { fields: { password: "new-secret" } },
  text: { fields: { text: "the whole file" } },
};

/** The example of a format: the rule's options, the files before and after, and the template. */
function exampleOf(format: string) {
  const formats = /^## Formats\n([\s\S]*?)^## /m.exec(guide)?.[1] ?? "";
  const part = formats.split(/^(?=\*\*)/m).find((each) => each.startsWith(`**${format}**`));
  assert.ok(part !== undefined, `no example of ${format}`);
  const blocks = [...part.matchAll(/(?:^ {4}.*\n|^\n(?= {4}))+/gm)].map(([block]) =>
    block.replace(/^ {4}/gm, "").replace(/^\n+|\n+$/g, ""),
  );
  const text = blocks.join("\n\n");
  const template = /(?:^|\n)template: \|\n[\s\S]*$/.exec(text)?.[0] ?? "";
  const columns = text
    .slice(0, text.length - template.length)
    .replace(/\n+$/, "")
    .split("\n");
  const column = (from: number, to?: number): string =>
    `${columns
      .map((line) => line.slice(from, to).trimEnd())
      .join("\n")
      .replace(/\n+$/, "")}\n`;
  const [, options = "{}"] = /with `(.*?)`/.exec(part.split("\n", 1)[0] ?? "") ?? [];
  return {
    options: parse(`{${options.replace(/^\{\}$/, "")}}`) as Record<string, unknown>,
    before: column(0, RIGHT_COLUMN),
    after: column(RIGHT_COLUMN),
    template: (parse(template === "" ? "{}" : template) as { template?: string }).template,
  };
}

describe("docs/agent/rules.md, Formats: the example is what a rule does [agent 14.24]", () => {
  let w: Workspace;
  before(async () => {
    w = await workspace();
  });
  after(() => w.remove());

  for (const format of FORMAT_NAMES) {
    it(format, async () => {
      const { options, before: existing, after: expected, template } = exampleOf(format);
      const { fields, file = `example.${format}` } = EXAMPLES[format] ?? { fields: {} };
      await w.put(format, fields);
      const isText = format === "text";
      if (!isText) await w.file(file, existing);
      const target = { path: `~/${file}`, format, ...options, ...(template !== undefined && { template }) };
      const { engine } = await w.engine([{ name: format, key: format, target }]);
      const { failed } = await engine.cycle(new AbortController().signal, { retry: RETRY_NONE });
      assert.deepEqual(failed, []);
      assert.equal(await w.read(file), isText ? "the whole file\n" : expected);
    });
  }
});
