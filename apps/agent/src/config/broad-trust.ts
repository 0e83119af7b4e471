import { formatProblem } from "@devplat/config";
import type { LocatedConfig } from "./overlay.ts";
import { authorityPatterns } from "./sections/ssh-section.ts";

/** Warnings for settings of forwards that trust more than most people mean. */
export function broadTrust({ config: { ssh }, locate }: LocatedConfig): string[] {
  const warning = (path: readonly (string | number)[], key: string, message: string): string =>
    formatProblem({ ...locate(path), key, message });
  const authorities = ssh.certificate_authorities.flatMap((line, index) =>
    authorityPatterns(line).includes("*")
      ? [
          warning(
            ["ssh", "certificate_authorities", index],
            `ssh.certificate_authorities[${index}]`,
            "the authority is believed for every host; name its hosts, such as *.example.com",
          ),
        ]
      : [],
  );
  const message = "host keys are not checked: anybody on the way to a host can take its place";
  return ssh.insecure_ignore_host_key
    ? [...authorities, warning(["ssh", "insecure_ignore_host_key"], "ssh.insecure_ignore_host_key", message)]
    : authorities;
}
