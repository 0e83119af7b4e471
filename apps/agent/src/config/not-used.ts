import { formatProblem } from "@devplat/config";
import type { LocatedConfig } from "./overlay.ts";

/** Warnings for settings that have no effect in this version, so that they do not look as if they worked. */
export function notUsedYet({ config: { ssh }, locate }: LocatedConfig): string[] {
  const isSet = ssh.certificate_authorities.length > 0 || ssh.insecure_ignore_host_key;
  const message = "is checked, but managed SSH forwards are not built yet in this version";
  return isSet ? [formatProblem({ ...locate(["ssh"]), key: "ssh", message })] : [];
}
