export { TestkitError, type TestkitErrorCode } from "./errors.ts";
export { gitEnvironment, gitSettings } from "./git-environment.ts";
export { git, run, spawnGroup, type Finished, type RunOptions } from "./process.ts";
export { tempFolder, type TempFolder } from "./temp-folder.ts";
export { freePort } from "./free-port.ts";
export { makeCertificate, type CertificateOptions, type TestCertificate } from "./certificate.ts";
export { callJson, sendJson, type JsonRequest } from "./send-json.ts";
export { AGENT_LAUNCHER, AGENT_SOURCES_LAUNCHER, SVC_LAUNCHER } from "./launchers.ts";
export { until } from "./until.ts";
export { whileHanging } from "./hanging.ts";
export { loopSeconds, testSeed } from "./effort.ts";
export { randomFrom } from "./random.ts";
export * as repositories from "./repositories/repositories.ts";
export type { LinearOptions, RepositoryOptions } from "./repositories/repositories.ts";
export {
  History,
  type CommitPlan,
  type Entry,
  type Mark,
  type ObjectFormat,
} from "./repositories/history.ts";
export {
  startCodeHost,
  type AddRepositoryOptions,
  type CodeHost,
  type CodeHostOptions,
} from "./code-host/code-host.ts";
export type { Call } from "./code-host/calls.ts";
export type { Fault, FaultMatch } from "./code-host/faults.ts";
export type { Visibility } from "./code-host/access.ts";
export type { CodeHostOauth, OauthSettings } from "./code-host/oauth.ts";
export type { CodeHostApps, InstallationToken, Permissions, TestApp } from "./code-host/apps.ts";
export { startCodeHostProcess, type CodeHostProcess } from "./code-host/code-host-process.ts";
export { cpuSecondsOf, type CpuSeconds } from "./cpu.ts";
export { startVault, type Vault, type VaultAnswer, type VaultOptions } from "./vault.ts";
export { FOREIGN_ANSWERS, type ForeignAnswerCase } from "./foreign-answers.ts";
export { startForwardProxy, type ForwardProxy, type ForwardProxyOptions } from "./forward-proxy.ts";
export { startVaultProxy, type EventStub, type VaultFault, type VaultProxy } from "./vault-proxy.ts";
export { createSoftHsm, softHsmModule, type SoftHsm } from "./softhsm.ts";
export { startSwtpm, type Swtpm } from "./swtpm.ts";
export { startDesktop, type ShownNotification, type TestDesktop } from "./desktop.ts";
export { sshdProgram, startSshd, type Sshd, type SshdOptions } from "./sshd.ts";
export { startNetwork, type TestNetwork } from "./network.ts";
export { BOX_IMAGE, type ContainerEngine } from "./container-engine.ts";
export { startDockerd, startPodman, type Dockerd } from "./dockerd.ts";
export {
  startOrdinaryUser,
  startRootlessDockerd,
  startRootlessPodman,
  type OrdinaryUser,
} from "./rootless.ts";
export { startSlapd, type Slapd } from "./slapd.ts";
export { NATIVE_CLIENT_ID, startOidcProvider, type OidcProvider } from "./oidc-provider.ts";
export { startOtelcol, type Otelcol } from "./otelcol.ts";
export {
  startOtlpRecorder,
  type OtlpRecorder,
  type RecordedMetric,
  type RecordedSpan,
} from "./otlp-recorder.ts";
export { GITEA_PASSWORD, startGitea, type Gitea } from "./gitea.ts";
export {
  startMinio,
  startVersityGateway,
  type S3Server,
  type VersityGateway,
  type VersityGatewayOptions,
} from "./s3/servers.ts";
export { startS3Proxy, type S3Fault, type S3Proxy, type S3RequestKind } from "./s3/proxy.ts";
export { runAtTerminal, type TerminalSession } from "./terminal.ts";
export { startPostgres, type Postgres } from "./postgres.ts";
export {
  launchChromium,
  launchChromiumProfile,
  type Browser,
  type BrowserContext,
  type Page,
} from "./chromium.ts";
export { startSvc, type Svc, type SvcOptions } from "./svc.ts";
export { answers, startPeer, type Peer, type PeerCommand } from "./peer.ts";
export { clientPrograms, goFileReader, goSshClient, type ClientProgram } from "./client-programs.ts";
export {
  chromiumProgram,
  consumerPrograms,
  filesystemSuites,
  headlessChromiumProgram,
  giteaProgram,
  onPath,
  newerGitFolder,
  opensshRegressFolder,
  otelcolProgram,
  peerCache,
  pinsKey,
  promtoolProgram,
  helmProgram,
  kubernetesSchemas,
  postgresFolder,
  readersPython,
  s3Program,
  schemathesisPython,
  slapdProgram,
  vaultFolder,
  vaultPrograms,
  type ConsumerPrograms,
  type VaultPrograms,
} from "./peer-programs.ts";
