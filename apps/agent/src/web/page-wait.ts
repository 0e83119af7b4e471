/**
 * All requests to the store that one page or form needs end after this time, in milliseconds. Nobody waits longer than
 * five seconds for a page; the last second is for building it on a loaded machine.
 */
export const PAGE_WAIT_MS = 4000;
