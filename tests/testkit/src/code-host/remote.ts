/** The calls of a code host that make sense from another process. */
export type RemoteCall =
  | "push"
  | "addUser"
  | "revoke"
  | "setVisibility"
  | "rename"
  | "remove"
  | "resetCalls"
  | "stop";

/** Parent to child. `adopt` takes a repository that the parent has built. */
export type RemoteRequest =
  | { readonly id: number; readonly call: RemoteCall; readonly args: readonly unknown[] }
  | { readonly id: number; readonly call: "calls" }
  | {
      readonly id: number;
      readonly call: "adopt";
      readonly args: readonly [owner: string, name: string, path: string, hidden: boolean];
    };

/** Child to parent: first one hello, then one answer per request. */
export type RemoteMessage =
  | { readonly hello: { readonly url: string; readonly root: string } }
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly failed: string };
