/** Serves repositories over HTTP. */
export {
  createGitHandler,
  type GitAccess,
  type GitHandlerOptions,
  type GitPushOptions,
} from "./git-handler.ts";
export { toNodeListener } from "./node-listener.ts";
export type { HookResult, Push, PushHooks, ReceiveOptions } from "../receive/push.ts";
