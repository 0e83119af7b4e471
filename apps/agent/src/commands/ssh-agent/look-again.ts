import type { Config } from "../../config/schema.ts";
import type { Host } from "../../host.ts";
import { DaemonRequests } from "../common/daemon-request.ts";

/** The secret is stored already: a daemon that needs longer lists the key later. In milliseconds. */
const LOOK_TIMEOUT_MS = 5000;

/** Has the SSH agent of the running daemon look for keys, after a secret was changed that may have one. Never rejects. */
export async function lookAgainForKeys(host: Host, config: Config, secretPath: string): Promise<void> {
  const { agent, enrolments } = config;
  const isSource = agent.keys.some((settings) =>
    settings.source === "kv"
      ? secretPath.startsWith(`${settings.path_prefix.replace(/\/$/, "")}/`)
      : settings.source === "enrolments" && enrolments[secretPath]?.engine === "ssh",
  );
  if (!agent.enabled || !isSource) return;
  const requests = new DaemonRequests(host, config);
  await requests.change("/api/v1/ssh-agent/refresh", { timeoutMs: LOOK_TIMEOUT_MS }).catch(() => undefined);
}
