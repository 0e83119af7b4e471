import { printText, visible, visibleJson } from "@devplat/base/terminal";
import type { RunCommand } from "./command.ts";
import { withStore } from "./secret-session.ts";

export const run: RunCommand = (invocation) =>
  withStore(invocation, async (store, signal) => {
    const [given = ""] = invocation.positionals;
    const folder = given === "" || given.endsWith("/") ? given : `${given}/`;
    const keys = await store.list(folder, { signal });
    const text =
      invocation.options["json"] === true
        ? `${visibleJson({ path: folder, keys }, 2)}\n`
        : keys.map((key) => `${visible(key)}\n`).join("");
    printText(text);
    return 0;
  });
