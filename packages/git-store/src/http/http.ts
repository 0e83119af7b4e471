/** Serves repositories over HTTP. */
export { createGitHandler, type GitAccess, type GitHandlerOptions } from "./git-handler.ts";
export { toNodeListener } from "./node-listener.ts";
