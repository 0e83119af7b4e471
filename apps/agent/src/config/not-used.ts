import { formatProblem } from "@devplat/config";
import type { LocatedConfig } from "./overlay.ts";

/** Warnings for settings that have no effect in this version, so that they do not look as if they worked. */
export function notUsedYet({ config: { agent, ssh }, locate }: LocatedConfig): string[] {
  const hasForwards = ssh.certificate_authorities.length > 0 || ssh.insecure_ignore_host_key;
  const warning = (key: string, subject: string): string =>
    formatProblem({
      ...locate([key]),
      key,
      message: `is checked, but ${subject} not built yet in this version`,
    });
  return [
    ...(hasForwards ? [warning("ssh", "managed SSH forwards are")] : []),
    ...(agent.enabled ? [warning("agent", "the SSH agent is")] : []),
  ];
}
