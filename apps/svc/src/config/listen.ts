import { isLoopbackHost } from "@devplat/web-kit/origin";

/** Where to listen: `host` undefined means every interface (in development mode: loopback only). */
export type ListenAddress =
  | { readonly kind: "tcp"; readonly host: string | undefined; readonly port: number }
  | { readonly kind: "unix"; readonly path: string }
  /** A socket that the service manager opened and listens on already. */
  | { readonly kind: "inherited"; readonly descriptor: number };

const TCP_FORM = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s/]*)):(\d{1,5})$/;

/** Reads `:8080`, `127.0.0.1:8080`, `[::1]:8080` or `unix:/run/svc.sock`; undefined: none of these. */
export function parseListen(text: string): ListenAddress | undefined {
  if (text.startsWith("unix:")) {
    const path = text.slice("unix:".length);
    return path === "" ? undefined : { kind: "unix", path };
  }
  const match = TCP_FORM.exec(text);
  if (match === null) return undefined;
  const port = Number(match[3]);
  const host = match[1] ?? match[2];
  return port > 65_535 ? undefined : { kind: "tcp", host: host === "" ? undefined : host, port };
}

/** Whether only this machine can reach the address. An empty host is every interface, so it is not. */
export function isLoopbackAddress(address: ListenAddress): boolean {
  if (address.kind !== "tcp") return true;
  if (address.host === undefined) return false;
  return isLoopbackHost(address.host.includes(":") ? `[${address.host}]` : address.host);
}

/**
 * Address by which people know a listener.
 *
 * @param port that it was bound to
 * @param hostName stands for every interface
 */
export function reachableAddress(address: ListenAddress, port: number, hostName: string): string {
  if (address.kind === "unix") return formatListen(address);
  const host = address.kind === "tcp" ? address.host : undefined;
  const isAny = host === undefined || host === "0.0.0.0" || host === "::";
  return formatListen({ kind: "tcp", host: isAny ? hostName : host, port });
}

export function formatListen(address: ListenAddress): string {
  if (address.kind === "inherited") return `descriptor ${address.descriptor}`;
  if (address.kind === "unix") return `unix:${address.path}`;
  const host = address.host ?? "";
  return `${host.includes(":") ? `[${host}]` : host}:${address.port}`;
}
