import { printResult, printTable } from "@devplat/cli";
import { noteLine } from "@devplat/base/terminal";
import type { z } from "zod";
import type { instanceSchema } from "../admin-api/instances.ts";
import { callApiList } from "./api-client.ts";
import type { RunCommand } from "./command.ts";

type Instance = z.output<typeof instanceSchema>;

const COLUMNS: Readonly<Record<string, (each: Instance) => string>> = {
  INSTANCE: ({ address, host_name: host, is_this: isThis }) =>
    isThis ? `${address ?? host} (answers)` : (address ?? host),
  HOST: ({ host_name: host }) => host,
  VERSION: ({ version }) => version,
  STATE: ({ ready }) => (ready ? "ready" : "not ready"),
  "LAST SEEN": (each) => `${each.report_age_seconds}s ago`,
  UP: (each) => `${each.uptime_seconds}s`,
  FIGURES: (each) => (each.figures_age_seconds === null ? "none yet" : `${each.figures_age_seconds}s ago`),
  ID: ({ id }) => id,
};

export const list: RunCommand = async ({ options }) => {
  const found = await callApiList<Instance>("/api/instances");
  const rows = found.map((each) => Object.values(COLUMNS).map((textOf) => textOf(each)));
  printResult(options, found, () => printTable(Object.keys(COLUMNS), rows));
  const keyIds = new Set(found.filter(({ ready }) => ready).flatMap(({ object_key_id: id }) => id ?? []));
  if (keyIds.size > 1) {
    noteLine(
      "warning: the instances have different keys for the bucket, so they do not share its data: " +
        "set the same cache.object_key on all of them",
    );
  }
};
