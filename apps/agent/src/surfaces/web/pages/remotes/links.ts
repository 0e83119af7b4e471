import type { RemoteView } from "../../../../remote-view.ts";

/** Begin of the address of a remote's page, before the host. */
export const REMOTES_PREFIX = "/ui/remotes/";

/** Page of all remotes, with the form that adds one open. */
export const NEW_REMOTE_URL = `${REMOTES_PREFIX}?add`;

/** Page of the peer socket that the user forwards by hand. */
export const PEER_SOCKET_PAGE = "/ui/peer-socket/";

/** Page of a remote. An IPv6 address is a host, too. */
export function remoteUrl(host: string): string {
  return `${REMOTES_PREFIX}${encodeURIComponent(host)}/`;
}

/** `user@host:port` as people write it; a part that ssh decides is left out. */
export function remoteAddress({ user, host, port }: Pick<RemoteView, "user" | "host" | "port">): string {
  const name = host.includes(":") ? `[${host}]` : host;
  return `${user === null ? "" : `${user}@`}${name}:${port}`;
}
