/**
 * Target of a redirect of the code host, as the client sees it.
 * - `ours`: a path of this service, to be sent as `Location`. A path is right for every name of this service.
 * - `elsewhere`: another host; `url` as the code host gave it.
 * - `unreadable`: not an address.
 */
export type Redirect =
  | { readonly kind: "ours"; readonly location: string }
  | { readonly kind: "elsewhere"; readonly url: string; readonly host: string }
  | { readonly kind: "unreadable" };

/**
 * Rewrites a `Location` of the code host to our address (spec/svc.md section 1).
 *
 * @param requested the requested address at the code host, to resolve a relative one
 * @param stripPrefix the path of `host.url`, where the client's paths do not have it
 */
export function rewriteLocation(location: string, requested: URL, stripPrefix: string): Redirect {
  const target = URL.parse(location, requested);
  if (target === null || !["http:", "https:"].includes(target.protocol)) return { kind: "unreadable" };
  if (target.hostname !== requested.hostname || !isSamePort(target, requested)) {
    return { kind: "elsewhere", url: target.href, host: target.host };
  }
  const path = target.pathname.startsWith(`${stripPrefix}/`)
    ? target.pathname.slice(stripPrefix.length)
    : target.pathname;
  // Two slashes in front would be read as another host's name.
  return { kind: "ours", location: path.replace(/^\/+/, "/") + target.search };
}

/** The same port, or both the usual one of their scheme: a redirect from http to https stays within the code host. */
function isSamePort(one: URL, other: URL): boolean {
  return one.port === other.port;
}
