/** Statuses by which a code host refuses access. */
export function isRefusal(status: number): boolean {
  return status === 401 || status === 403 || status === 404;
}

/** Whether a response says that the repository is gone (RFC 9110 section 15.5.11) or withheld (RFC 7725). */
export function isWithdrawn(status: number): boolean {
  return status === 410 || status === 451;
}

/** Whether a response sends the client elsewhere: the repository is not, or no longer, at the address that was asked. */
export function isRedirect(status: number): boolean {
  return status >= 300 && status < 400 && status !== 304;
}
