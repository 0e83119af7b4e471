import type { RunCommand } from "./command.ts";
import { oneLine } from "./one-line.ts";
import { withStore } from "./secret-session.ts";

export const run: RunCommand = (invocation) =>
  withStore(invocation, async (store, signal) => {
    const [given = ""] = invocation.positionals;
    const folder = given === "" || given.endsWith("/") ? given : `${given}/`;
    const keys = await store.list(folder, { signal });
    const text =
      invocation.options["json"] === true
        ? `${JSON.stringify({ path: folder, keys }, undefined, 2)}\n`
        : keys.map((key) => `${oneLine(key)}\n`).join("");
    process.stdout.write(text);
    return 0;
  });
