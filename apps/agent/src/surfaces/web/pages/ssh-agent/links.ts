/** Address of the page of the SSH agent. Its forms are sent there. */
export const AGENT_PAGE = "/ui/agent/";

/** The same page, with a form for the passphrase of a key. */
export function unlockUrl(fingerprint: string): string {
  return `${AGENT_PAGE}?unlock=${encodeURIComponent(fingerprint)}#unlock`;
}
