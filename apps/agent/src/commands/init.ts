import { flagOf } from "@devplat/cli";
import { exists, writeAtomically } from "@devplat/base";
import { printLine, printText } from "@devplat/base/terminal";
import { BRAND } from "../brand.ts";
import { readConfigFile } from "../config/file.ts";
import { ensureFolder } from "../agent-files/places.ts";
import { MOUNTED_EXAMPLE, STARTER_CONFIG, starterConfigWithMount } from "../config/starter.ts";
import { AgentError } from "../errors.ts";
import type { RunCommand } from "./common/command.ts";
import { hostOf } from "./common/context.ts";

/** Writes the starter configuration as the user's own, unless there is one already. */
export const run: RunCommand = async (invocation) => {
  const { places } = hostOf(invocation);
  for (const path of places.systemConfigs) {
    if ((await readConfigFile(path)) !== undefined) {
      throw new AgentError("config_refused", `this host has a system configuration: ${path}`, {
        hint: "It applies to every user; there is nothing to write.",
      });
    }
  }
  const withMount = flagOf(invocation.options, "mount");
  if (await exists(places.userConfig)) {
    throw new AgentError("config_refused", `${places.userConfig} exists already`, {
      hint: withMount
        ? `Add this line to it for the mount: 'fuse: { enabled: true }'. Then run '${BRAND.command} reload', or start the daemon.`
        : `'${BRAND.command} config check' checks it.`,
    });
  }
  if (invocation.flags.dryRun) {
    printLine(`would write ${places.userConfig}`);
    return 0;
  }
  await ensureFolder(places.configFolder);
  await writeAtomically(places.userConfig, withMount ? starterConfigWithMount() : STARTER_CONFIG);
  printText(
    [
      `Wrote ${places.userConfig}. Try:`,
      `  ${BRAND.command} secrets put example token=s3cret user=me`,
      `  ${BRAND.command} sync`,
      "  cat ~/agent-example.yaml",
      `  ${BRAND.command} run`,
      ...(withMount
        ? [
            `'${BRAND.command} run' goes on until Ctrl-C. In a second terminal, look at the mount, which is read-only:`,
            `  cat ${MOUNTED_EXAMPLE}`,
          ]
        : []),
      "",
    ].join("\n"),
  );
  return 0;
};
