/**
 * All requests to the store that one page, one form or one read over the API needs end after this time, in milliseconds.
 * Nobody waits longer than five seconds; the last second is for building a page on a loaded machine.
 */
export const PAGE_WAIT_MS = 4000;
