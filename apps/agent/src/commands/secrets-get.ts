import { printJson, type FieldValue } from "@devplat/secret-store";
import { printText, visible, visibleJsonText } from "@devplat/base/terminal";
import type { RunCommand } from "./command.ts";
import { noSuchField } from "./no-such-field.ts";
import { withStore } from "./secret-session.ts";

/** Names only, unless one field or `--reveal` is asked for. */
export const run: RunCommand = (invocation) =>
  withStore(invocation, async (store, signal) => {
    const [path = "", field] = invocation.positionals;
    const { fields, version } = await store.read(path, { signal });
    const json = invocation.options["json"] === true;
    if (field !== undefined) {
      const value = fields.get(field);
      if (value === undefined) throw noSuchField(path, fields);
      if (json) printText(`${visibleJsonText(printJson(value))}\n`);
      // For a program the value is what it is; a terminal would obey it.
      else if (process.stdout.isTTY) printText(`${asText(value)}\n`);
      else process.stdout.write(`${asText(value)}\n`);
      return 0;
    }
    const reveal = invocation.options["reveal"] === true;
    if (json) {
      const shown: FieldValue = reveal ? fields : [...fields.keys()];
      const document = new Map<string, FieldValue>([
        ["path", path],
        ["version", { number: String(version) }],
        ["fields", shown],
      ]);
      printText(`${visibleJsonText(printJson(document))}\n`);
      return 0;
    }
    const lines = [...fields].map(([name, value]) => `${visible(name)}: ${reveal ? asText(value) : "••••"}`);
    printText(`${[`# ${path}, version ${version}`, ...lines].join("\n")}\n`);
    return 0;
  });

function asText(value: FieldValue): string {
  return typeof value === "string" ? value : printJson(value);
}
