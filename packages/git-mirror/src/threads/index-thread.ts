/** Entry of the threads that index packs: the worker of git-store, at a lower priority. */
import { giveWayInThread } from "./give-way.ts";
import { lowerThreadPriority } from "./thread-priority.ts";

lowerThreadPriority();
giveWayInThread();
await import("@devplat/git-store/index-worker");
