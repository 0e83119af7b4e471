import {
  decodeKnownHosts,
  decodeKnownHostsLine,
  decodePublicKeyLine,
  encodeKnownHostsLine,
  encodePublicKeyLine,
} from "@devplat/ssh-protocol";
import { ForwardError } from "../errors/forward-error.ts";

/** Keys that are believed for a host. */
export interface Trust {
  /** Pinned key, `type base64`; undefined: only an authority can vouch for the host. */
  readonly pin: string | undefined;
  /** Lines of `ssh.certificate_authorities`. */
  readonly authorities: readonly string[];
}

/** Name under which a host's key is written in its known_hosts file, and that a certificate of the host must hold. */
export function hostKeyAlias(hostName: string): string {
  return hostName.toLowerCase();
}

/**
 * A known_hosts file that holds nothing but the pin and the authorities.
 * @throws ForwardError `configuration_refused`
 */
export function knownHostsText(hostName: string, { pin, authorities }: Trust): string {
  const lines = authorities.map(authorityLine);
  if (pin !== undefined) lines.push(pinLine(hostName, pin));
  return lines.map((line) => `${line}\n`).join("");
}

/** The keys in a known_hosts file that ssh has written, as `type base64`. Authorities are not among them. */
export function plainKeys(text: string): string[] {
  return decodeKnownHosts(text)
    .hosts.filter(({ marker }) => marker === undefined)
    .map(({ blob }) => encodePublicKeyLine(blob));
}

function authorityLine(line: string): string {
  try {
    const host = decodeKnownHostsLine(line);
    if (host.marker === "cert-authority") return encodeKnownHostsLine({ ...host, comment: "" });
  } catch {
    // Said below: the line is not quoted.
  }
  throw new ForwardError("configuration_refused", "Cannot use an entry of ssh.certificate_authorities", {
    hint: "Write it as in known_hosts: @cert-authority *.example.com ssh-ed25519 AAAA…",
  });
}

function pinLine(hostName: string, pin: string): string {
  try {
    const names = { kind: "patterns", patterns: [hostKeyAlias(hostName)] } as const;
    return encodeKnownHostsLine({
      marker: undefined,
      names,
      blob: decodePublicKeyLine(pin).blob,
      comment: "",
    });
  } catch (cause) {
    throw new ForwardError("configuration_refused", `Cannot use the pinned host key of ${hostName}`, {
      hint: "Pin the key again.",
      cause,
    });
  }
}
