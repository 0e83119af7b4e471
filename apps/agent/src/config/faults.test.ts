import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { parseConfig } from "./load.ts";

const FOLDER = join(import.meta.dirname, "faults");

/** Messages with which each file of the folder is refused. (The files are not named .yaml: a formatter would repair them.) */
const MESSAGES: Readonly<Record<string, string>> = {
  "agent-ca-extensions-empty":
    "3:42: agent.keys[0].extensions: must not be empty; without this key the role's extensions apply",
  "agent-ca-ttl-too-short": "3:42: agent.keys[0].ttl: must be at least 1m",
  "agent-ca-without-role": "3:10: agent.keys[0].role: required, but missing",
  "agent-hosts-all-negated":
    "3:51: agent.keys[0].hosts: matches no host, because every pattern begins with '!'",
  "agent-hosts-in-one-text":
    "3:59: agent.keys[0].hosts[0]: expected one pattern of host names, such as *.example.com or alice@*.example.com",
  "agent-hosts-user-of-no-host":
    "3:59: agent.keys[0].hosts[0]: expected one pattern of host names, such as *.example.com or alice@*.example.com",
  "agent-key-lifetime-too-long": "2:10: agent.key_lifetime: must be at most 14d",
  "agent-path-prefix-climbs":
    '3:33: agent.keys[0].path_prefix: the path "a/../b" cannot be used: it has a ".." segment',
  "agent-relay-to-a-pipe":
    "2:18: agent.relay[0]: only Windows has named pipes; set the path of a socket, or SSH_AUTH_SOCK",
  "agent-relay-to-itself": "4:11: agent.relay[0]: is a socket of this SSH agent itself",
  "agent-socket-of-unknown-source":
    "5:38: agent.sockets[0].keys[0]: no source of agent.keys has this name; expected one of: team",
  "agent-socket-twice": "4:15: agent.sockets[0].path: another socket of this section has this path",
  "agent-source-name-twice": "5:21: agent.keys[1].name: another source has this name",
  "agent-source-unknown": "3:12: agent.keys[0].source: expected one of: kv, ca, enrolments",
  "agent-via-with-user":
    "3:57: agent.keys[0].via[0]: expected one pattern of host names, without '!' and user names",
  "api-offers-unknown": "2:32: api.peer.offers[1]: expected one of: token, browse, notify, clipboard",
  "docker-cache-too-long": "2:11: docker.cache_ttl: must be at most 10m",
  "docker-path-climbs": '2:19: docker.paths[0]: the path "demo/.." cannot be used: it has a ".." segment',
  "docker-socket-is-a-pipe": "2:26: docker.socket: expected a path from / or ~/",
  "docker-volume-dir-is-a-pipe": "2:26: docker.volume_dir: expected a path from / or ~/",
  "duration-broken": "2:9: sync.interval: expected a duration such as 30s, 15m, 36h or 7d",
  "duration-is-a-number": "2:9: fuse.cache_ttl: expected a duration such as 30s, 15m, 36h or 7d",
  "enrolment-copies-itself": "3:22: enrolments.a.from: must not be the enrolment itself",
  "enrolment-engine-unknown":
    "2:20: enrolments.a.engine: expected one of: copy, ssh, prompt, github, svc, oauth-device, oauth-pkce, databricks, jfrog",
  "enrolment-key-too-deep": "2:15: enrolments.a/b/c: a key is flat or grouped once: name or group/name",
  "enrolment-pattern-broken": "3:44: enrolments.a.fields[0].pattern: not a regular expression",
  "fuse-mountpoint-relative": "2:9: fuse.mountpoint: expected a path from / or ~/, such as ~/.daemon",
  "fuse-mountpoint-is-the-home-folder":
    "2:9: fuse.mountpoint: must be a folder of its own, such as ~/.daemon: a mount would hide the home folder",
  "fuse-mountpoint-is-the-root-folder":
    "2:9: fuse.mountpoint: must be a folder of its own, such as ~/.daemon: a mount would hide the root folder",
  "fuse-mountpoint-climbs": "2:9: fuse.mountpoint: must not hold . or .. segments",
  "fuse-mountpoint-below-proc": "2:9: fuse.mountpoint: must not be below /proc, where no folder can be made",
  "fuse-cache-too-long": "2:9: fuse.cache_ttl: must be at most 10m",
  "git-credentials-host-broken":
    "2:21: git_credentials[0].host: expected a host name, such as git.example.com, git.example.com:8443 or *.example.com",
  "interval-too-short": "2:9: sync.interval: must be at least 10s",
  "key-twice": "2:1: this key is given twice",
  "key-unknown": "2:1: synch: unknown key; did you mean 'sync'?",
  "observability-endpoint-with-password":
    "2:18: observability.endpoint: must not hold a user name or password",
  "observability-exported-too-often": "2:18: observability.interval: must be at least 10s",
  "observability-without-endpoint":
    "2:1: observability.endpoint: required for enabled: true, such as http://127.0.0.1:4318",
  "remote-config-full-trust-unsigned": "2:1: remote_config.public_key: required for trust: full",
  "remote-config-key-broken":
    "2:55: remote_config.public_key: expected an Ed25519 public key: 32 bytes in base64, or PEM",
  "remote-config-plain-http": "2:18: remote_config.url: must be https (http only for this host itself)",
  "remote-config-refreshed-too-often": "2:55: remote_config.refresh_interval: must be at least 1m",
  "rule-mode-without-quotes": '3:59: rules[0].target.mode: expected permissions in quotes, such as "0600"',
  "rule-name-twice": "4:7: rules[1].name: another rule has this name",
  "rule-path-relative": "3:34: rules[0].target.path: expected ~/… or an absolute path",
  "rule-without-a-key": "2:9: rules[0]: one of key and keys is required",
  "rules-share-a-file-of-two-formats":
    "4:34: rules[1].target.path: rule 'a' has the same file with another format",
  "ssh-authority-is-no-key":
    "2:34: ssh.certificate_authorities[0]: expected a line of known_hosts such as: @cert-authority *.example.com ssh-ed25519 AAAA…",
  "ssh-authority-without-hosts":
    "2:34: ssh.certificate_authorities[0]: names no hosts; write: @cert-authority *.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ7WlK1yxWcAhWi0iPQ6bLbSwxSJ1YF1zQ0bXkQbY0Zb",
  "ssh-command-relative": "2:8: ssh.command: expected the name of a program, or a path from / or ~/",
  "ssh-key-unknown": "2:8: ssh.remotes: unknown key",
  "store-address-missing":
    "1:1: store.address: required, but missing (for a store on this host: driver: embedded)",
  "store-address-with-password": "1:10: store.address: must not hold a user name or password",
  "store-auth-method-unknown":
    "1:55: store.auth_method: expected one of: token, oidc, ldap, mtls, mtls+tpm, mtls+os, token+tpm, oidc+tpm, ldap+tpm",
  "store-mtls-os-without-a-token": "1:62: store.mtls.pkcs11: required for mtls+os, but missing",
  "store-mtls-without-role":
    "1:1: store.mtls.pki_role: required, but missing (or bring your own certificate: byo)",
  "store-mtls-without-tls": "1:10: store.address: a client certificate needs an https address",
  "store-token-socket-with-a-glob-in-a-folder":
    "1:55: store.token_socket[0]: expected a path from / or ~/ with * and ? in its last segment only",
  "tab-as-indentation": "2:1: a tab is used for indentation; YAML takes spaces only",
  "value-of-wrong-type": "2:8: web.enabled: expected true or false",
  "web-editable-path-climbs":
    '2:25: web.editable_paths[0]: the path "a/../b" cannot be used: it has a ".." segment',
  "web-not-on-loopback": "2:8: web.listen: must be on loopback: 127.0.0.1, [::1] or localhost, with a port",
};

describe("a faulty configuration is refused with the place and nothing of its values [agent 3.11]", async () => {
  const names = (await readdir(FOLDER)).map((file) => file.replace(/\.faulty$/, "")).toSorted();

  it("every file has its message [agent 2.5 3.13 3.19 4.1 4.8 12.1]", () =>
    assert.deepEqual(names, Object.keys(MESSAGES).toSorted()));

  for (const name of names) {
    it(name.replaceAll("-", " "), async () => {
      const text = await readFile(join(FOLDER, `${name}.faulty`), "utf8");
      assert.throws(
        () => parseConfig({ path: "config.yaml", text }),
        (error: Error) => {
          assert.equal(error.message, `config.yaml:${MESSAGES[name] ?? ""}`);
          assert.doesNotMatch(error.message, /hunter2/);
          return true;
        },
      );
    });
  }
});
