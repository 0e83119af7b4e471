import { printLine, printText } from "@devplat/base/terminal";
import { printResult } from "@devplat/cli";
import { z } from "zod";
import { AgentError } from "../../errors.ts";
import { readDaemonStatus } from "../../surfaces/socket/daemon-status.ts";
import type { RunCommand } from "../common/command.ts";
import { openContext } from "../common/context.ts";
import { DaemonRequests } from "../common/daemon-request.ts";
import { volumeTable } from "./volume-text.ts";

const releasedSchema = z.object({ name: z.string(), mounts: z.number() });

/** The volumes of the running daemon. */
export const list: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  const { docker } = await readDaemonStatus(host.places, loaded.config);
  if (docker === undefined) {
    throw new AgentError("daemon_unreachable", "There are no volumes: no daemon with docker.enabled answers");
  }
  printResult(invocation.options, docker.volumes, () =>
    printText(
      `${volumeTable(docker)
        .map((line) => line.trim())
        .join("\n")}\n`,
    ),
  );
  return 0;
};

/** Drops the mounts of a volume that its engine has forgotten, and removes its files. */
export const release: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  const [name = ""] = invocation.positionals;
  if (invocation.flags.dryRun) {
    printResult(invocation.options, { name, outcome: "would release" }, () =>
      printLine(`would release ${name}`),
    );
    return 0;
  }
  const requests = new DaemonRequests(host, loaded.config);
  const path = `/api/v1/docker/volumes/${encodeURIComponent(name)}/release`;
  const released = releasedSchema.parse(await requests.change(path));
  printResult(invocation.options, released, () =>
    printLine(`released ${name}: ${released.mounts} mounts dropped, its files are removed`),
  );
  return 0;
};
