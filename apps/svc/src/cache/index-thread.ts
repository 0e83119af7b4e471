/** What the threads run that index packs: git-store's own worker, at a lower priority. */
import { lowerThreadPriority } from "./thread-priority.ts";

lowerThreadPriority();
await import("@devplat/git-store/index-worker");
