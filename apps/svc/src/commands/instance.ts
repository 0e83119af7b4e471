import type { z } from "zod";
import type { instanceSchema } from "../admin-api/instances.ts";
import { listCommand } from "./api-client.ts";

type Instance = z.output<typeof instanceSchema>;

export const list = listCommand<Instance>(
  "/api/instances",
  {
    INSTANCE: ({ address, host_name: host, is_this: isThis }) =>
      isThis ? `${address ?? host} (answers)` : (address ?? host),
    HOST: ({ host_name: host }) => host,
    VERSION: ({ version }) => version,
    STATE: ({ ready }) => (ready ? "ready" : "not ready"),
    "LAST SEEN": (each) => `${each.report_age_seconds}s ago`,
    UP: (each) => `${each.uptime_seconds}s`,
    FIGURES: (each) => (each.figures_age_seconds === null ? "none yet" : `${each.figures_age_seconds}s ago`),
    ID: ({ id }) => id,
  },
  (instances) => {
    const keyIds = instances.filter(({ ready }) => ready).flatMap(({ object_key_id: id }) => id ?? []);
    return new Set(keyIds).size > 1
      ? "warning: the instances have different keys for the bucket, so they do not share its data: " +
          "set the same cache.object_key on all of them"
      : undefined;
  },
);
