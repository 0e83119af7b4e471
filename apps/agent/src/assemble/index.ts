import { exists } from "@devplat/base";
import { LoopMonitor } from "@devplat/base/loop-monitor";
import type { SecretStore } from "@devplat/secret-store";
import { assembleStore, userNameOf, type StoreParts } from "./store.ts";
import { assembleLoop } from "./loop.ts";
import { connectionsFolder, lentTokensPath, remotesPath } from "./forward-places.ts";
import { assembleReload } from "./reload.ts";
import type { SshAgentFoundation } from "./ssh-agent.ts";
import { volumePlaces, volumeRegistrations } from "./volume-places.ts";
import type { VolumesFoundation } from "./volumes.ts";
import type { SharedParts, SurfaceFoundation } from "./surfaces.ts";
import { TokenKeeper } from "../auth/token-keeper.ts";
import type { ConfigKeeper } from "../config/keeper.ts";
import type { LoadedConfig } from "../config/load.ts";
import { engineFor, type EngineParts } from "../enrol/engines.ts";
import { EnrolmentRunner } from "../enrol/runner.ts";
import { EnrolmentState } from "../enrol/enrolment-state.ts";
import { SshKeyHandover } from "../enrol/ssh-key-handover.ts";
import type { Host } from "../host.ts";
import { NO_BOOTSTRAP } from "../sync/status-report.ts";
import { Backups } from "../sync/target/backups.ts";
import type { Daemon } from "../sync/daemon.ts";
import { SyncEngine } from "../sync/engine.ts";
import { InPlaceJournal } from "../sync/target/in-place.ts";
import { MountedFiles } from "../sync/mounted/mounted-files.ts";
import { mountPlaceOf } from "../sync/mounted/mount-place.ts";
import { WriterLock } from "../sync/lock.ts";
import { PausedRules } from "../sync/paused-rules.ts";
import { Renderer } from "../sync/content/rule-content.ts";
import { StateFile } from "../sync/state.ts";
import { StoreWatch } from "../sync/store-watch.ts";
import { TargetPolicy } from "../sync/target/target-policy.ts";
import { SleepWatch, systemBootMs } from "../sleep-watch.ts";
import { SshAgentOnDemand } from "../surfaces/ssh-agent/server/ssh-agent-on-demand.ts";
import { ForwardsOnDemand } from "../surfaces/forwards/control/forwards-on-demand.ts";
import { VolumesOnDemand } from "../surfaces/volumes/volumes-on-demand.ts";
import { MountSurface } from "../surfaces/mount/mount-surface.ts";
import { OpenStreams } from "../surfaces/http-api/open-streams.ts";
import { StatusView } from "../surfaces/status-view.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { assembleTelemetry } from "./telemetry.ts";
import { fuseStatus } from "../surfaces/mount/mount-status.ts";
import { SurfaceGroup, type Surface } from "../surfaces/surface.ts";
import type { WebServer } from "../surfaces/web/server.ts";
import { PAGE_WAIT_MS } from "../secrets/page-wait.ts";

/** Everything that syncs, with the writer lock held. */
export interface SyncParts extends StoreParts {
  readonly engine: SyncEngine;
  readonly state: StateFile;
}

/**
 * Builds everything for writing.
 * @param waitMs how long to wait for another writer, in milliseconds; see WriterLock for the default
 * @throws AgentError `locked`
 */
export async function assembleSync(host: Host, loaded: LoadedConfig, waitMs?: number): Promise<SyncParts> {
  const lock = await WriterLock.acquire(host.places.state, waitMs);
  try {
    const state = await StateFile.open(host.places.state);
    if (state.rebuilt) host.logger.warn({}, "state file was lost or damaged and is rebuilt");
    const parts = await assembleStore(host, loaded, true, false);
    const close = async (): Promise<void> => {
      await parts.close();
      lock[Symbol.dispose]();
    };
    return { ...parts, state, engine: engineOf(host, loaded, parts.store, state), close };
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
}

/**
 * Builds everything for looking: takes no lock, and writes nothing. Do not call `engine.cycle`.
 * @param create see assembleStore. Default false
 */
export async function assemblePreview(host: Host, loaded: LoadedConfig, create = false): Promise<SyncParts> {
  const state = await StateFile.peek(host.places.state);
  const parts = await assembleStore(host, loaded, create);
  return { ...parts, state, engine: engineOf(host, loaded, parts.store, state) };
}

/** Everything of a running daemon. */
export interface AssembledDaemon {
  readonly daemon: Daemon;
  readonly keeper: TokenKeeper | undefined;
  readonly config: ConfigKeeper;
  readonly enrolments: EnrolmentRunner;
  readonly surfaces: Surface;
  /** The web port, which is one of the surfaces. */
  readonly web: WebServer | undefined;
  readonly telemetry: Telemetry;
  /** For a login at the terminal. */
  readonly session: StoreParts;
  /** Says which part makes no progress any more. Only a new start helps then. */
  fault(): string | undefined;
  close(): Promise<void>;
}

/**
 * Builds the daemon and the surfaces that the configuration wants. The caller starts them.
 * @param load reads the configuration again
 */
export async function assembleDaemon(
  host: Host,
  loaded: LoadedConfig,
  load: (signal: AbortSignal) => Promise<LoadedConfig>,
): Promise<AssembledDaemon> {
  const { clock, logger } = host;
  const parts = await assembleSync(host, loaded);
  const { store } = parts;
  const watch = new StoreWatch({ store, clock, logger });
  const newSshKeys = new SshKeyHandover();
  const enrolments = enrolmentRunner(
    host,
    loaded,
    parts,
    (path) => {
      watch.announce({ path, kind: "written" });
      daemon.wake();
    },
    (pair) => newSshKeys.offer(pair),
  );
  const certificates = parts.tokens?.certificates;
  const loops = new LoopMonitor(clock);
  const daemon: Daemon = assembleLoop({
    ...parts,
    loops,
    clock,
    logger,
    intervalMs: loaded.config.sync.interval,
    bootstrap: () => certificates?.bootstrapState() ?? NO_BOOTSTRAP,
    enrolments,
    watch,
  });
  const keeper =
    parts.tokens &&
    new TokenKeeper({
      ...parts.tokens,
      maintain: async (token, signal) => await certificates?.reissueIfDue(token, signal),
      onWake: () => daemon.wake(),
      clock,
      logger,
    });
  const surfaces = new SurfaceGroup();
  const openStreams = new OpenStreams();
  const telemetry = assembleTelemetry(
    host,
    { status: () => new StatusView(daemon, surfaces, remotes, []).status() },
    openStreams,
  );
  const config = assembleReload(host, { enrolments, daemon, surfaces, telemetry }, { loaded, load });
  const shared = {
    ...parts,
    daemon,
    current: () => config.current,
    actions: once(async () => (await import("./local-actions.ts")).localActions(host)),
    lending: once(async () => {
      const { assembleLending } = await import("./lending.ts");
      const webUrl = loaded.config.web.enabled ? () => web?.url ?? "" : undefined;
      return assembleLending(host, { ...parts, webUrl, hasApi: loaded.config.api.enabled });
    }),
  };
  const sshAgent = sshAgentOnDemand(host, { ...shared, changes: watch, webUrl: () => web?.url });
  newSshKeys.receive((pair) => sshAgent.keyMade(pair));
  const { mounted } = parts.engine;
  const mount = new MountSurface({
    mounted,
    config: () => config.current.config,
    build: async () =>
      (await import("./mount.ts")).assembleMount(host, { ...shared, mounted, changes: watch }),
    look: () => fuseStatus(config.current.config, host.places),
    logger,
  });
  const remotes = forwardsOnDemand(host, { ...shared, sshAgent });
  const volumes = volumesOnDemand(host, { ...shared, changes: watch });
  const web: WebServer | undefined = await addSurfaces(host, {
    ...shared,
    enrolments,
    surfaces,
    openStreams,
    remotes,
    sshAgent,
    volumes,
    mount,
    changes: watch,
  });
  surfaces.add(sshAgent);
  surfaces.add(volumes);
  surfaces.add(mount);
  // After the others: it may wait for programs that a crashed daemon has left.
  surfaces.add(remotes);
  return {
    daemon,
    keeper,
    config,
    enrolments,
    surfaces,
    web,
    telemetry,
    session: parts,
    fault: () => loops.fault(),
    close: async () => {
      await parts.close();
      // Last, so that it has the spans of what has just ended.
      await telemetry.close();
    },
  };
}

/** The forwards of ssh.yaml. Their code is loaded only when there is one, or when a person adds one. */
function forwardsOnDemand(
  host: Host,
  {
    daemon,
    current,
    signIn,
    actions,
    lending,
    sshAgent,
  }: SharedParts & { readonly daemon: Daemon; readonly sshAgent: SshAgentOnDemand },
): ForwardsOnDemand {
  const { places, clock, logger } = host;
  const left = [connectionsFolder(places), lentTokensPath(places)];
  return new ForwardsOnDemand({
    file: remotesPath(places),
    hasLeftovers: async () => (await Promise.all(left.map(exists))).includes(true),
    build: async () => {
      const { assembleForwards } = await import("./forwards.ts");
      return assembleForwards(host, {
        current,
        signIn,
        view: daemon,
        actions: await actions(),
        lending: await lending(),
        identities: sshAgent,
      });
    },
    clock,
    logger,
  });
}

/** The SSH agent of this daemon. Its code is loaded only when `agent.enabled` is set. */
function sshAgentOnDemand(host: Host, parts: SshAgentFoundation): SshAgentOnDemand {
  const { clock, logger } = host;
  const sleep = new SleepWatch({ bootMs: systemBootMs, clock });
  return new SshAgentOnDemand({
    config: () => parts.current().config,
    build: async () => (await import("./ssh-agent.ts")).assembleSshAgent(host, parts),
    hasSlept: () => sleep.look(),
    clock,
    logger,
  });
}

/** The container volumes of this daemon. Their code is loaded only when `docker.enabled` is set. */
function volumesOnDemand(host: Host, parts: VolumesFoundation): VolumesOnDemand {
  return new VolumesOnDemand({
    config: () => parts.current().config,
    build: async () => await (await import("./volumes.ts")).assembleVolumes(host, parts),
    placesOf: (config) => volumePlaces(host.places, config),
    registrations: (config) => volumeRegistrations(host, config),
    logger: host.logger,
  });
}

/** A function that makes its result at the first call. */
function once<Result>(make: () => Promise<Result>): () => Promise<Result> {
  let made: Promise<Result> | undefined;
  return () => (made ??= make());
}

/** Loads the code of surfaces only where the configuration has one. */
async function addSurfaces(
  host: Host,
  parts: Omit<SurfaceFoundation, "preview">,
): Promise<WebServer | undefined> {
  const { web, api } = parts.current().config;
  if (!web.enabled && !(api.peer.enabled ?? api.enabled) && !api.enabled) return undefined;
  const { assembleSurfaces } = await import("./surfaces.ts");
  return await assembleSurfaces(host, {
    ...parts,
    preview: async (signal) => {
      const state = await StateFile.peek(host.places.state);
      // A page waits for it.
      const store = parts.store.within(PAGE_WAIT_MS);
      return await engineOf(host, parts.current(), store, state).preview(signal);
    },
  });
}

/** The runner of this user's enrolments. */
export function enrolmentRunner(
  host: Host,
  { config }: LoadedConfig,
  { store, signIn, facts }: StoreParts,
  onStored: (key: string) => void,
  onSshKey?: EngineParts["onSshKey"],
): EnrolmentRunner {
  const { clock, logger, places } = host;
  return new EnrolmentRunner({
    enrolments: config.enrolments,
    makeEngine: (enrolment) =>
      engineFor(enrolment, {
        store,
        username: facts.username,
        clock,
        ...(onSshKey !== undefined && { onSshKey }),
      }),
    store,
    signIn,
    state: new EnrolmentState(places.state),
    intervalMs: config.sync.interval,
    onStored,
    clock,
    logger,
  });
}

function engineOf(host: Host, loaded: LoadedConfig, store: SecretStore, state: StateFile): SyncEngine {
  const { places, environment, clock, logger } = host;
  const { config, sources } = loaded;
  const renderer = new Renderer({
    environment,
    username: userNameOf(config),
    hash: (text) => state.hmac(text),
  });
  const paused = new PausedRules(places.state);
  return new SyncEngine(
    {
      store,
      state,
      renderer,
      targets: new TargetPolicy(places, config.sync.allowed_targets, sources),
      mounted: new MountedFiles({ store, renderer, paused, home: places.home, logger }),
      journal: new InPlaceJournal(places.state),
      backups: new Backups(places.state),
      paused,
      clock,
      logger,
      home: places.home,
    },
    config.rules,
    mountPlaceOf(config, places.home),
  );
}
