import type { HttpBindings } from "@hono/node-server";
import type { Logger } from "@devplat/base";
import type { Assets, CsrfTokens, EventStreams, Html } from "@devplat/web-kit";
import type { SignIn } from "../auth/sign-in.ts";
import type { Clipboard } from "../desktop/clipboard.ts";
import type { SecretEditor } from "../secrets/secret-editor.ts";
import type { LocalActions } from "../peers/local-actions.ts";
import type { DaemonView } from "../status.ts";
import type { RuleControl } from "../sync/rule-control.ts";
import type { ConfigurationView } from "./configuration.ts";
import type { EnrolmentControl } from "./enrolment-routes.ts";
import type { Gate } from "./gate.ts";
import type { LiveUpdates } from "./live-updates.ts";
import type { Sessions } from "./sessions.ts";
import type { SetupState } from "./setup-state.ts";
import type { WebLogin } from "./web-login.ts";

/** What Hono's handlers find in their context: Node's own request and response. */
export interface Environment {
  Bindings: HttpBindings;
}

/** The parts that the JSON API works with, on the web port as on the sockets. */
export interface ApiParts {
  readonly view: DaemonView;
  readonly secrets: SecretEditor;
  readonly signIn: Pick<SignIn, "token" | "invalidate">;
  readonly configuration: ConfigurationView;
  readonly gate: Pick<Gate, "isUnlocked" | "session">;
  readonly csrf: CsrfTokens;
  readonly streams: EventStreams;
  readonly live: LiveUpdates;
  readonly assets: Assets;
  readonly logger: Logger;
  readonly actions: LocalActions;
  /** `http://host:port` of the listener that answers; undefined on a socket. */
  readonly origin: () => string | undefined;
  /** Lets a browser in once; undefined without a web UI. */
  readonly openLink: (() => { readonly url: string; readonly expiresAt: number }) | undefined;
  /** The surface, for the log. */
  readonly surface: string;
}

/** The parts that all routes of the web port work with. */
export interface RouteParts extends ApiParts {
  /** Undefined for a store that asks nobody to sign in. */
  readonly login: WebLogin | undefined;
  /** Takes the token away; undefined where there is none to take. */
  readonly signOut: (() => Promise<void>) | undefined;
  readonly enrolments: EnrolmentControl;
  readonly setup: Pick<SetupState, "isLeft" | "leave">;
  readonly clipboard: Clipboard;
  readonly ruleControl: RuleControl;
  readonly gate: Gate;
  readonly sessions: Sessions;
  readonly cookieName: string;
  /** Rendered texts of the configuration; undefined where none is set. */
  readonly texts: { readonly login: Html | undefined; readonly secretView: Html | undefined };
}
