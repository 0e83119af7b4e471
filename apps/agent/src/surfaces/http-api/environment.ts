import type { HttpBindings } from "@hono/node-server";
import type { IncomingMessage } from "node:http";
import type { Logger } from "@devplat/base";
import type { CsrfTokens, EventFrame, EventStreams } from "@devplat/web-kit";
import type { SignIn } from "../../auth/sign-in.ts";
import type { ConfigurationView } from "../../config/configuration-view.ts";
import type { LocalActions } from "../peer-actions/local-actions.ts";
import type { SecretEditor } from "../../secrets/secret-editor.ts";
import type { DaemonView } from "../../status.ts";
import type { RemoteControl } from "../forwards/remote-control.ts";
import type { PeerSocketLoan } from "../forwards/tokens/peer-socket-loan.ts";
import type { MountControl } from "../mount/mount-control.ts";
import type { VolumeControl } from "../volumes/volume-control.ts";
import type { OpenStreams } from "./open-streams.ts";
import type { SshAgentControl } from "../ssh-agent/ssh-agent-control.ts";

/** Context of Hono's handlers: Node's own request and response. */
export interface Environment {
  Bindings: HttpBindings;
}

/** Access check of the surface that responds. */
export interface AccessCheck {
  /** Whether the request has the session or key that the surface requires. */
  isUnlocked(request: IncomingMessage): boolean;
  /** The browser's session that the request belongs to; undefined: none. */
  session(request: IncomingMessage): string | undefined;
}

/** The parts that the JSON API works with, on the web port as on the sockets. */
export interface ApiParts {
  readonly view: DaemonView;
  readonly secrets: SecretEditor;
  readonly signIn: Pick<SignIn, "token">;
  readonly configuration: ConfigurationView;
  readonly accessCheck: AccessCheck;
  readonly csrf: CsrfTokens;
  readonly streams: EventStreams;
  /** Those of all surfaces, for the metrics. */
  readonly openStreams: OpenStreams;
  /** First events of a stream: the state now. */
  readonly live: { apiFrames(): EventFrame[] };
  readonly logger: Logger;
  /** Actions on this host's desktop that peers may request. */
  readonly actions: LocalActions;
  /** Managed SSH forwards; undefined where there are none. */
  readonly remotes: RemoteControl | undefined;
  /** The tokens that are lent over the peer socket; undefined while that is off. */
  readonly peerLoan: Pick<PeerSocketLoan, "consent" | "revoke"> | undefined;
  /** The SSH agent; undefined while it is off. A reload of the configuration can turn it on and off. */
  readonly sshAgent: () => SshAgentControl | undefined;
  /** Container volumes; undefined while they are off. */
  readonly volumes: () => VolumeControl | undefined;
  /** The filesystem mount; undefined while it is off. */
  readonly mount: () => MountControl | undefined;
  /** `http://host:port` of the listener that responds. Undefined on a socket. */
  readonly origin: () => string | undefined;
  /** Lets a browser in once; undefined without a web UI. */
  readonly openLink: (() => { readonly url: string; readonly expiresAt: number }) | undefined;
  /** The surface, for the log. */
  readonly surface: string;
}
