import { resolve } from "node:path";

/** The programs, as they run from the sources. */
export const SVC_LAUNCHER = resolve(import.meta.dirname, "../../../apps/svc/bin/svc");
export const AGENT_LAUNCHER = resolve(import.meta.dirname, "../../../apps/agent/bin/agent");
