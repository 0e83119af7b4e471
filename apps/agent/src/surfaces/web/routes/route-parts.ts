import type { Assets, Html } from "@devplat/web-kit";
import type { ApiParts } from "../../http-api/environment.ts";
import type { Clipboard } from "../../../desktop/clipboard.ts";
import type { RuleControl } from "../../../sync/rule-control.ts";
import type { EnrolmentControl } from "./enrolment-views.ts";
import type { WebAccessCheck } from "../access/access-check.ts";
import type { LiveUpdates } from "./live-updates.ts";
import type { Sessions } from "../access/sessions.ts";
import type { SetupState } from "../state/setup-state.ts";
import type { WebLogin } from "../state/web-login.ts";

/** Parts of the daemon that the pages and the API of the web port show and change. */
export interface SiteParts extends Pick<
  ApiParts,
  | "view"
  | "secrets"
  | "signIn"
  | "configuration"
  | "actions"
  | "remotes"
  | "peerLoan"
  | "sshAgent"
  | "volumes"
  | "mount"
  | "openStreams"
  | "logger"
> {
  /** Undefined for a store without a login. */
  readonly login: WebLogin | undefined;
  /** Takes the token away; undefined where there is none to take. */
  readonly signOut: (() => Promise<void>) | undefined;
  readonly enrolments: EnrolmentControl;
  readonly setup: Pick<SetupState, "isLeft" | "leave">;
  readonly clipboard: Clipboard;
  readonly ruleControl: RuleControl;
}

/** The parts that all routes of the web port work with. */
export interface RouteParts extends ApiParts, SiteParts {
  readonly assets: Assets;
  readonly live: LiveUpdates;
  readonly accessCheck: WebAccessCheck;
  readonly sessions: Sessions;
  readonly cookieName: string;
  /** Rendered texts of the configuration; undefined where none is set. */
  readonly texts: { readonly login: Html | undefined; readonly secretView: Html | undefined };
}
