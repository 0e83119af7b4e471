import type { SecretChange } from "@devplat/secret-store";
import type { Daemon } from "../sync/daemon.ts";
import type { StoreWatch } from "../sync/store-watch.ts";

export interface OwnWritesParts {
  readonly changes: StoreWatch;
  readonly daemon: Pick<Daemon, "status" | "wake">;
}

/** Tells the other parts of the daemon about a change that it has made. A store with an event stream reports it too. */
export function noteOwnWrite({ changes, daemon }: OwnWritesParts): (change: SecretChange) => void {
  return (change) => {
    changes.announce(change);
    if (daemon.status().sync.events !== "connected") daemon.wake();
  };
}
