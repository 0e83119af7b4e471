import { ForwardError } from "../errors.ts";
import { HOST_KEY } from "../file/remote-entry.ts";

/** `@cert-authority patterns type base64 [comment]`, on one line. */
const AUTHORITY = /^@cert-authority \S+ [a-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}(?: \P{Cc}*)?$/u;

export interface Trust {
  /** Pinned key, `type base64`; undefined: only an authority can vouch for the host. */
  readonly pin: string | undefined;
  /** Lines of `ssh.certificate_authorities`. */
  readonly authorities: readonly string[];
}

/** Name under which a host's key stands in its known_hosts file. */
export function hostKeyAlias(hostName: string): string {
  return hostName.toLowerCase();
}

/**
 * A known_hosts file that holds nothing but the pin and the authorities.
 * @throws ForwardError `configuration_refused`
 */
export function knownHostsText(hostName: string, { pin, authorities }: Trust): string {
  for (const line of authorities) {
    if (!AUTHORITY.test(line)) {
      throw new ForwardError("configuration_refused", "Cannot use an entry of ssh.certificate_authorities", {
        hint: "Write it as in known_hosts: @cert-authority *.example.com ssh-ed25519 AAAA…",
      });
    }
  }
  if (pin !== undefined && !HOST_KEY.test(pin)) {
    throw new ForwardError("configuration_refused", `Cannot use the pinned host key of ${hostName}`);
  }
  const lines = [...authorities, ...(pin === undefined ? [] : [`${hostKeyAlias(hostName)} ${pin}`])];
  return lines.map((line) => `${line}\n`).join("");
}

/** The plain keys in a known_hosts file that ssh has written, as `type base64`. */
export function plainKeys(text: string): string[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("@") && !line.startsWith("#"))
    .map((line) => line.split(" ").slice(1, 3).join(" "))
    .filter((key) => HOST_KEY.test(key));
}
