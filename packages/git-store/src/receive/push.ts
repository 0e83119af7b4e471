import type { RefCommand } from "@devplat/git-protocol/receive-pack";
import type { IndexPackLimits } from "../index-pack/limits.ts";
import type { IndexWorkers } from "../index-pack/workers.ts";
import type { Repository } from "../repository/repository.ts";
import type { Identity } from "../refs/reflog.ts";

/** A push, as hooks see it. */
export interface Push {
  /** The repository with the new objects, which are in quarantine until `preReceive` has allowed them. Its refs are the old ones. */
  readonly repository: Repository;
  /** Commands that are not refused yet. After the push: those that were carried out. */
  readonly commands: readonly RefCommand[];
  /** Options of `git push --push-option`. */
  readonly pushOptions: readonly string[];
  /** Variables with which a hook can run stock git on the repository with the new objects. */
  readonly environment: Readonly<Record<string, string>>;
  /** Sends text to the client, which shows it as `remote: …`. */
  readonly tell: (text: string) => void;
}

/** Reason of a refusal, for the client. Undefined: allowed. */
export type HookResult = string | undefined | void;

/** Functions in the place of git's hooks (githooks). A hook that throws refuses the push. */
export interface PushHooks {
  /** Decides about the complete push. */
  readonly preReceive?: (push: Push) => HookResult | Promise<HookResult>;
  /** Decides about one command. With `atomic`, one refusal refuses all. */
  readonly update?: (push: Push, command: RefCommand) => HookResult | Promise<HookResult>;
  /** Called after the refs were changed, and after the report was sent. */
  readonly postReceive?: (push: Push) => void | Promise<void>;
}

/** Options of a push. */
export interface ReceiveOptions extends PushHooks {
  /** Refuses changes of branches that are not fast-forwards. Default: `receive.denyNonFastForwards` of the repository, or false. */
  readonly denyNonFastForwards?: boolean;
  /** Refuses deletions of branches. Default: `receive.denyDeletes` of the repository, or false. */
  readonly denyDeletes?: boolean;
  /** Limits for the pack, such as `packBytes`. */
  readonly limits?: Partial<IndexPackLimits>;
  /** Threads that index packs. Without it, packs of more than half a megabyte, or that expand to more than 32 MiB, start a thread each. */
  readonly workers?: IndexWorkers;
  /** Refuses objects of SHA-1 collision attacks. Default true. */
  readonly detectCollisions?: boolean;
  /** Person in the reflogs. */
  readonly identity?: Identity;
}
