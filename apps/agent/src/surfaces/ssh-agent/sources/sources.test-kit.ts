import { silentLogger, systemClock, type Clock, type Secret } from "@devplat/base";
import type { SecretStore } from "@devplat/secret-store";
import type { SignIn, SignInState } from "../../../auth/sign-in.ts";
import { sshAgentSection } from "../../../config/sections/ssh-agent-section.ts";
import { StoreWatch } from "../../../sync/store-watch.ts";
import type { SshIdentity, UserQuestions } from "../identity.ts";
import type { CertificateAuthority } from "./certificate-authority.ts";
import { KeySources, type KeySourcesConfig } from "./key-sources.ts";

export const never = (): AbortSignal => new AbortController().signal;

/** A user who answers as the test wants. Every question is counted. */
export class TestUser implements Pick<UserQuestions, "passphrase"> {
  readonly questions: { readonly comment: string; readonly wrongBefore: boolean }[] = [];
  answer: (signal: AbortSignal) => Secret | undefined | Promise<Secret | undefined> = () => undefined;

  async passphrase(
    key: { readonly comment: string; readonly wrongBefore: boolean },
    signal: AbortSignal,
  ): Promise<Secret | undefined> {
    this.questions.push({ comment: key.comment, wrongBefore: key.wrongBefore });
    return await this.answer(signal);
  }
}

/** A sign-in that changes when the test says so. */
export class TestSignIn implements Pick<SignIn, "state" | "onChange"> {
  #state: SignInState;
  readonly #listeners = new Set<() => void>();

  constructor(user: string | undefined = "ada") {
    this.#state = stateOf(user);
  }

  state(): SignInState {
    return this.#state;
  }

  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** @param user undefined: signed out */
  set(user: string | undefined): void {
    this.#state = stateOf(user);
    for (const listener of this.#listeners) listener();
  }
}

function stateOf(user: string | undefined): SignInState {
  const info = { entityId: user, displayName: user } as unknown as SignInState["info"];
  return user === undefined
    ? { authenticated: false, source: "none", info: undefined, reason: "signed out" }
    : { authenticated: true, source: "file", info, reason: null };
}

/** The `agent` section as the configuration file would have it. */
export function section(keys: readonly unknown[], more: Readonly<Record<string, unknown>> = {}) {
  return sshAgentSection.parse({ keys, ...more });
}

export interface SourcesStand extends AsyncDisposable {
  readonly sources: KeySources;
  readonly user: TestUser;
  readonly signIn: TestSignIn;
  readonly watch: StoreWatch;
  /** Comments of the identities of all sources, in their order. */
  comments(): Promise<string[]>;
  /** The identity with this comment, which must be listed. */
  identity(comment: string): Promise<SshIdentity>;
  /** Everything that the sources' problems say. */
  problems(): string;
}

export function sourcesStand(
  store: SecretStore,
  config: KeySourcesConfig,
  options: {
    readonly clock?: Clock;
    readonly authority?: CertificateAuthority;
    readonly logger?: typeof silentLogger;
    readonly signIn?: TestSignIn;
    readonly events?: boolean;
  } = {},
): SourcesStand {
  const { clock = systemClock, authority, logger = silentLogger, events = true } = options;
  const user = new TestUser();
  const signIn = options.signIn ?? new TestSignIn();
  const end = new AbortController();
  const watch = new StoreWatch({ store, clock, logger });
  const following = events ? watch.run(end.signal, { onChange: () => undefined }) : Promise.resolve();
  const context = { username: "ada", env: (name: string) => (name === "TEAM" ? "ops" : undefined) };
  const sources = new KeySources(
    { store, changes: watch, signIn, authority, questions: user, context, clock, logger },
    config,
  );
  const listed = async (): Promise<SshIdentity[]> =>
    (await Promise.all(sources.list.map((each) => each.identities(never())))).flat();
  return {
    sources,
    user,
    signIn,
    watch,
    comments: async () => (await listed()).map(({ comment }) => comment),
    identity: async (comment) => {
      const found = (await listed()).find((each) => each.comment === comment);
      if (found === undefined) throw new Error(`not listed: ${comment}`);
      return found;
    },
    problems: () => sources.list.flatMap((each) => each.problem() ?? []).join("\n"),
    async [Symbol.asyncDispose]() {
      end.abort();
      await sources.stop();
      await following;
    },
  };
}
