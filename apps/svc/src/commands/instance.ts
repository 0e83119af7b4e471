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
    // An earlier version does not say it.
    const different = instances.filter(({ ready, differs_in: keys }) => ready && (keys ?? []).length > 0);
    if (different.length === 0) return undefined;
    const named = different.map(
      ({ address, host_name: host, differs_in: keys }) => `${address ?? host} has another ${keys.join(", ")}`,
    );
    return (
      "warning: these do not share data with the instance that answers: " +
      `${named.join("; ")}. Set the same on all of them`
    );
  },
);
