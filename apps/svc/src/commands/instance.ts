import type { z } from "zod";
import type { instanceSchema } from "../admin-api/instances.ts";
import { listCommand } from "./api-client.ts";

export const list = listCommand<z.output<typeof instanceSchema>>("/api/instances", {
  HOST: ({ host_name: name, is_this: isThis }) => (isThis ? `${name} (answers)` : name),
  VERSION: ({ version }) => version,
  STATE: ({ ready }) => (ready ? "ready" : "not ready"),
  UP: (each) => `${each.uptime_seconds}s`,
  REPORT: (each) => `${each.report_age_seconds}s ago`,
  FIGURES: (each) => (each.figures_age_seconds === null ? "none yet" : `${each.figures_age_seconds}s ago`),
  ID: ({ id }) => id,
});
