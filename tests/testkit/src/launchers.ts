import { resolve } from "node:path";

/** The programs, as they run from the sources. */
export const SVC_LAUNCHER = resolve(import.meta.dirname, "../../../apps/svc/bin/svc");
export const AGENT_SOURCES_LAUNCHER = resolve(import.meta.dirname, "../../../apps/agent/bin/agent");
/** The release of agent in a run of `npm test`, as it starts in half of the time; else the sources. */
export const AGENT_LAUNCHER = process.env["TEST_AGENT_LAUNCHER"] ?? AGENT_SOURCES_LAUNCHER;
