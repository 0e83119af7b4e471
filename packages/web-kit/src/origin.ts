/**
 * Whether a browser's request comes from the program's own page: its `Origin` equals scheme, host and port of
 * the address that the request was sent to. A missing or `null` Origin is not the program's own.
 *
 * @param origin the `Origin` header
 * @param own origins of the program, as `scheme://host[:port]`
 */
export function isOwnOrigin(origin: string | undefined, own: readonly string[]): boolean {
  if (origin === undefined || origin === "null") return false;
  return own.includes(origin.toLowerCase());
}

const LOOPBACK_NAME = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** Whether a `Host` header names the loopback interface: `localhost`, 127.0.0.0/8 or `[::1]`, with or without a port. */
export function isLoopbackHost(host: string | undefined): boolean {
  if (host === undefined) return false;
  return LOOPBACK_NAME.test(host.toLowerCase().replace(/:\d{1,5}$/, ""));
}
