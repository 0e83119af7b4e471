import type { Plugin } from "esbuild";

/**
 * Source of a module in place of `node:http`. A load of `node:http` reads each of its exports, also `WebSocket`, and that
 * loads Node's own copy of undici: 40 ms of CPU and 16 MB that no part of the program uses. The parts of `node:http` are
 * modules of Node, too, and need 5 ms. A Node without these modules, or one with an option for larger heads, gives the whole.
 */
const SOURCE = `
const parts = ["_http_server", "_http_client", "_http_agent", "_http_incoming", "_http_outgoing"].map((name) =>
  process.getBuiltinModule(name),
);
const changed = [...process.execArgv, process.env.NODE_OPTIONS ?? ""].some((text) => text.includes("max-http-header-size"));
const http = changed || parts.includes(undefined) ? process.getBuiltinModule("node:http") : Object.assign({}, ...parts);
export const { Agent, ClientRequest, IncomingMessage, OutgoingMessage, STATUS_CODES, Server, ServerResponse } = http;
export const { globalAgent, validateHeaderName, validateHeaderValue } = http;
export const maxHeaderSize = http.maxHeaderSize ?? 16384;
export const createServer = (options, listener) => new Server(options, listener);
export const request = (url, options, callback) => new ClientRequest(url, options, callback);
export const get = (url, options, callback) => {
  const sent = request(url, options, callback);
  sent.end();
  return sent;
};
`;

/** Bundles load the parts of `node:http` that they use, and not all of it. */
export const HTTP_PARTS: Plugin = {
  name: "http-parts",
  setup: (bundle) => {
    bundle.onResolve({ filter: /^(node:)?http$/ }, () => ({ path: "http", namespace: "http-parts" }));
    bundle.onLoad({ filter: /./, namespace: "http-parts" }, () => ({ contents: SOURCE, loader: "js" }));
  },
};
