/** Module that the sending thread runs. A bundler replaces this address with that of its own file. */
export const SEND_THREAD = new URL("send-thread.ts", import.meta.url);
