/** Addresses of the API as the client sees them: it may use the API under a path of this service. */
export interface ApiView {
  /** A `Link` header (RFC 8288). */
  links(value: string): string;
  /** A `Location` header. */
  location(value: string): string;
}

/** For clients that use the code host's own names: nothing differs. */
export const SAME_VIEW: ApiView = { links: (value) => value, location: (value) => value };

/**
 * For clients that use the API under a path of this service.
 *
 * @param bases pairs of the code host's address and ours, both without a final slash; the first that fits counts
 */
export function pathView(bases: readonly (readonly [theirs: string, ours: string])[]): ApiView {
  const rewrite = (address: string): string => {
    for (const [theirs, ours] of bases) {
      if (address === theirs || address.startsWith(`${theirs}/`) || address.startsWith(`${theirs}?`)) {
        return ours + address.slice(theirs.length);
      }
    }
    return address;
  };
  return {
    links: (value) => value.replaceAll(/<([^>]*)>/g, (_, address: string) => `<${rewrite(address)}>`),
    location: rewrite,
  };
}
