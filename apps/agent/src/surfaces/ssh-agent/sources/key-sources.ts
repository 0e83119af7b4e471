import type { Clock, Logger, Secret } from "@devplat/base";
import type { KeyPair } from "@devplat/ssh-protocol";
import type { SignIn } from "../../../auth/sign-in.ts";
import type { EnrolmentConfig } from "../../../config/sections/enrolment-section.ts";
import type { SshAgentSection, SshKeySource } from "../../../config/sections/ssh-agent-section.ts";
import { CachedSecrets, type CachedSecretsParts } from "../../../secrets/folder/cached-secrets.ts";
import { AgentRefusal } from "../agent-refusal.ts";
import type { IdentitySource, UserQuestions } from "../identity.ts";
import { CaSource } from "./ca-source.ts";
import type { CertificateAuthority } from "./certificate-authority.ts";
import { KeyThread } from "../../../key-thread/key-thread.ts";
import type { PrincipalContext } from "./principals.ts";
import { SignInWait } from "./sign-in-wait.ts";
import { StoredKeysSource } from "./stored-keys-source.ts";

/** Listings and versions are used again for this time, in milliseconds. The SSH agent keeps a list of keys for 8 s itself. */
const VERSIONS_TTL_MS = 1000;

export interface KeySourcesParts extends CachedSecretsParts {
  readonly signIn: Pick<SignIn, "state" | "onChange">;
  /** Undefined for a store without an SSH engine. */
  readonly authority: CertificateAuthority | undefined;
  readonly questions: Pick<UserQuestions, "passphrase">;
  /** Values of the templates of principals. */
  readonly context: PrincipalContext;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The parts of the configuration that name keys. */
export interface KeySourcesConfig {
  readonly agent: Pick<SshAgentSection, "keys" | "key_lifetime">;
  readonly enrolments: Readonly<Record<string, EnrolmentConfig>>;
}

/** A source with the configuration that it was made for. */
interface Configured {
  readonly text: string;
  readonly source: StoredKeysSource | CaSource;
}

/** The sources of the SSH agent's own keys, as `agent.keys` configures them. */
export class KeySources {
  readonly #parts: KeySourcesParts;
  readonly #secrets: CachedSecrets;
  readonly #signIn: SignInWait;
  readonly #opener: KeyThread;
  readonly #end = new AbortController();
  #configured: readonly Configured[] = [];
  #lifetimeMs = 0;
  #user: string | undefined;
  #isSignedIn: boolean;

  constructor(parts: KeySourcesParts, config: KeySourcesConfig) {
    this.#parts = parts;
    this.#secrets = new CachedSecrets(parts, { ttlMs: VERSIONS_TTL_MS });
    this.#signIn = new SignInWait(parts.signIn, parts.clock);
    this.#opener = new KeyThread(parts.clock);
    this.#user = this.#signIn.user;
    this.#isSignedIn = this.#signIn.isSignedIn;
    this.#signIn.onChange(() => this.#followSignIn(), this.#end.signal);
    this.configure(config);
  }

  /** In the order of the configuration. */
  get list(): readonly IdentitySource[] {
    return this.#configured.map(({ source }) => source);
  }

  /** Takes up a changed configuration. Sources that have not changed keep their keys. */
  configure({ agent, enrolments }: KeySourcesConfig): void {
    this.#lifetimeMs = agent.key_lifetime;
    // A command that has stored a credential makes the daemon read its configuration again.
    this.#secrets.drop("");
    const before = new Map(this.#configured.map((each) => [each.text, each]));
    this.#configured = agent.keys.map((settings) => {
      const text = JSON.stringify(settings);
      const known = before.get(text);
      before.delete(text);
      const configured = known ?? { text, source: this.#make(settings) };
      if (settings.source === "enrolments" && configured.source instanceof StoredKeysSource) {
        configured.source.setRoots(sshEnrolments(enrolments));
      }
      if (known === undefined) configured.source.start();
      return configured;
    });
    for (const { source } of before.values()) void source.stop();
  }

  /** Has the next listing ask the store, also for what was read a moment ago. */
  lookAgain(): void {
    this.#secrets.drop("");
  }

  /**
   * Opens keys with a passphrase. The store is asked again for a key that is not known.
   * @param name comment, path or fingerprint
   * @throws AgentRefusal `key_unknown` | `passphrase_wrong` | `key_unusable`
   */
  async unlockKey(name: string, passphrase: Secret): Promise<void> {
    await this.findKey(name);
    if (!(await this.#unlockKnown(name, passphrase))) throw unknownKey(name);
  }

  /** Looks for a key of the store by its comment, path or fingerprint. @throws AgentRefusal `key_unknown` */
  async findKey(name: string): Promise<void> {
    const isKnown = (): boolean => this.#stored().some((source) => source.has(name));
    if (isKnown()) return;
    this.lookAgain();
    await Promise.all(this.#stored().map((source) => source.identities(this.#end.signal)));
    if (!isKnown()) throw unknownKey(name);
  }

  /** Takes a key that an enrolment has just made, so that nobody has to type its passphrase again. */
  keyMade(pair: KeyPair): void {
    for (const source of this.#stored()) source.keyMade(pair);
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await Promise.all(this.#configured.map(({ source }) => source.stop()));
    this.#secrets.close();
  }

  /** @returns whether a key of this name is known. @throws AgentRefusal */
  async #unlockKnown(name: string, passphrase: Secret): Promise<boolean> {
    const results = await Promise.allSettled(
      this.#stored().map((source) => source.unlock(name, passphrase, this.#end.signal)),
    );
    if (results.some((each) => each.status === "fulfilled" && each.value)) return true;
    const failure = results.find((each) => each.status === "rejected");
    if (failure !== undefined) throw failure.reason as Error;
    return false;
  }

  #stored(): StoredKeysSource[] {
    return this.#configured.flatMap(({ source }) => (source instanceof StoredKeysSource ? source : []));
  }

  /** Private keys do not outlive the sign-in, and keys of one user are not those of the next. */
  #followSignIn(): void {
    const { isSignedIn, user } = this.#signIn;
    const was = this.#isSignedIn;
    this.#isSignedIn = isSignedIn;
    if (!isSignedIn) {
      if (was) for (const { source } of this.#configured) source.forget();
      return;
    }
    const isOther = this.#user !== undefined && this.#user !== user;
    this.#user = user;
    // The token may have other rights than the one before.
    this.#secrets.drop("");
    for (const { source } of this.#configured) source.signedIn(isOther);
  }

  #make(settings: SshKeySource): StoredKeysSource | CaSource {
    const { clock, logger, context, authority, changes, questions } = this.#parts;
    const { hosts, via, namespaces, confirm, name } = settings;
    const restrictions = { hosts, via, namespaces, confirm };
    if (settings.source === "ca") {
      const signIn = this.#signIn;
      return new CaSource({ authority, signIn, context, clock, logger }, settings, restrictions);
    }
    return new StoredKeysSource(
      {
        secrets: this.#secrets,
        changes,
        signIn: this.#signIn,
        opener: this.#opener,
        questions,
        clock,
        logger,
      },
      {
        name,
        kind: settings.source,
        roots: settings.source === "kv" ? [`${settings.path_prefix.replace(/\/$/, "")}/`] : [],
        restrictions,
        lifetimeMs: () => this.#lifetimeMs,
      },
    );
  }
}

/** Paths of the secrets of all `ssh` enrolments. */
function sshEnrolments(enrolments: KeySourcesConfig["enrolments"]): string[] {
  return Object.entries(enrolments).flatMap(([key, { engine }]) => (engine === "ssh" ? [key] : []));
}

function unknownKey(name: string): AgentRefusal {
  return new AgentRefusal("key_unknown", `the SSH agent has no key "${name}" of the store`);
}
